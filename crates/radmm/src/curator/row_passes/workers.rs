//! Passes over chunks that other processes of the party hold: its workers.
//!
//! Each worker holds the chunks of a range of numbers. It is sent a pass and the range of chunks in use to sum over, and replies
//! with one sum for each part of the pass in that range. A matrix is summed in order over the chunks of its part, so that a part
//! whose chunks are with several workers is passed on from one to the next.
//!
//! Privacy: a worker computes unprotected sums of rows. Workers are inside the party, like its disk: requests and replies must
//! not leave it.

use std::ops::Range;

use super::{LocalChunks, Pass, PassCache, PassFailed, RowPasses};
use crate::curator::bytes::{ByteReader, ByteWriter, WrongBytes, checksum};
use crate::curator::kernel::passes::CompensatedSum;
use crate::curator::rows::chunk::{CHUNK_ROWS, Chunk, ChunkShape};
use crate::curator::rows::shard::Shard;
use crate::exec::ChunkExecutor;

const HOLDING: &[u8; 8] = b"radmmhd1";
const REQUEST: &[u8; 8] = b"radmmrq1";
const REPLY: &[u8; 8] = b"radmmrp1";

/// The version of the program. Another one may compute other bits from the same rows.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest number of numbers in the replies to requests that are sent at once, unless one part alone has more: 256 MB.
const NUMBERS_AT_ONCE: usize = 1 << 25;

/// Carries requests to a party's workers and brings their replies back.
pub trait ChunkWorkers: Send + Sync {
    /// Sends each request to the worker of this index, and returns the replies in the order of the requests.
    ///
    /// A request holds everything that its reply depends on beside the rows. So a request to a worker that is lost can be sent
    /// again, to the same worker after a restart or to another one that holds the same chunks.
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed>;
}

/// A request to a worker.
pub struct WorkerRequest {
    /// The index of the worker.
    pub worker: usize,
    /// The request, for [`ChunkHolder::reply`].
    pub bytes: Vec<u8>,
}

/// The chunks that one worker holds.
// Privacy: these are rows. It has no accessor, and is not Clone, Debug or Serialize. What it replies are unprotected sums, for the
// party's own curator alone.
pub struct ChunkHolder {
    shard: Shard,
    holding: Holding,
    cache: PassCache,
}

impl ChunkHolder {
    /// The number of rows of every chunk but the party's last one.
    pub const CHUNK_ROWS: usize = CHUNK_ROWS;

    /// Holds a party's rows from this chunk on. All chunks but the party's last one must be full.
    pub fn new(shard: Shard, first_chunk: usize) -> Result<Self, PassFailed> {
        let mut sum = Vec::new();
        let mut buffer = Vec::new();
        for k in 0..shard.shapes().len() {
            buffer = shard.with_chunk(k, |chunk| chunk.encode(shard.columns(), buffer))?;
            sum.extend(checksum(&buffer).to_le_bytes());
        }
        let holding = Holding {
            columns: shard.columns(),
            first: first_chunk,
            max_nonzeros: shard.max_nonzeros(),
            identity: checksum(&sum),
            shapes: shard.shapes().to_vec(),
        };
        Ok(Self {
            shard,
            holding,
            cache: PassCache::default(),
        })
    }

    /// Takes chunks from the bytes that [`encode`](Self::encode) gave; `first_chunk` is the number of the first one.
    pub fn decode(first_chunk: usize, chunks: &[Vec<u8>]) -> Result<Self, PassFailed> {
        let mut shard: Option<Shard> = None;
        for (number, bytes) in (first_chunk..).zip(chunks) {
            let mut chunk = Chunk::default();
            let wrong = |cause| PassFailed::new(format!("the bytes of chunk {number}: {cause}"));
            let columns = chunk.decode(bytes).map_err(wrong)?;
            let shard = shard.get_or_insert_with(|| Shard::empty(columns));
            if shard.columns() != columns {
                return Err(wrong(WrongBytes("they are of rows with other columns")));
            }
            shard.push_chunk(chunk);
        }
        let shard = shard.ok_or_else(|| PassFailed::new("there are no chunks"))?;
        Self::new(shard, first_chunk)
    }

    /// Returns each chunk as bytes, for a worker in another process.
    // Privacy: these bytes are rows, and as sensitive as the table that they came from.
    pub fn encode(&self) -> Result<Vec<Vec<u8>>, PassFailed> {
        let encode = |k| {
            let columns = self.shard.columns();
            let chunk = |chunk: &Chunk| chunk.encode(columns, Vec::new());
            self.shard.with_chunk(k, chunk)
        };
        (0..self.shard.shapes().len()).map(encode).collect()
    }

    /// Returns a description of the chunks, for [`WorkerRows::new`].
    pub fn describe(&self) -> Vec<u8> {
        self.holding.encode()
    }

    /// Replies to a request.
    pub fn reply(
        &self,
        request: &[u8],
        executor: &dyn ChunkExecutor,
    ) -> Result<Vec<u8>, PassFailed> {
        let wrong = |cause: WrongBytes| PassFailed::new(format!("a worker's request: {cause}"));
        let parsed = Request::decode(request).map_err(wrong)?;
        if parsed.version != version() {
            return Err(PassFailed::new(format!(
                "a worker has radmm {VERSION}, and the party another version: install the same one for all workers"
            )));
        }
        if parsed.identity != self.holding.identity {
            return Err(PassFailed::new(
                "a worker holds other rows than it did when the party started: its source has changed; start the party again",
            ));
        }
        let rows = LocalChunks::new(&self.shard, executor, &self.cache)
            .numbered_from(self.holding.first, parsed.chunks);
        if !rows.can_run(&parsed.pass, &parsed.positions, parsed.carry.as_deref()) {
            return Err(wrong(WrongBytes(
                "it is about rows that this worker does not hold",
            )));
        }
        let mut writer = ByteWriter::new(REPLY, Vec::new());
        writer.word(checksum(request));
        rows.run_range(&parsed.pass, parsed.positions, parsed.carry, &mut |sum| {
            writer.numbers(&sum.sum);
            writer.numbers(&sum.correction);
        })?;
        Ok(writer.finish())
    }
}

/// The description of a worker's chunks.
struct Holding {
    columns: usize,
    /// The number of the first chunk.
    first: usize,
    max_nonzeros: u32,
    /// A checksum of the chunks.
    identity: u64,
    shapes: Vec<ChunkShape>,
}

impl Holding {
    fn encode(&self) -> Vec<u8> {
        let mut writer = ByteWriter::new(HOLDING, Vec::new());
        writer.count(self.columns);
        writer.count(self.first);
        writer.word(u64::from(self.max_nonzeros));
        writer.word(self.identity);
        writer.count(self.shapes.len());
        for shape in &self.shapes {
            let counts = [
                shape.rows,
                shape.dense,
                shape.codes,
                shape.groups,
                shape.values,
                shape.sparse_entries,
            ];
            counts.iter().for_each(|count| writer.count(*count));
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, WrongBytes> {
        let mut reader = ByteReader::new(HOLDING, bytes)?;
        let (columns, first) = (reader.count()?, reader.count()?);
        let max_nonzeros = reader.word()? as u32;
        let identity = reader.word()?;
        let count = reader.count()?;
        let mut shapes = Vec::new();
        for _ in 0..count {
            shapes.push(ChunkShape {
                rows: reader.count()?,
                dense: reader.count()?,
                codes: reader.count()?,
                groups: reader.count()?,
                values: reader.count()?,
                sparse_entries: reader.count()?,
            });
        }
        reader.finish()?;
        Ok(Self {
            columns,
            first,
            max_nonzeros,
            identity,
            shapes,
        })
    }
}

/// Returns the version of the program as a number.
fn version() -> u64 {
    checksum(VERSION.as_bytes())
}

/// A pass over some of the chunks in use.
struct Request {
    /// The version of the party's program.
    version: u64,
    identity: u64,
    /// The number of chunks of the party.
    chunks: usize,
    pass: Pass,
    /// The chunks to sum over, by their positions among those in use.
    positions: Range<usize>,
    /// The sum of the first part over the chunks before these, if the part began earlier.
    carry: Option<Vec<f64>>,
}

impl Request {
    fn encode(&self) -> Vec<u8> {
        let mut writer = ByteWriter::new(REQUEST, Vec::new());
        writer.word(self.version);
        writer.word(self.identity);
        writer.count(self.chunks);
        self.pass.write(&mut writer);
        writer.count(self.positions.start);
        writer.count(self.positions.end);
        writer.byte(u8::from(self.carry.is_some()));
        if let Some(carry) = &self.carry {
            writer.numbers(carry);
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, WrongBytes> {
        let mut reader = ByteReader::new(REQUEST, bytes)?;
        let request = Self {
            version: reader.word()?,
            identity: reader.word()?,
            chunks: reader.count()?,
            pass: Pass::read(&mut reader)?,
            positions: reader.count()?..reader.count()?,
            carry: match reader.byte()? {
                0 => None,
                _ => Some(reader.numbers()?),
            },
        };
        reader.finish()?;
        Ok(request)
    }
}

/// The rows of a party whose chunks are with its workers.
pub struct WorkerRows {
    columns: usize,
    max_nonzeros: u32,
    shapes: Vec<ChunkShape>,
    /// The workers in the order of their chunks.
    places: Vec<WorkerPlace>,
    workers: Box<dyn ChunkWorkers>,
}

/// A worker's index, the numbers of its chunks, and their checksum.
struct WorkerPlace {
    worker: usize,
    chunks: Range<usize>,
    identity: u64,
}

/// A request in preparation: consecutive parts whose next chunks are with one worker.
struct Errand<'a> {
    place: &'a WorkerPlace,
    /// The parts, by their numbers.
    parts: Range<usize>,
    /// The chunks, by their positions among those in use.
    positions: Range<usize>,
}

impl WorkerRows {
    /// Takes the rows of a party from the descriptions of its workers' chunks, by the workers' indices.
    pub fn new(
        descriptions: &[Vec<u8>],
        workers: Box<dyn ChunkWorkers>,
    ) -> Result<Self, PassFailed> {
        let mut holdings = Vec::with_capacity(descriptions.len());
        for (worker, description) in descriptions.iter().enumerate() {
            let holding = Holding::decode(description).map_err(|cause| {
                PassFailed::new(format!("the description of worker {worker}: {cause}"))
            })?;
            holdings.push((worker, holding));
        }
        holdings.sort_by_key(|(_, holding)| holding.first);
        let columns = holdings.first().map_or(0, |(_, first)| first.columns);
        let mut rows = Self {
            columns,
            max_nonzeros: 0,
            shapes: Vec::new(),
            places: Vec::new(),
            workers,
        };
        for (worker, holding) in holdings {
            let next = rows.shapes.len();
            if holding.first != next || holding.columns != columns {
                return Err(PassFailed::new(format!(
                    "worker {worker} holds rows from chunk {} on, with {} columns; expected chunk {next} and {columns} columns: \
                     give every chunk to one worker",
                    holding.first, holding.columns
                )));
            }
            rows.shapes.extend(holding.shapes);
            rows.max_nonzeros = rows.max_nonzeros.max(holding.max_nonzeros);
            rows.places.push(WorkerPlace {
                worker,
                chunks: next..rows.shapes.len(),
                identity: holding.identity,
            });
        }
        let Some((_, others)) = rows.shapes.split_last() else {
            return Err(PassFailed::new("there are no workers"));
        };
        // Chunks are cut by the number of a row, so that they are the same wherever they are made.
        if let Some(k) = others.iter().position(|chunk| chunk.rows != CHUNK_ROWS) {
            return Err(PassFailed::new(format!(
                "chunk {k} is not full, and is not the last one: cut rows at multiples of {CHUNK_ROWS}"
            )));
        }
        Ok(rows)
    }

    /// Returns the largest number of non-zeros of a row. It comes from the rows.
    pub(in crate::curator) fn max_nonzeros(&self) -> u32 {
        self.max_nonzeros
    }

    /// Returns `B`, the number of rows; public.
    pub fn rows(&self) -> usize {
        self.shapes.iter().map(|chunk| chunk.rows).sum()
    }

    /// Returns `d`, the number of columns; public.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Computes the sums of some parts of a pass, in as many rounds as there are workers to a part.
    fn run_parts(
        &self,
        pass: &Pass,
        parts: &[Range<usize>],
    ) -> Result<Vec<CompensatedSum>, PassFailed> {
        let mut sums: Vec<Option<CompensatedSum>> = vec![None; parts.len()];
        // The first chunk of each part that is not in its sum yet.
        let mut next: Vec<usize> = parts.iter().map(|part| part.start).collect();
        loop {
            let errands = self.errands(pass, parts, &next);
            if errands.is_empty() {
                return Ok(sums.into_iter().flatten().collect());
            }
            let request = |errand: &Errand<'_>| WorkerRequest {
                worker: errand.place.worker,
                bytes: Request {
                    version: version(),
                    identity: errand.place.identity,
                    chunks: self.shapes.len(),
                    pass: pass.clone(),
                    positions: errand.positions.clone(),
                    carry: sums[errand.parts.start].as_ref().map(|sum| sum.sum.clone()),
                }
                .encode(),
            };
            let requests: Vec<WorkerRequest> = errands.iter().map(request).collect();
            let replies = self.workers.ask(&requests)?;
            if replies.len() != requests.len() {
                return Err(PassFailed::new("a worker did not reply"));
            }
            for ((errand, request), reply) in errands.iter().zip(&requests).zip(&replies) {
                let found = self.read_reply(pass, &parts[errand.parts.clone()], request, reply);
                let found = found.map_err(|cause| {
                    let worker = errand.place.worker;
                    PassFailed::new(format!("the reply of worker {worker}: {cause}"))
                })?;
                for (part, sum) in errand.parts.clone().zip(found) {
                    sums[part] = Some(sum);
                    next[part] = parts[part].end.min(errand.positions.end);
                }
            }
        }
    }

    /// Returns what is to be asked next: for each part that is not complete, its next chunks with one worker.
    fn errands(&self, pass: &Pass, parts: &[Range<usize>], next: &[usize]) -> Vec<Errand<'_>> {
        let mut errands: Vec<Errand<'_>> = Vec::new();
        for (number, (part, &position)) in parts.iter().zip(next).enumerate() {
            let holds = |place: &&WorkerPlace| place.chunks.contains(&(position * pass.stride));
            if position == part.end {
                continue;
            }
            let Some(place) = self.places.iter().find(holds) else {
                continue;
            };
            let end = part.end.min(place.chunks.end.div_ceil(pass.stride));
            match errands.last_mut() {
                Some(last)
                    if last.place.worker == place.worker
                        && last.positions.end == position
                        && position == part.start =>
                {
                    last.positions.end = end;
                    last.parts.end = number + 1;
                }
                _ => errands.push(Errand {
                    place,
                    parts: number..number + 1,
                    positions: position..end,
                }),
            }
        }
        errands
    }

    fn read_reply(
        &self,
        pass: &Pass,
        parts: &[Range<usize>],
        request: &WorkerRequest,
        reply: &[u8],
    ) -> Result<Vec<CompensatedSum>, WrongBytes> {
        let mut reader = ByteReader::new(REPLY, reply)?;
        if reader.word()? != checksum(&request.bytes) {
            return Err(WrongBytes("it is to another request"));
        }
        let mut sums = Vec::with_capacity(parts.len());
        for part in parts {
            let chunks = self.shapes.iter().step_by(pass.stride);
            let chunks = chunks.skip(part.start).take(part.len());
            let rows = chunks.map(|chunk| chunk.rows).sum();
            let (sum, correction) = (reader.numbers()?, reader.numbers()?);
            if (sum.len(), correction.len()) != pass.lengths(self.columns, rows) {
                return Err(WrongBytes("it has another length than the sum has"));
            }
            sums.push(CompensatedSum { sum, correction });
        }
        reader.finish()?;
        Ok(sums)
    }
}

impl RowPasses for &WorkerRows {
    fn columns(&self) -> usize {
        self.columns
    }

    fn chunks(&self) -> &[ChunkShape] {
        &self.shapes
    }

    fn run(&self, pass: &Pass, add: &mut dyn FnMut(CompensatedSum)) -> Result<(), PassFailed> {
        let in_use = pass.chunks_in_use(self.shapes.len());
        let parts: Vec<Range<usize>> = pass.parts(in_use).collect();
        let (sum, correction) = pass.lengths(self.columns, CHUNK_ROWS);
        let at_once = (NUMBERS_AT_ONCE / (sum + correction)).max(1);
        for batch in parts.chunks(at_once) {
            self.run_parts(pass, batch)?.into_iter().for_each(&mut *add);
        }
        Ok(())
    }
}
