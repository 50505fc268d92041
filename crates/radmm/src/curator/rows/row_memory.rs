//! The memory that chunks of rows may take, and the storage of those beyond it.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::chunk::Chunk;
use crate::curator::bytes::{ByteReader, ByteWriter, WrongBytes};
use crate::curator::row_passes::PassFailed;

/// Storage of a party's own, for chunks that do not fit in memory.
///
/// Chunks are appended and never changed. Whatever is read is checked, so that damage is an error and changes no bit of an
/// answer.
// Privacy: what is appended are rows. Storage is as sensitive as the table that they came from.
pub trait ChunkStorage: Send + Sync {
    /// Appends bytes and returns the position of the first one.
    fn append(&self, bytes: &[u8]) -> Result<u64, PassFailed>;

    /// Fills `buffer` with the bytes from a position on.
    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<(), PassFailed>;
}

/// The memory that chunks of rows may take, shared by all shards that are built with it. Chunks beyond it are stored.
#[derive(Clone)]
pub struct RowMemory(Arc<Shared>);

struct Shared {
    /// The bytes that are left.
    left: Mutex<u64>,
    storage: Box<dyn ChunkStorage>,
}

impl fmt::Debug for RowMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowMemory").finish_non_exhaustive()
    }
}

impl RowMemory {
    /// Allows chunks to take so many bytes of memory.
    pub fn new(bytes: u64, storage: Box<dyn ChunkStorage>) -> Self {
        let left = Mutex::new(bytes);
        Self(Arc::new(Shared { left, storage }))
    }

    /// Takes bytes of memory, if they are left.
    pub fn take(&self, bytes: u64) -> bool {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = *left >= bytes;
        if enough {
            *left -= bytes;
        }
        enough
    }

    /// Gives back bytes of memory that were taken.
    pub fn give_back(&self, bytes: u64) {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left += bytes;
    }

    /// Stores bytes of rows that are not encoded yet.
    pub fn store(&self, bytes: &[u8]) -> Result<StoredBytes, PassFailed> {
        let mut writer = ByteWriter::new(BYTES, Vec::new());
        writer.items(bytes, |byte| [byte]);
        self.append(&writer.finish())
    }

    /// Keeps a chunk in memory if there is room for it, and stores it otherwise.
    pub(super) fn place(&self, chunk: Chunk, columns: usize) -> Result<PlacedChunk, PassFailed> {
        if self.take(chunk.bytes() as u64) {
            return Ok(PlacedChunk::InMemory(Box::new(chunk)));
        }
        let bytes = chunk.encode(columns, Vec::new());
        Ok(PlacedChunk::Stored(self.append(&bytes)?))
    }

    fn append(&self, bytes: &[u8]) -> Result<StoredBytes, PassFailed> {
        Ok(StoredBytes {
            position: self.0.storage.append(bytes)?,
            length: bytes.len(),
            checksum: ByteReader::checksum_of(bytes),
            memory: self.clone(),
        })
    }
}

/// A chunk of a shard.
pub(super) enum PlacedChunk {
    InMemory(Box<Chunk>),
    Stored(StoredBytes),
}

/// A number for each row of a chunk, in memory if the chunk is.
pub(in crate::curator) enum RowNumbers {
    InMemory(Vec<f64>),
    Stored(StoredBytes),
}

const NUMBERS: &[u8; 8] = b"radmmnr1";

impl RowNumbers {
    /// Returns the numbers.
    pub(in crate::curator) fn get(&self) -> Result<Cow<'_, [f64]>, PassFailed> {
        let stored = match self {
            Self::InMemory(numbers) => return Ok(numbers.into()),
            Self::Stored(stored) => stored,
        };
        let numbers = stored.read(&mut Vec::new(), |bytes| {
            let mut reader = ByteReader::new(NUMBERS, bytes)?;
            let numbers = reader.numbers()?;
            reader.finish().map(|()| numbers)
        });
        numbers.map(Cow::Owned)
    }
}

const BYTES: &[u8; 8] = b"radmmby1";

/// The place of bytes in storage.
pub struct StoredBytes {
    position: u64,
    length: usize,
    /// The checksum that they begin with.
    checksum: u64,
    memory: RowMemory,
}

/// A chunk as it was read last, in buffers that are used again.
#[derive(Default)]
pub(super) struct ChunkBuffer {
    bytes: Vec<u8>,
    chunk: Chunk,
}

impl StoredBytes {
    /// Stores a number for each row of the chunk beside it.
    pub(super) fn store_numbers(&self, numbers: &[f64]) -> Result<RowNumbers, PassFailed> {
        let mut writer = ByteWriter::new(NUMBERS, Vec::new());
        writer.numbers(numbers);
        Ok(RowNumbers::Stored(self.memory.append(&writer.finish())?))
    }

    /// Overwrites a buffer with the bytes that were stored by [`RowMemory::store`].
    pub fn read_into(&self, buffer: &mut Vec<u8>) -> Result<(), PassFailed> {
        let mut stored = Vec::new();
        self.read(&mut stored, |bytes| {
            let mut reader = ByteReader::new(BYTES, bytes)?;
            reader.items(reader.left(), buffer, |[byte]| byte)
        })
    }

    /// Reads the chunk into a buffer.
    pub(super) fn read_chunk<'a>(
        &self,
        buffer: &'a mut ChunkBuffer,
    ) -> Result<&'a Chunk, PassFailed> {
        let ChunkBuffer { bytes, chunk } = buffer;
        self.read(bytes, |bytes| chunk.decode(bytes))?;
        Ok(chunk)
    }

    /// Reads the bytes into a buffer, and decodes them.
    fn read<T>(
        &self,
        buffer: &mut Vec<u8>,
        decode: impl FnOnce(&[u8]) -> Result<T, WrongBytes>,
    ) -> Result<T, PassFailed> {
        buffer.resize(self.length, 0);
        self.memory.0.storage.read(self.position, buffer)?;
        let decoded = match ByteReader::checksum_of(buffer) == self.checksum {
            true => decode(buffer),
            false => Err(WrongBytes("they are not those that were written")),
        };
        decoded.map_err(|cause| {
            PassFailed::new(format!(
                "stored rows cannot be read back: {cause}; check the disk, and start again"
            ))
        })
    }
}
