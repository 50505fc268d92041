//! The memory that chunks of rows may take, and the storage of those beyond it.

use std::sync::{Arc, Mutex, PoisonError};

use super::chunk::Chunk;
use crate::curator::bytes::{ByteReader, WrongBytes};
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

impl RowMemory {
    /// Allows chunks to take so many bytes of memory.
    pub fn new(bytes: u64, storage: Box<dyn ChunkStorage>) -> Self {
        let left = Mutex::new(bytes);
        Self(Arc::new(Shared { left, storage }))
    }

    /// Takes bytes of memory, if they are left.
    fn take(&self, bytes: u64) -> bool {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = *left >= bytes;
        if enough {
            *left -= bytes;
        }
        enough
    }

    /// Keeps a chunk in memory if there is room for it, and stores it otherwise.
    pub(super) fn place(&self, chunk: Chunk, columns: usize) -> Result<PlacedChunk, PassFailed> {
        if self.take(chunk.bytes() as u64) {
            return Ok(PlacedChunk::InMemory(Box::new(chunk)));
        }
        let bytes = chunk.encode(columns, Vec::new());
        let position = self.0.storage.append(&bytes)?;
        Ok(PlacedChunk::Stored(StoredChunk {
            position,
            length: bytes.len(),
            checksum: ByteReader::checksum_of(&bytes),
            memory: self.clone(),
        }))
    }
}

/// A chunk of a shard.
pub(super) enum PlacedChunk {
    InMemory(Box<Chunk>),
    Stored(StoredChunk),
}

/// The place of a chunk in storage.
pub(super) struct StoredChunk {
    position: u64,
    length: usize,
    /// The checksum that its bytes begin with.
    checksum: u64,
    memory: RowMemory,
}

/// A chunk as it was read last, in buffers that are used again.
#[derive(Default)]
pub(super) struct ChunkBuffer {
    bytes: Vec<u8>,
    chunk: Chunk,
}

impl StoredChunk {
    /// Reads the chunk into a buffer.
    pub(super) fn read<'a>(&self, buffer: &'a mut ChunkBuffer) -> Result<&'a Chunk, PassFailed> {
        let ChunkBuffer { bytes, chunk } = buffer;
        bytes.resize(self.length, 0);
        self.memory.0.storage.read(self.position, bytes)?;
        let decoded = match ByteReader::checksum_of(bytes) == self.checksum {
            true => chunk.decode(bytes),
            false => Err(WrongBytes("they are not those that were written")),
        };
        match decoded {
            Ok(_) => Ok(chunk),
            Err(cause) => Err(PassFailed::new(format!(
                "stored rows cannot be read back: {cause}; check the disk, and start again"
            ))),
        }
    }
}
