//! Records one after the other, each on the disk before the next is begun, and never changed.
//!
//! ```text
//! record    sequence 8 · length 4 · kind 4 · hash of the record before 32 · check of these 8 · hash 32 · body · zeros
//! sector    mark 8 · sequence 4 · place in the record 4 · 496 bytes of the record
//! ```
//!
//! A record begins a sector of the disk and fills up its last one, so that no sector is written twice with other bytes, and none
//! that was written is empty. After the last record there are zeros, written ahead: then adding one changes neither the length of
//! the file nor where it is on the disk, and takes one write.
//!
//! *What a power failure leaves* of the last record is some of its sectors, each whole or still zeros; nothing that was on the disk
//! before. Exactly that, sectors of one record that should come next and at least one of them missing, is taken for a record that
//! was never finished, and removed: whoever wrote it was not told that it was there, so nothing came of it. Everything else is
//! damage, and stops whoever opens the journal.
//!
//! *What a kill leaves* may be in the memory of the operating system alone, and a record whose wait for the disk failed may be
//! taken there for written. So the last record is written again, and waited for, before anybody goes by it.

use std::io;

use sha2::{Digest, Sha256};

use super::storage::Medium;

/// What a disk writes in one go.
const SECTOR: usize = 512;

/// Before a sector's part of the record.
const TAG: usize = 16;

const PART: usize = SECTOR - TAG;

/// Before the body.
const HEADER: usize = 88;

/// Of the header, before its check.
const CHECKED: usize = 48;

/// Of the header, before the hash.
const HASHED: usize = 56;

/// So many zeros are written ahead.
const AHEAD: usize = 1 << 20;

/// With what sectors of the first record begin; the others' mark follows from that record, so that no two journals have the same.
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
    sequence: u64,
    length: u32,
    kind: u8,
    before: [u8; 32],
    hash: [u8; 32],
}

impl Header {
    /// With its check and its hash.
    fn write(sequence: u64, kind: u8, before: &[u8; 32], body: &[u8]) -> io::Result<[u8; HEADER]> {
        let length =
            u32::try_from(body.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&sequence.to_le_bytes());
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        bytes[12] = kind;
        bytes[16..CHECKED].copy_from_slice(before);
        let check: [u8; 32] = Sha256::digest(&bytes[..CHECKED]).into();
        bytes[CHECKED..HASHED].copy_from_slice(&check[..HASHED - CHECKED]);
        let hash = hash(&bytes, body);
        bytes[HASHED..].copy_from_slice(&hash);
        Ok(bytes)
    }

    /// `None` if its check is wrong.
    fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let check: [u8; 32] = Sha256::digest(&bytes[..CHECKED]).into();
        (bytes[CHECKED..HASHED] == check[..HASHED - CHECKED]).then(|| Self {
            sequence: u64::from_le_bytes(array(&bytes[..8])),
            length: u32::from_le_bytes(array(&bytes[8..12])),
            kind: bytes[12],
            before: array(&bytes[16..CHECKED]),
            hash: array(&bytes[HASHED..]),
        })
    }

    /// How many bytes of the file it takes with its body.
    fn extent(&self) -> u64 {
        extent(self.length as usize)
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

fn hash(header: &[u8; HEADER], body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(&header[..HASHED]);
    hash.update(body);
    hash.finalize().into()
}

fn extent(body: usize) -> u64 {
    ((HEADER + body).div_ceil(PART) * SECTOR) as u64
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// With what a sector begins.
fn tag(mark: [u8; 8], sequence: u64, place: usize) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&mark);
    // Neither comes near its limit; and only neighbours must be told apart.
    tag[8..12].copy_from_slice(&(sequence as u32).to_le_bytes());
    tag[12..].copy_from_slice(&(place as u32).to_le_bytes());
    tag
}

/// A record in sectors.
fn sectors(mark: [u8; 8], sequence: u64, header: &[u8; HEADER], body: &[u8]) -> Vec<u8> {
    let record = [header, body].concat();
    let mut bytes = Vec::with_capacity(extent(body.len()) as usize);
    for (place, part) in record.chunks(PART).enumerate() {
        bytes.extend_from_slice(&tag(mark, sequence, place));
        bytes.extend_from_slice(part);
    }
    bytes.resize(extent(body.len()) as usize, 0);
    bytes
}

/// The parts of sectors, one after the other.
fn parts(sectors: &[u8]) -> Vec<u8> {
    let parts = sectors.chunks(SECTOR).map(|sector| &sector[TAG..]);
    parts.collect::<Vec<_>>().concat()
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
        let mut last = None;
        while let Some((record, header)) = journal.next()? {
            each(&record).map_err(|what| journal.damaged(&what))?;
            journal.end += header.extent();
            journal.last = header.hash;
            last = Some((record.at, header.extent()));
            if journal.sequence == 0 {
                journal.name();
            }
            journal.sequence += 1;
        }
        let Some((at, extent)) = last else {
            return Err(Fault::Damaged("it is empty".to_owned()));
        };
        journal.clear()?;
        journal.make_sure(at, extent)?;
        Ok(journal)
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

    /// From now on sectors begin with what follows from the first record.
    fn name(&mut self) {
        let hash: [u8; 32] = Sha256::new()
            .chain_update(b"radmm mark v1\0")
            .chain_update(self.last)
            .finalize()
            .into();
        self.mark = array(&hash[..8]);
    }

    fn damaged(&self, what: &str) -> Fault {
        Fault::Damaged(format!("record {}: {what}", self.sequence))
    }

    /// The record at the end, if there is a whole one.
    fn next(&self) -> Result<Option<(Record, Header)>, Fault> {
        let at = self.end;
        if self.length < at + SECTOR as u64 {
            return Ok(None);
        }
        let mut first = [0; SECTOR];
        self.medium.read(at, &mut first)?;
        if is_zero(&first) {
            return Ok(None);
        }
        if first[..TAG] != tag(self.mark, self.sequence, 0) {
            return Err(self.damaged("it does not begin as the record that is due"));
        }
        let header: [u8; HEADER] = array(&first[TAG..TAG + HEADER]);
        let read = Header::read(&header).ok_or_else(|| self.damaged("its head was changed"))?;
        if read.sequence != self.sequence || read.before != self.last {
            return Err(self.damaged("it does not follow the one before it"));
        }
        if read.extent() > self.length - at {
            return Err(self.damaged("it is longer than the file"));
        }
        let mut whole = vec![0; read.extent() as usize];
        self.medium.read(at, &mut whole)?;
        // The disk was in the middle of it. Whether that is all is looked at when it is cleared away.
        if whole.chunks(SECTOR).any(is_zero) {
            return Ok(None);
        }
        let right =
            |(place, sector): (usize, &[u8])| sector[..TAG] == tag(self.mark, self.sequence, place);
        if !whole.chunks(SECTOR).enumerate().all(right) {
            return Err(self.damaged("a part of it is another record's"));
        }
        let record = parts(&whole);
        let (record, rest) = record.split_at(HEADER + read.length as usize);
        let body = record[HEADER..].to_vec();
        if hash(&header, &body) != read.hash || !is_zero(rest) {
            return Err(self.damaged("it was changed"));
        }
        let kind = read.kind;
        Ok(Some((Record { at, kind, body }, read)))
    }

    /// Takes away what is left of a record that was never finished.
    fn clear(&mut self) -> Result<(), Fault> {
        let mut left = None;
        let mut at = self.end;
        let mut piece = vec![0; 128 * SECTOR];
        while at < self.length {
            let there = (self.length - at).min(piece.len() as u64) as usize;
            let piece = &mut piece[..there];
            self.medium.read(at, piece)?;
            for sector in piece.chunks(SECTOR) {
                let place = ((at - self.end) / SECTOR as u64) as usize;
                if !is_zero(sector) {
                    if !sector.starts_with(&tag(self.mark, self.sequence, place)) {
                        return Err(self.damaged("what is there is no part of it"));
                    }
                    left = Some(at + sector.len() as u64);
                }
                at += sector.len() as u64;
            }
        }
        if let Some(until) = left {
            let zeros = vec![0; (until - self.end) as usize];
            self.medium.write(self.end, &zeros)?;
        }
        Ok(())
    }

    /// Writes the last record again, and waits until everything is on the disk.
    fn make_sure(&self, at: u64, extent: u64) -> Result<(), Fault> {
        let mut sectors = vec![0; extent as usize];
        self.medium.read(at, &mut sectors)?;
        self.medium.write(at, &sectors)?;
        Ok(self.medium.sync()?)
    }

    /// Where the next record will be.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a record. When this returns it has reached the disk. After an error nothing is added any more.
    pub(super) fn add(&mut self, kind: u8, body: &[u8]) -> Result<(), Fault> {
        if self.failed {
            return Err(Fault::Disk(io::Error::other("an earlier write failed")));
        }
        let header = Header::write(self.sequence, kind, &self.last, body)?;
        let bytes = sectors(self.mark, self.sequence, &header, body);
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
        self.end = end;
        self.last = array(&header[HASHED..]);
        self.sequence += 1;
        Ok(())
    }

    /// The record at a place where one is.
    pub(super) fn read(&self, at: u64) -> Result<Record, Fault> {
        let damaged = || Fault::Damaged(format!("the record at byte {at} was changed"));
        let mut first = [0; SECTOR];
        self.medium.read(at, &mut first)?;
        let header: [u8; HEADER] = array(&first[TAG..TAG + HEADER]);
        let read = Header::read(&header).ok_or_else(damaged)?;
        if at + read.extent() > self.end {
            return Err(damaged());
        }
        let mut whole = vec![0; read.extent() as usize];
        self.medium.read(at, &mut whole)?;
        let record = parts(&whole);
        let body = record[HEADER..][..read.length as usize].to_vec();
        match hash(&header, &body) == read.hash {
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
            at += extent(record.body.len());
            tell(record)?;
        }
        Ok(())
    }
}
