//! Records one after the other, each on the disk before the next is begun, and never changed.
//!
//! ```text
//! mark 8 · sequence 8 · length 4 · kind 4 · hash of the record before 32 · check of these 8 · hash 32 · body · zeros
//! ```
//!
//! A record begins a sector of the disk and fills up its last one, so that no sector is written twice. After the last record there
//! are zeros, written ahead: then adding one changes neither the length of the file nor where it is on the disk, and takes one
//! write.
//!
//! *What a power failure leaves* of the last record is some of its sectors, each whole or still zeros; nothing that was on the disk
//! before. Exactly that is taken for a record that was never finished, and removed: whoever wrote it was not told that it was
//! there, so nothing came of it. Everything else is damage and stops whoever opens the journal, above all anything wrong
//! that is followed by another record, and a hash that is wrong although no sector is missing.

use std::io;

use sha2::{Digest, Sha256};

use super::medium::Medium;

/// What a disk writes in one go.
const SECTOR: usize = 512;

/// Before the body.
const HEADER: usize = 96;

/// So many zeros are written ahead.
const AHEAD: usize = 1 << 20;

/// With what the first record begins; the others begin with what nobody can guess who does not know the first.
const FIRST: [u8; 8] = *b"radmm v1";

/// Why a journal cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// The disk.
    Disk(io::Error),
    /// What is there cannot be right.
    Damaged(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// One record.
pub(super) struct Record {
    /// Where it is.
    pub(super) at: u64,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// All records, and the end to which more are added.
pub(super) struct Journal {
    medium: Box<dyn Medium>,
    mark: [u8; 8],
    /// The hash of the last record.
    last: [u8; 32],
    sequence: u64,
    /// Where the next record goes.
    end: u64,
    /// Of the file.
    length: u64,
    /// A write has failed, and what is on the disk is not known.
    failed: bool,
}

/// What is known of a record from its first sector.
struct Header {
    mark: [u8; 8],
    sequence: u64,
    length: u32,
    kind: u8,
    before: [u8; 32],
}

impl Header {
    /// With its check, and with the hash of the whole record.
    fn to_bytes(&self, body: &[u8]) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.mark);
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        bytes[20] = self.kind;
        bytes[24..56].copy_from_slice(&self.before);
        let check: [u8; 32] = Sha256::digest(&bytes[..56]).into();
        bytes[56..64].copy_from_slice(&check[..8]);
        let hash = hash(&bytes, body);
        bytes[64..].copy_from_slice(&hash);
        bytes
    }

    /// `None` if its check is wrong.
    fn from_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        let check: [u8; 32] = Sha256::digest(&bytes[..56]).into();
        let number = |at: usize| u64::from_le_bytes(array(&bytes[at..at + 8]));
        (bytes[56..64] == check[..8]).then(|| Self {
            mark: array(&bytes[..8]),
            sequence: number(8),
            length: u32::from_le_bytes(array(&bytes[16..20])),
            kind: bytes[20],
            before: array(&bytes[24..56]),
        })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

fn hash(header: &[u8; HEADER], body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(&header[..64]);
    hash.update(body);
    hash.finalize().into()
}

/// With its header, in sectors.
fn extent(body: usize) -> usize {
    (HEADER + body).next_multiple_of(SECTOR)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Journal {
    /// A new one, with its first record.
    pub(super) fn create(medium: Box<dyn Medium>, kind: u8, body: &[u8]) -> Result<Self, Fault> {
        let mut journal = Self::before_all(medium)?;
        journal.add(kind, body)?;
        journal.name();
        Ok(journal)
    }

    /// One that is there. `each` is told every record, and may find that it cannot be right.
    pub(super) fn open(
        medium: Box<dyn Medium>,
        mut each: impl FnMut(&Record) -> Result<(), String>,
    ) -> Result<Self, Fault> {
        let mut journal = Self::before_all(medium)?;
        while let Some((record, header)) = journal.next()? {
            let wrong = |what| Fault::Damaged(format!("record {}: {what}", journal.sequence));
            each(&record).map_err(wrong)?;
            journal.end += extent(record.body.len()) as u64;
            journal.last = array(&header[64..]);
            if journal.sequence == 0 {
                journal.name();
            }
            journal.sequence += 1;
        }
        match journal.sequence {
            0 => Err(Fault::Damaged("it is empty".to_owned())),
            _ => {
                journal.clear()?;
                Ok(journal)
            }
        }
    }

    /// Before its first record.
    fn before_all(medium: Box<dyn Medium>) -> Result<Self, Fault> {
        Ok(Self {
            length: medium.len()?,
            medium,
            mark: FIRST,
            last: [0; 32],
            sequence: 0,
            end: 0,
            failed: false,
        })
    }

    /// From now on records begin with what follows from the first one.
    fn name(&mut self) {
        let hash: [u8; 32] = Sha256::new()
            .chain_update(b"radmm mark v1\0")
            .chain_update(self.last)
            .finalize()
            .into();
        self.mark = array(&hash[..8]);
    }

    /// The record at the end, if there is a whole one.
    fn next(&self) -> Result<Option<(Record, [u8; HEADER])>, Fault> {
        let at = self.end;
        let damaged = |what: &str| Err(Fault::Damaged(format!("record {}: {what}", self.sequence)));
        let mut first = [0; SECTOR];
        let there = self.length.saturating_sub(at).min(SECTOR as u64) as usize;
        self.medium.read(at, &mut first[..there])?;
        if is_zero(&first) {
            return Ok(None);
        }
        let header: [u8; HEADER] = array(&first[..HEADER]);
        let Some(read) = Header::from_bytes(&header) else {
            return damaged("it does not begin as a record does");
        };
        if read.mark != self.mark || read.sequence != self.sequence || read.before != self.last {
            return damaged("it does not follow the one before it");
        }
        let body = read.length as usize;
        let end = at + extent(body) as u64;
        if end > self.length {
            return damaged("it is longer than the file");
        }
        let mut whole = vec![0; extent(body)];
        self.medium.read(at, &mut whole)?;
        let (record, rest) = whole.split_at(HEADER + body);
        let right = header[64..] == hash(&header, &record[HEADER..]) && is_zero(rest);
        match right {
            true => {
                let body = record[HEADER..].to_vec();
                let kind = read.kind;
                Ok(Some((Record { at, kind, body }, header)))
            }
            // The disk was in the middle of it, and nothing came after.
            false if whole.chunks(SECTOR).any(is_zero) && self.tail(end)?.is_none() => Ok(None),
            false => damaged("it was changed"),
        }
    }

    /// The end of what is not zero, from there on.
    fn tail(&self, from: u64) -> Result<Option<u64>, Fault> {
        let mut found = None;
        let mut at = from;
        let mut piece = vec![0; 128 * SECTOR];
        while at < self.length {
            let there = (self.length - at).min(piece.len() as u64) as usize;
            let piece = &mut piece[..there];
            self.medium.read(at, piece)?;
            for (number, sector) in (0..).zip(piece.chunks(SECTOR)) {
                if sector.starts_with(&self.mark) {
                    let after = format!("record {} is missing, and one after it", self.sequence);
                    return Err(Fault::Damaged(after + " is there"));
                }
                if !is_zero(sector) {
                    found = Some(at + (number + 1) * SECTOR as u64);
                }
            }
            at += there as u64;
        }
        Ok(found)
    }

    /// Takes away what is left of a record that was never finished.
    fn clear(&mut self) -> Result<(), Fault> {
        // Its own first sector begins like any record's.
        let torn = self.end;
        let mut first = [0; SECTOR];
        let there = self.length.saturating_sub(torn).min(SECTOR as u64) as usize;
        self.medium.read(torn, &mut first[..there])?;
        let after = self.tail(torn + there as u64)?;
        let until = match (is_zero(&first), after) {
            (true, None) => return Ok(()),
            (false, None) => torn + there as u64,
            (_, Some(until)) => until.min(self.length),
        };
        self.medium.write(torn, &vec![0; (until - torn) as usize])?;
        Ok(self.medium.sync()?)
    }

    /// Adds a record; where it is. When this returns it has reached the disk. After an error nothing is added any more.
    pub(super) fn add(&mut self, kind: u8, body: &[u8]) -> Result<u64, Fault> {
        if self.failed {
            return Err(Fault::Disk(io::Error::other("an earlier write failed")));
        }
        let length = u32::try_from(body.len())
            .map_err(|_| Fault::Disk(io::ErrorKind::FileTooLarge.into()))?;
        let header = Header {
            mark: self.mark,
            sequence: self.sequence,
            length,
            kind,
            before: self.last,
        };
        let header = header.to_bytes(body);
        let mut bytes = Vec::with_capacity(extent(body.len()));
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(body);
        bytes.resize(extent(body.len()), 0);
        self.failed = true;
        let end = self.end + bytes.len() as u64;
        if end > self.length {
            let zeros = (end - self.length) as usize + AHEAD;
            self.medium.write(self.length, &vec![0; zeros])?;
            self.medium.sync()?;
            self.length += zeros as u64;
        }
        self.medium.write(self.end, &bytes)?;
        self.medium.sync()?;
        self.failed = false;
        let at = self.end;
        self.end = end;
        self.last = array(&header[64..]);
        self.sequence += 1;
        Ok(at)
    }

    /// The record at a place where one is.
    pub(super) fn read(&self, at: u64) -> Result<Record, Fault> {
        let damaged = || Fault::Damaged(format!("the record at byte {at} was changed"));
        let mut header = [0; HEADER];
        self.medium.read(at, &mut header)?;
        let read = Header::from_bytes(&header).ok_or_else(damaged)?;
        if at + extent(read.length as usize) as u64 > self.end {
            return Err(damaged());
        }
        let mut body = vec![0; read.length as usize];
        self.medium.read(at + HEADER as u64, &mut body)?;
        match header[64..] == hash(&header, &body) {
            true => Ok(Record {
                at,
                kind: read.kind,
                body,
            }),
            false => Err(damaged()),
        }
    }

    /// Every record, in order.
    pub(super) fn each(
        &self,
        mut tell: impl FnMut(Record) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.end {
            let record = self.read(at)?;
            at += extent(record.body.len()) as u64;
            tell(record)?;
        }
        Ok(())
    }
}
