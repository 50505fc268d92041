//! Chunks as bytes, for a party's own file and its own workers.
//!
//! ```text
//! kind, checksum │ columns, rows, most non-zeros │ dense columns │ groups of each code │ values that occur │ scales │ dense numbers
//!                │ codes │ sparse: number of entries, starts, columns, values
//! ```
//! What is read back is the chunk that was written, to the bit, or an error.

use super::{CHUNK_ROWS, Chunk, ColumnIndices, MAX_COLUMNS};
use crate::curator::bytes::{ByteReader, ByteWriter, WrongBytes};
use crate::curator::kernel::exp_log::LANES;
use crate::curator::rows::layout::{CODE_VALUES, Code};

const KIND: &[u8; 8] = b"radmmck1";

impl Chunk {
    /// Returns the chunk as bytes, which overwrite the buffer.
    // Privacy: these bytes are rows. They leave `curator/` as the content of types alone whose documentation says so.
    pub(in crate::curator) fn encode(&self, columns: usize, buffer: Vec<u8>) -> Vec<u8> {
        let mut writer = ByteWriter::new(KIND, buffer);
        writer.count(columns);
        writer.count(self.rows);
        writer.word(u64::from(self.max_nonzeros));
        writer.count(self.layout.dense.len());
        writer.items(&self.layout.dense, u32::to_le_bytes);
        writer.count(self.layout.codes.len());
        for code in &self.layout.codes {
            writer.count(code.groups.len());
            for group in &code.groups {
                writer.items(&[group.start, group.end], u32::to_le_bytes);
            }
        }
        writer.items(self.occurring.as_flattened(), u64::to_le_bytes);
        writer.items(&self.scales, f64::to_le_bytes);
        writer.items(&self.dense, f64::to_le_bytes);
        writer.items(&self.codes, |code| [code]);
        let sparse = &self.sparse;
        writer.byte(u8::from(!sparse.starts.is_empty()));
        writer.items(&sparse.starts, u32::to_le_bytes);
        match &sparse.columns {
            ColumnIndices::Narrow(columns) => writer.items(columns, u16::to_le_bytes),
            ColumnIndices::Wide(columns) => writer.items(columns, u32::to_le_bytes),
        }
        writer.byte(u8::from(!sparse.values.is_empty()));
        writer.items(&sparse.values, f64::to_le_bytes);
        writer.finish()
    }

    /// Overwrites the chunk with the one that was written, and returns the number of columns. After an error the chunk is
    /// unspecified.
    pub(in crate::curator) fn decode(&mut self, bytes: &[u8]) -> Result<usize, WrongBytes> {
        let mut reader = ByteReader::new(KIND, bytes)?;
        let columns = reader.count()?;
        self.rows = reader.count()?;
        self.max_nonzeros = reader.word()? as u32;
        if !(1..=CHUNK_ROWS).contains(&self.rows) || columns > MAX_COLUMNS {
            return Err(INVALID);
        }
        let dense = reader.count()?;
        reader.items(dense, &mut self.layout.dense, u32::from_le_bytes)?;
        let codes = reader.count()?;
        if codes >= CODE_VALUES {
            return Err(INVALID);
        }
        self.layout.codes.clear();
        for _ in 0..codes {
            let count = reader.count()?;
            let mut bounds: Vec<[u8; 8]> = Vec::new();
            reader.items(count, &mut bounds, |group| group)?;
            let groups = bounds.iter().map(|&[a, b, c, d, e, f, g, h]| {
                u32::from_le_bytes([a, b, c, d])..u32::from_le_bytes([e, f, g, h])
            });
            let groups = groups.collect();
            self.layout.codes.push(Code { groups });
        }
        self.check_layout(columns)?;
        let mut words = Vec::new();
        reader.items(codes * CODE_VALUES / 64, &mut words, u64::from_le_bytes)?;
        self.occurring.clear();
        self.occurring.extend_from_slice(words.as_chunks().0);
        let height = self.rows.next_multiple_of(LANES);
        reader.items(height, &mut self.scales, f64::from_le_bytes)?;
        reader.items(height * dense, &mut self.dense, f64::from_le_bytes)?;
        reader.items(height * codes, &mut self.codes, |[code]| code)?;
        self.check_codes()?;
        self.decode_sparse(columns, &mut reader)?;
        reader.finish()?;
        Ok(columns)
    }

    fn decode_sparse(
        &mut self,
        columns: usize,
        reader: &mut ByteReader<'_>,
    ) -> Result<(), WrongBytes> {
        let sparse = &mut self.sparse;
        let starts = match reader.byte()? {
            0 => 0,
            _ => self.rows + 1,
        };
        reader.items(starts, &mut sparse.starts, u32::from_le_bytes)?;
        let entries = sparse.starts.last().copied().unwrap_or(0);
        let ascending =
            sparse.starts.first().is_none_or(|first| *first == 0) && sparse.starts.is_sorted();
        if !ascending {
            return Err(INVALID);
        }
        let entries = entries as usize;
        if sparse.columns.is_narrow() != ColumnIndices::empty(columns).is_narrow() {
            sparse.columns = ColumnIndices::empty(columns);
        }
        let below = match &mut sparse.columns {
            ColumnIndices::Narrow(indices) => {
                reader.items(entries, indices, u16::from_le_bytes)?;
                indices.iter().all(|index| usize::from(*index) < columns)
            }
            ColumnIndices::Wide(indices) => {
                reader.items(entries, indices, u32::from_le_bytes)?;
                indices.iter().all(|index| (*index as usize) < columns)
            }
        };
        let values = match reader.byte()? {
            0 => 0,
            _ => entries,
        };
        reader.items(values, &mut sparse.values, f64::from_le_bytes)?;
        match below {
            true => Ok(()),
            false => Err(INVALID),
        }
    }

    /// Checks that the layout is one of so many columns.
    fn check_layout(&self, columns: usize) -> Result<(), WrongBytes> {
        let below = |column: u32| (column as usize) < columns;
        let dense = &self.layout.dense;
        let mut valid = dense.iter().all(|column| below(*column));
        for code in &self.layout.codes {
            let mut values = 1usize;
            for group in &code.groups {
                valid &= group.start < group.end && below(group.end - 1);
                values = values.saturating_mul(group.len() + 1);
            }
            valid &= values <= CODE_VALUES;
        }
        match valid {
            true => Ok(()),
            false => Err(INVALID),
        }
    }

    /// Checks that every code has a value that its layout knows.
    fn check_codes(&self) -> Result<(), WrongBytes> {
        let counts: Vec<usize> = self.layout.codes.iter().map(Code::value_count).collect();
        let valid = self.blocks().all(|block| {
            let columns = block.codes.chunks(block.scales.len().max(1));
            let most = columns.map(|codes| codes.iter().copied().max().unwrap_or(0));
            most.zip(&counts)
                .all(|(most, count)| usize::from(most) < *count)
        });
        match valid {
            true => Ok(()),
            false => Err(INVALID),
        }
    }
}

const INVALID: WrongBytes = WrongBytes("they do not describe a chunk of rows");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::bytes::checksum;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};

    fn wave(n: usize) -> f64 {
        libm::sin(n as f64 * 12.9898)
    }

    /// Returns shards whose chunks have all kinds of parts, and their names.
    fn shards() -> Vec<(&'static str, Shard)> {
        type Entries = Vec<(u32, f64)>;
        let table = |n: usize| -> Entries {
            let mut entries = vec![(0, wave(n)), (1, 0.4)];
            entries.push((2 + (n % 5) as u32, 1.0));
            entries.push((7 + (n % 9) as u32, 1.0));
            if n % 50 == 3 {
                entries.push((16, wave(2 * n)));
            }
            entries
        };
        let words = |n: usize, columns: usize, own: bool| -> Entries {
            let mut found: Vec<u32> = (0..1 + n % 6)
                .map(|k| ((31 * n + 7919 * k * k) % columns) as u32)
                .collect();
            found.sort_unstable();
            found.dedup();
            let value = |column: &u32| match own {
                true => 0.1 + wave(*column as usize).abs(),
                false => 1.0,
            };
            found
                .iter()
                .map(|column| (*column, value(column)))
                .collect()
        };
        let built = |columns: usize, rows: usize, row: &dyn Fn(usize) -> Entries| {
            let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
            (0..rows).for_each(|n| builder.push(&row(n), wave(7 * n) > 0.0).unwrap());
            builder.finish().unwrap()
        };
        vec![
            ("table", built(17, 3_001, &table)),
            ("one row", built(17, 1, &table)),
            ("words", built(900, 2_000, &|n| words(n, 900, false))),
            (
                "weighted words",
                built(900, 1_500, &|n| words(n, 900, true)),
            ),
            (
                "many words",
                built(200_000, 1_100, &|n| words(n, 200_000, true)),
            ),
            ("zeros", built(3, 12, &|_| vec![(1, 0.0)])),
        ]
    }

    #[test]
    fn a_chunk_is_read_back_to_the_bit_into_any_other() {
        let mut read = Chunk::default();
        for (name, shard) in shards().iter().chain(&shards()) {
            let chunk = &shard.chunks()[0];
            let bytes = chunk.encode(shard.columns(), vec![1; 99]);
            assert_eq!(read.decode(&bytes), Ok(shard.columns()), "{name}");
            assert!(read.encode(shard.columns(), Vec::new()) == bytes, "{name}");
            assert_eq!(read.shape(), chunk.shape(), "{name}");
            assert_eq!(read.layout(), chunk.layout(), "{name}");
            assert_eq!(read.max_nonzeros(), shard.max_nonzeros(), "{name}");
        }
    }

    #[test]
    fn every_damaged_byte_is_an_error() {
        for (name, shard) in shards() {
            let bytes = shard.chunks()[0].encode(shard.columns(), Vec::new());
            let stride = 1 + bytes.len() / 2_000;
            for place in (0..bytes.len()).step_by(stride) {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << (place % 8);
                assert!(Chunk::default().decode(&damaged).is_err(), "{name} {place}");
                let cut = &bytes[..place];
                assert!(Chunk::default().decode(cut).is_err(), "{name} {place}");
            }
        }
    }

    #[test]
    fn bytes_under_a_right_checksum_are_a_chunk_or_an_error_and_never_a_panic() {
        for (name, shard) in shards() {
            let bytes = shard.chunks()[0].encode(shard.columns(), Vec::new());
            let stride = 1 + bytes.len() / 3_000;
            let mut read = 0;
            for place in (16..bytes.len()).step_by(stride) {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << (place % 8);
                let sum = checksum(&changed[16..]);
                changed[8..16].copy_from_slice(&sum.to_le_bytes());
                let mut chunk = Chunk::default();
                if let Ok(columns) = chunk.decode(&changed) {
                    read += 1;
                    chunk.for_each_row(|_, found, _, _| {
                        assert!(found.iter().all(|column| (*column as usize) < columns));
                    });
                }
            }
            assert!(read > 0, "{name}: values may be any");
        }
    }
}
