//! Compressed text, recognised by its first bytes: gzip and zstd, in one piece or in several, one after the other.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

/// A compression of whole files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// Returns the compression of a file that begins like this.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Returns what the source holds in compressed form.
    pub(crate) fn decoded<'a>(self, source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let source = WatchedSource {
            source,
            failed: false,
        };
        Ok(match self {
            Self::Gzip => Box::new(Decoded {
                decoder: MultiGzDecoder::new(source),
                source: MultiGzDecoder::get_ref,
                compression: self,
            }),
            Self::Zstd => Box::new(Decoded {
                decoder: ZstdDecoder::new(source)?,
                source: |decoder| decoder.get_ref().get_ref(),
                compression: self,
            }),
        })
    }
}

/// A source that remembers whether its last read failed.
struct WatchedSource<R> {
    source: R,
    failed: bool,
}

impl<R: Read> Read for WatchedSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer);
        self.failed = read.is_err();
        read
    }
}

/// A decoder whose own errors say that the data is damaged.
struct Decoded<D, R> {
    decoder: D,
    source: fn(&D) -> &WatchedSource<R>,
    compression: Compression,
}

impl<D: Read, R> Read for Decoded<D, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            if (self.source)(&self.decoder).failed {
                return error;
            }
            let cause = match error.kind() {
                ErrorKind::UnexpectedEof => DecodeCause::Truncated,
                _ if error.to_string().contains("too much memory") => DecodeCause::Memory,
                _ => DecodeCause::Damaged(error.to_string()),
            };
            let compression = self.compression;
            io::Error::new(ErrorKind::InvalidData, DecodeError { compression, cause })
        })
    }
}

/// The error of data that cannot be decompressed.
#[derive(Debug)]
struct DecodeError {
    compression: Compression,
    cause: DecodeCause,
}

#[derive(Debug)]
enum DecodeCause {
    Truncated,
    Memory,
    Damaged(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.compression.name();
        match &self.cause {
            DecodeCause::Truncated => write!(
                f,
                "the {name} data ends early, so the file is not complete; copy it again"
            ),
            DecodeCause::Memory => write!(
                f,
                "reading the {name} data takes more than 128 MiB of memory; compress it again without --long or --ultra"
            ),
            DecodeCause::Damaged(cause) => {
                write!(
                    f,
                    "the {name} data is damaged ({cause}); copy the file again"
                )
            }
        }
    }
}

impl std::error::Error for DecodeError {}
