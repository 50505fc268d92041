//! Bytes between a party, its files and its workers: little-endian numbers under a checksum.

use thiserror::Error;

/// Bytes that are not what was written: cut, damaged, of another version, or something else altogether.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct WrongBytes(pub(in crate::curator) &'static str);

/// The number of bytes before the content: the kind with its version, and the checksum.
const HEADER: usize = 16;

/// Writes numbers after a header that tells their kind.
pub(in crate::curator) struct ByteWriter(Vec<u8>);

impl ByteWriter {
    /// Begins bytes of a kind, whose last letter is the version. They overwrite the buffer.
    pub(in crate::curator) fn new(kind: &[u8; 8], mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.extend_from_slice(kind);
        buffer.extend_from_slice(&[0; 8]);
        Self(buffer)
    }

    pub(in crate::curator) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(in crate::curator) fn count(&mut self, value: usize) {
        self.0.extend_from_slice(&(value as u64).to_le_bytes());
    }

    pub(in crate::curator) fn word(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(in crate::curator) fn number(&mut self, value: f64) {
        self.word(value.to_bits());
    }

    /// Writes items without their count.
    pub(in crate::curator) fn items<const N: usize, T: Copy>(
        &mut self,
        items: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) {
        self.0.reserve(N * items.len());
        items
            .iter()
            .for_each(|item| self.0.extend_from_slice(&bytes(*item)));
    }

    /// Writes the count of numbers and the numbers.
    pub(in crate::curator) fn numbers(&mut self, numbers: &[f64]) {
        self.count(numbers.len());
        self.items(numbers, f64::to_le_bytes);
    }

    /// Writes the checksum, and returns all bytes.
    pub(in crate::curator) fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0[HEADER..]);
        self.0[8..HEADER].copy_from_slice(&sum.to_le_bytes());
        self.0
    }
}

/// Reads what a [`ByteWriter`] wrote.
pub(in crate::curator) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// Checks the kind and the checksum.
    pub(in crate::curator) fn new(kind: &[u8; 8], bytes: &'a [u8]) -> Result<Self, WrongBytes> {
        let (header, content) = bytes
            .split_at_checked(HEADER)
            .ok_or(WrongBytes("they are cut off"))?;
        if header[..7] != kind[..7] {
            return Err(WrongBytes("they are something else"));
        }
        if header[7] != kind[7] {
            return Err(WrongBytes("another version of the program wrote them"));
        }
        if header[8..] != checksum(content).to_le_bytes() {
            return Err(WrongBytes("they are damaged or cut off"));
        }
        Ok(Self(content))
    }

    /// Returns the checksum that bytes begin with, or zero if there is none.
    pub(in crate::curator) fn checksum_of(bytes: &[u8]) -> u64 {
        let word = bytes.get(8..HEADER).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_le_bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WrongBytes> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(in crate::curator) fn byte(&mut self) -> Result<u8, WrongBytes> {
        Ok(self.take(1)?[0])
    }

    pub(in crate::curator) fn word(&mut self) -> Result<u64, WrongBytes> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub(in crate::curator) fn count(&mut self) -> Result<usize, WrongBytes> {
        usize::try_from(self.word()?).map_err(|_| SHORT)
    }

    pub(in crate::curator) fn number(&mut self) -> Result<f64, WrongBytes> {
        Ok(f64::from_bits(self.word()?))
    }

    /// Overwrites `items` with so many.
    pub(in crate::curator) fn items<const N: usize, T>(
        &mut self,
        count: usize,
        items: &mut Vec<T>,
        item: impl Fn([u8; N]) -> T,
    ) -> Result<(), WrongBytes> {
        let bytes = self.take(count.checked_mul(N).ok_or(SHORT)?)?;
        items.clear();
        items.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| item(*bytes)));
        Ok(())
    }

    /// Reads numbers after their count.
    pub(in crate::curator) fn numbers(&mut self) -> Result<Vec<f64>, WrongBytes> {
        let count = self.count()?;
        let mut numbers = Vec::new();
        self.items(count, &mut numbers, f64::from_le_bytes)?;
        Ok(numbers)
    }

    /// Returns the number of bytes that are left.
    pub(in crate::curator) fn left(&self) -> usize {
        self.0.len()
    }

    /// Checks that everything was read.
    pub(in crate::curator) fn finish(self) -> Result<(), WrongBytes> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(WrongBytes("there are more of them than there should be")),
        }
    }
}

const SHORT: WrongBytes = WrongBytes("they are shorter than they say");

/// The number of independent lanes of a checksum: a multiplication waits for the one before it.
const LANES: usize = 4;

/// Returns a checksum of bytes and their number.
///
/// Each step is a bijection of the lane for a given word, and of the word for a given lane. So a change within one word always
/// changes the sum, and any other change goes unnoticed once in 2⁶⁴ times. It finds accidents, not forgeries.
pub(in crate::curator) fn checksum(bytes: &[u8]) -> u64 {
    let step =
        |lane: u64, word: u64| (lane.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut lanes: [u64; LANES] = [1, 2, 3, 4];
    let (rounds, rest) = bytes.as_chunks::<{ 8 * LANES }>();
    for round in rounds {
        let words = round.as_chunks::<8>().0;
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut sum = lanes.into_iter().fold(bytes.len() as u64, step);
    for rest in rest.chunks(8) {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        sum = step(sum, u64::from_le_bytes(word));
    }
    sum ^ (sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &[u8; 8] = b"radmmts1";

    fn written() -> Vec<u8> {
        let mut writer = ByteWriter::new(KIND, vec![9; 3]);
        writer.byte(7);
        writer.numbers(&[0.5, -0.0, f64::NAN]);
        writer.items(&[1u16, 2, 3], u16::to_le_bytes);
        writer.finish()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = written();
        let mut reader = ByteReader::new(KIND, &bytes).unwrap();
        assert_eq!(reader.byte(), Ok(7));
        let numbers = reader.numbers().unwrap();
        let bits: Vec<u64> = numbers.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [0.5f64, -0.0, f64::NAN].map(f64::to_bits));
        let mut small = vec![0u16; 9];
        reader.items(3, &mut small, u16::from_le_bytes).unwrap();
        assert_eq!(small, [1, 2, 3]);
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found() {
        let bytes = written();
        for place in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place / 8] ^= 1 << (place % 8);
            assert!(ByteReader::new(KIND, &damaged).is_err(), "bit {place}");
        }
        for length in 0..bytes.len() {
            assert!(ByteReader::new(KIND, &bytes[..length]).is_err(), "{length}");
        }
        let zeros = [bytes.clone(), vec![0]].concat();
        assert!(ByteReader::new(KIND, &zeros).is_err());
    }

    #[test]
    fn another_version_and_another_kind_are_told_apart() {
        let mut newer = written();
        newer[7] += 1;
        let error = |bytes: &[u8]| ByteReader::new(KIND, bytes).err().unwrap().to_string();
        assert!(error(&newer).contains("version"));
        newer[0] += 1;
        assert!(error(&newer).contains("something else"));
    }

    #[test]
    fn counts_beyond_the_bytes_are_errors() {
        for count in [4, usize::MAX, usize::MAX / 8 + 2] {
            let mut writer = ByteWriter::new(KIND, Vec::new());
            writer.count(count);
            writer.items(&[1.0, 2.0, 3.0], f64::to_le_bytes);
            let bytes = writer.finish();
            let mut reader = ByteReader::new(KIND, &bytes).unwrap();
            assert!(reader.numbers().is_err(), "{count}");
        }
    }

    #[test]
    fn swapped_words_change_the_checksum() {
        let words: Vec<u8> = (0..64u64).flat_map(|k| (k * k).to_le_bytes()).collect();
        for (i, j) in [(0, 1), (0, 4), (3, 60), (7, 8)] {
            let mut swapped = words.clone();
            for k in 0..8 {
                swapped.swap(8 * i + k, 8 * j + k);
            }
            assert_ne!(checksum(&words), checksum(&swapped), "{i} {j}");
        }
    }
}
