//! An append-only journal on storage that can lose power.
//!
//! ```text
//! record    sequence 8 · length 4 · kind 4 · hash of the record before 32 · check of these 8 · hash 32 · body · zeros
//! sector    mark 8 · sequence 4 · place in the record 4 · 496 bytes of the record
//! ```
//!
//! A record begins at a sector of the disk and fills up its last one, so that no sector is written twice with other bytes, and no
//! written sector is all zeros. After the last record there are zeros, written ahead: appending a record then changes neither the
//! length of the file nor its place on the disk, and takes one write.
//!
//! *The length of the file* is at least a function of where its last record ends: it is made so long, and synced, before that record
//! is written. So a file that was cut is noticed wherever it was cut, between two records too: no crash leaves a shorter one.
//!
//! *A power failure* leaves some sectors of the last record, each whole or still zeros, and all records before it. Exactly that,
//! sectors of the one record that is due with at least one of them missing, is taken for a record that was never finished, and
//! removed: its writer was not told that it is durable, so it had no effect. Everything else is damage, and the journal is not opened.
//!
//! *A kill* may leave a record in the memory of the operating system alone, and a record whose sync failed may be taken there for
//! written. So the last record is written and synced again before it is used.

use std::io;
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::storage::Storage;
use super::witness::LastRecord;

/// The number of bytes that a disk writes in one go.
const SECTOR: usize = 512;

/// The length of the tag that begins a sector.
const TAG: usize = 16;

/// The bytes of a record in a sector.
const PART: usize = SECTOR - TAG;

/// The length of a record's header.
const HEADER: usize = 88;

/// The part of the header that its check covers.
const CHECKED: usize = 48;

/// The part of the header that the hash covers.
const HASHED: usize = 56;

/// The file's length is raised to a multiple of this many bytes.
const AHEAD: u64 = 1 << 20;

/// The number of times, and the time after which, a reader looks again at what seems wrong: another process may just be writing it.
const RETRIES: u32 = 20;
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The mark of the first record's sectors. The mark of all others is derived from that record, so that no two journals share it.
const FIRST_MARK: [u8; 8] = *b"radmm v1";

/// A reason for which a journal cannot be used.
#[derive(Debug)]
pub(super) enum JournalError {
    /// The disk failed.
    Disk(io::Error),
    /// The journal is damaged.
    Damaged(String),
    /// The file is shorter than its records leave it.
    Truncated {
        /// Its length in bytes.
        length: u64,
        /// The length that it had at least.
        needed: u64,
    },
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A record.
pub(super) struct Record {
    /// The position of the record.
    pub(super) at: u64,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// A journal.
pub(super) struct Journal {
    storage: Box<dyn Storage>,
    mark: [u8; 8],
    /// The hash of the last record.
    last: [u8; 32],
    sequence: u64,
    /// The position of the next record.
    end: u64,
    /// The length of the file.
    length: u64,
    /// Whether a write has failed, so that the state of the disk is unknown.
    failed: bool,
}

/// The header of a record, which is in its first sector.
struct Header {
    sequence: u64,
    length: u32,
    kind: u8,
    before: [u8; 32],
    hash: [u8; 32],
}

impl Header {
    /// Encodes a header with its check and its hash.
    fn encode(sequence: u64, kind: u8, before: &[u8; 32], body: &[u8]) -> io::Result<[u8; HEADER]> {
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

    /// Decodes a header; `None` if its check is wrong.
    fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let check: [u8; 32] = Sha256::digest(&bytes[..CHECKED]).into();
        (bytes[CHECKED..HASHED] == check[..HASHED - CHECKED]).then(|| Self {
            sequence: u64::from_le_bytes(array(&bytes[..8])),
            length: u32::from_le_bytes(array(&bytes[8..12])),
            kind: bytes[12],
            before: array(&bytes[16..CHECKED]),
            hash: array(&bytes[HASHED..]),
        })
    }

    /// Returns the number of bytes that the record takes in the file.
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

/// Returns the length that a file has at least before a record that ends at `end` is written. It holds the first sector of the record
/// after it, too, so that this one is whole or absent.
pub(super) fn length_for(end: u64) -> u64 {
    (end + SECTOR as u64).next_multiple_of(AHEAD)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns the tag that begins a sector.
fn tag(mark: [u8; 8], sequence: u64, place: usize) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&mark);
    // Neither number comes near its limit, and only adjacent records must be told apart.
    tag[8..12].copy_from_slice(&(sequence as u32).to_le_bytes());
    tag[12..].copy_from_slice(&(place as u32).to_le_bytes());
    tag
}

/// Returns a record in sectors.
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

/// Returns the record that is in some sectors.
fn parts(sectors: &[u8]) -> Vec<u8> {
    let parts = sectors.chunks(SECTOR).map(|sector| &sector[TAG..]);
    parts.collect::<Vec<_>>().concat()
}

impl Journal {
    /// Creates a journal with its first record.
    pub(super) fn create(
        storage: Box<dyn Storage>,
        kind: u8,
        body: &[u8],
    ) -> Result<Self, JournalError> {
        let mut journal = Self::empty(storage)?;
        journal.append(kind, body)?;
        journal.derive_mark();
        Ok(journal)
    }

    /// Opens a journal. `each` is called with every record, and may reject it.
    pub(super) fn open(
        storage: Box<dyn Storage>,
        mut each: impl FnMut(&Record) -> Result<(), String>,
    ) -> Result<Self, JournalError> {
        let mut journal = Self::empty(storage)?;
        let mut last = None;
        while let Some((record, header)) = journal.next()? {
            each(&record).map_err(|what| journal.damaged(&what))?;
            journal.step_over(&header);
            last = Some((record.at, header.extent()));
        }
        let leftover = journal.leftover()?;
        let Some((at, extent)) = last else {
            return Err(JournalError::Damaged("it is empty".to_owned()));
        };
        if let Some(until) = leftover {
            let zeros = vec![0; (until - journal.end) as usize];
            journal.storage.write(journal.end, &zeros)?;
        }
        journal.rewrite(at, extent)?;
        Ok(journal)
    }

    /// Opens a journal for reading alone, and changes nothing. Another process may append to it at the same time: what is not
    /// finished is left out.
    pub(super) fn open_read_only(
        storage: Box<dyn Storage>,
        mut each: impl FnMut(&Record) -> Result<(), String>,
    ) -> Result<Self, JournalError> {
        let mut journal = Self::empty(storage)?;
        journal.failed = true;
        let mut retries = 0;
        loop {
            let next = match journal.next() {
                Ok(None) => journal.leftover().map(|_| None),
                next => next,
            };
            match next {
                Ok(Some((record, header))) => {
                    each(&record).map_err(|what| journal.damaged(&what))?;
                    journal.step_over(&header);
                    retries = 0;
                }
                Ok(None) => break,
                Err(error) if retries == RETRIES => return Err(error),
                Err(_) => {
                    retries += 1;
                    thread::sleep(RETRY_PAUSE);
                    journal.length = journal.storage.len()?;
                }
            }
        }
        match journal.sequence {
            0 => Err(JournalError::Damaged("it is empty".to_owned())),
            _ => Ok(journal),
        }
    }

    /// Returns a journal before its first record.
    fn empty(storage: Box<dyn Storage>) -> Result<Self, JournalError> {
        Ok(Self {
            length: storage.len()?,
            storage,
            mark: FIRST_MARK,
            last: [0; 32],
            sequence: 0,
            end: 0,
            failed: false,
        })
    }

    /// Derives the mark of all further sectors from the first record.
    fn derive_mark(&mut self) {
        let hash: [u8; 32] = Sha256::new()
            .chain_update(b"radmm mark v1\0")
            .chain_update(self.last)
            .finalize()
            .into();
        self.mark = array(&hash[..8]);
    }

    /// Moves on to the record after a whole one.
    fn step_over(&mut self, header: &Header) {
        self.end += header.extent();
        self.last = header.hash;
        if self.sequence == 0 {
            self.derive_mark();
        }
        self.sequence += 1;
    }

    /// Checks that the file is as long as it was before a record that ends at `end` was written.
    fn check_length(&self, end: u64) -> Result<(), JournalError> {
        let (length, needed) = (self.length, length_for(end));
        match length < needed {
            true => Err(JournalError::Truncated { length, needed }),
            false => Ok(()),
        }
    }

    fn damaged(&self, what: &str) -> JournalError {
        JournalError::Damaged(format!("record {}: {what}", self.sequence))
    }

    /// Reads the record at the end, if there is a whole one.
    fn next(&self) -> Result<Option<(Record, Header)>, JournalError> {
        let at = self.end;
        if self.length < at + SECTOR as u64 {
            self.check_length(at)?;
        }
        let mut first = [0; SECTOR];
        self.storage.read(at, &mut first)?;
        if is_zero(&first) {
            return self.check_length(at).map(|()| None);
        }
        if first[..TAG] != tag(self.mark, self.sequence, 0) {
            return Err(self.damaged("its first sector has the wrong tag"));
        }
        let header: [u8; HEADER] = array(&first[TAG..TAG + HEADER]);
        let read = Header::decode(&header).ok_or_else(|| self.damaged("its header was changed"))?;
        if read.sequence != self.sequence || read.before != self.last {
            return Err(self.damaged("it does not follow the one before it"));
        }
        self.check_length(at + read.extent())?;
        let mut whole = vec![0; read.extent() as usize];
        self.storage.read(at, &mut whole)?;
        // The record was never finished. `leftover` checks that nothing else is there.
        if whole.chunks(SECTOR).any(is_zero) {
            return Ok(None);
        }
        let is_right =
            |(place, sector): (usize, &[u8])| sector[..TAG] == tag(self.mark, self.sequence, place);
        if !whole.chunks(SECTOR).enumerate().all(is_right) {
            return Err(self.damaged("a sector of it belongs to another record"));
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

    /// Returns the end of the sectors of a record that was never finished, if there are any, and checks that nothing else is there.
    fn leftover(&self) -> Result<Option<u64>, JournalError> {
        let mut leftover = None;
        let mut at = self.end;
        let mut piece = vec![0; 128 * SECTOR];
        while at < self.length {
            let there = (self.length - at).min(piece.len() as u64) as usize;
            let piece = &mut piece[..there];
            self.storage.read(at, piece)?;
            for sector in piece.chunks(SECTOR) {
                let place = ((at - self.end) / SECTOR as u64) as usize;
                at += sector.len() as u64;
                if !is_zero(sector) {
                    if !sector.starts_with(&tag(self.mark, self.sequence, place)) {
                        return Err(
                            self.damaged("sectors after the last record do not belong to it")
                        );
                    }
                    leftover = Some(at);
                }
            }
        }
        if let Some(until) = leftover {
            self.check_length(until)?;
        }
        Ok(leftover)
    }

    /// Writes the last record again, and syncs.
    fn rewrite(&self, at: u64, extent: u64) -> Result<(), JournalError> {
        let mut sectors = vec![0; extent as usize];
        self.storage.read(at, &mut sectors)?;
        self.storage.write(at, &sectors)?;
        Ok(self.storage.sync()?)
    }

    /// Returns whether the file is still what the next process will find.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        self.storage.is_in_place()
    }

    /// Returns a number that no copy of the file has on the same disk, if there is one.
    pub(super) fn inode(&self) -> io::Result<Option<u64>> {
        self.storage.inode()
    }

    /// Returns the last record.
    pub(super) fn last(&self) -> LastRecord {
        LastRecord {
            sequence: self.sequence.saturating_sub(1),
            hash: self.last,
        }
    }

    /// Returns whether this is the last record, or one before it.
    pub(super) fn has(&self, seen: LastRecord) -> Result<bool, JournalError> {
        let mut hash = None;
        let (mut at, mut sequence) = (0, 0);
        while at < self.end && sequence <= seen.sequence {
            let mut first = [0; SECTOR];
            self.storage.read(at, &mut first)?;
            let header = Header::decode(&array(&first[TAG..TAG + HEADER]));
            let header = header.ok_or_else(|| self.damaged("its header was changed"))?;
            hash = (sequence == seen.sequence).then_some(header.hash);
            at += header.extent();
            sequence += 1;
        }
        Ok(hash == Some(seen.hash))
    }

    /// Copies all records to an empty file, and syncs it.
    pub(super) fn copy_to(&self, copy: &dyn Storage) -> Result<(), JournalError> {
        let mut at = 0;
        while at < self.end {
            let mut piece = vec![0; (self.end - at).min(AHEAD) as usize];
            self.storage.read(at, &mut piece)?;
            copy.write(at, &piece)?;
            at += piece.len() as u64;
        }
        let zeros = length_for(self.end) - self.end;
        copy.write(self.end, &vec![0; zeros as usize])?;
        Ok(copy.sync()?)
    }

    /// Returns the position of the next record.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Appends a record. When this returns, the record is durable. After an error nothing can be appended.
    pub(super) fn append(&mut self, kind: u8, body: &[u8]) -> Result<(), JournalError> {
        if self.failed {
            return Err(JournalError::Disk(io::Error::other(
                "an earlier write failed, or it is open for reading alone",
            )));
        }
        let header = Header::encode(self.sequence, kind, &self.last, body)?;
        let bytes = sectors(self.mark, self.sequence, &header, body);
        self.failed = true;
        let end = self.end + bytes.len() as u64;
        if let Some(missing @ 1..) = length_for(end).checked_sub(self.length) {
            self.storage
                .write(self.length, &vec![0; missing as usize])?;
            self.storage.sync()?;
            self.length += missing;
        }
        if let Err(error) = self.storage.write(self.end, &bytes) {
            // It may have ended within a sector, which looks like damage. Nothing depends on what it has written.
            let _ = self.storage.write(self.end, &vec![0; bytes.len()]);
            return Err(error.into());
        }
        self.storage.sync()?;
        self.failed = false;
        self.end = end;
        self.last = array(&header[HASHED..]);
        self.sequence += 1;
        Ok(())
    }

    /// Reads the record at a position.
    pub(super) fn read(&self, at: u64) -> Result<Record, JournalError> {
        let damaged = || JournalError::Damaged(format!("the record at byte {at} was changed"));
        let mut first = [0; SECTOR];
        self.storage.read(at, &mut first)?;
        let header: [u8; HEADER] = array(&first[TAG..TAG + HEADER]);
        let read = Header::decode(&header).ok_or_else(damaged)?;
        if at + read.extent() > self.end {
            return Err(damaged());
        }
        let mut whole = vec![0; read.extent() as usize];
        self.storage.read(at, &mut whole)?;
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

    /// Calls `each` with every record, in order.
    pub(super) fn for_each(
        &self,
        mut each: impl FnMut(Record) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let mut at = 0;
        while at < self.end {
            let record = self.read(at)?;
            at += extent(record.body.len());
            each(record)?;
        }
        Ok(())
    }
}
