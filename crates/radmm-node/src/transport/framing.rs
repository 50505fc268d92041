//! Frames on a stream of bytes: the length as four little-endian bytes, then the frame.
//!
//! A frame without bytes is a ping: it shows that its sender is alive, and is not handed on.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::{SILENCE_TIMEOUT, reason};

/// The memory that is reserved before any byte of a frame has arrived.
const FIRST_CAPACITY: usize = 1 << 17;

/// The size of the pieces in which a frame is written, that of a TLS record: the peer decrypts one while the next is encrypted.
const PIECE: usize = 1 << 14;

/// A reason for which no more frames can be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// A frame is longer than allowed. Nothing was allocated for it.
    TooLong { largest: usize },
    /// Nothing has arrived for [`SILENCE_TIMEOUT`], although the peer pings.
    Silent,
    /// The connection failed.
    Broken(io::Error),
}

impl ReadError {
    /// Describes the error to an operator. "It" is the peer.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::TooLong { largest } => format!(
                "it sent a frame of more than {largest} bytes, which no message of the study needs"
            ),
            Self::Silent => format!(
                "nothing was received from it for {} s",
                SILENCE_TIMEOUT.as_secs()
            ),
            Self::Broken(error) => reason::of_connection(error),
        }
    }
}

/// Reads the next frame that is no ping; `None` if the peer has closed the stream. A frame takes no more memory than twice what has
/// arrived of it.
pub(super) async fn read_frame(
    stream: &mut (impl AsyncRead + Unpin),
    largest: usize,
) -> Result<Option<Vec<u8>>, ReadError> {
    loop {
        let Some(length) = read_length(stream).await? else {
            return Ok(None);
        };
        if length > largest {
            return Err(ReadError::TooLong { largest });
        }
        if length > 0 {
            return read_bytes(stream, length).await.map(Some);
        }
    }
}

async fn read_length(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<usize>, ReadError> {
    let mut prefix = [0; 4];
    let mut filled = 0;
    while filled < prefix.len() {
        match before_silence(stream.read(&mut prefix[filled..])).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(ReadError::Broken(io::ErrorKind::UnexpectedEof.into())),
            read => filled += read,
        }
    }
    let length = usize::try_from(u32::from_le_bytes(prefix));
    Ok(Some(length.unwrap_or(usize::MAX)))
}

async fn read_bytes(
    stream: &mut (impl AsyncRead + Unpin),
    length: usize,
) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::with_capacity(length.min(FIRST_CAPACITY));
    while bytes.len() < length {
        let left = length - bytes.len();
        if bytes.len() == bytes.capacity() {
            bytes.reserve_exact(left.min(bytes.len()));
        }
        let mut rest = (&mut *stream).take(left as u64);
        if before_silence(rest.read_buf(&mut bytes)).await? == 0 {
            return Err(ReadError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(bytes)
}

/// Waits for bytes as long as a live peer may be silent.
async fn before_silence(read: impl Future<Output = io::Result<usize>>) -> Result<usize, ReadError> {
    match timeout(SILENCE_TIMEOUT, read).await {
        Ok(read) => read.map_err(ReadError::Broken),
        Err(_) => Err(ReadError::Silent),
    }
}

/// Writes a frame. A small one takes a single TLS record.
pub(super) async fn write_frame(
    stream: &mut (impl AsyncWrite + Unpin),
    frame: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let prefix = length.to_le_bytes();
    let (first, rest) = frame.split_at(frame.len().min(PIECE - prefix.len()));
    stream.write_all(&[&prefix, first].concat()).await?;
    for piece in rest.chunks(PIECE) {
        stream.write_all(piece).await?;
    }
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    async fn read(mut bytes: &[u8], largest: usize) -> Result<Option<Vec<u8>>, String> {
        let read = read_frame(&mut bytes, largest).await;
        read.map_err(|error| error.describe())
    }

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let mut wire = Vec::new();
        let long = vec![7; 3 * FIRST_CAPACITY + 1];
        for frame in [&b"first"[..], &[], &[], &long, b"last"] {
            write_frame(&mut wire, frame).await.unwrap();
        }
        assert_eq!(&wire[..9], b"\x05\0\0\0first");
        let mut wire = wire.as_slice();
        for frame in [&b"first"[..], &long, b"last"] {
            let read = read_frame(&mut wire, long.len()).await.unwrap();
            assert_eq!(read.as_deref(), Some(frame));
        }
        assert_eq!(read_frame(&mut wire, long.len()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_frame_above_the_limit_is_not_read() {
        assert_eq!(read(b"\x03\0\0\0abc", 3).await, Ok(Some(b"abc".to_vec())));
        for length in [[4, 0, 0, 0], [0, 0, 0, 1], [255; 4]] {
            let words = read(&length, 3).await.unwrap_err();
            assert!(words.contains("more than 3 bytes"), "{words}");
        }
    }

    #[tokio::test]
    async fn a_stream_that_ends_within_a_frame_is_broken() {
        for bytes in [&b"\x05"[..], b"\x05\0\0\0", b"\x05\0\0\0abcd"] {
            let words = read(bytes, 10).await.unwrap_err();
            assert_eq!(words, "it closed the connection");
        }
    }

    /// A peer that sends a kilobyte at a time, and checks how much room there is for more.
    struct SlowPeer {
        bytes: Vec<u8>,
        sent: usize,
    }

    impl AsyncRead for SlowPeer {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            assert!(buffer.remaining() <= self.sent.max(FIRST_CAPACITY));
            let end = self
                .bytes
                .len()
                .min(self.sent + buffer.remaining().min(1024));
            buffer.put_slice(&self.bytes[self.sent..end]);
            self.sent = end;
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_frame_takes_memory_as_it_arrives() {
        let mut bytes = Vec::new();
        let frame = vec![7; 20 * FIRST_CAPACITY];
        write_frame(&mut bytes, &frame).await.unwrap();
        let mut peer = SlowPeer { bytes, sent: 0 };
        let read = read_frame(&mut peer, frame.len()).await.unwrap();
        assert_eq!(read.as_ref(), Some(&frame));
        assert!(read.unwrap().capacity() < frame.len() + FIRST_CAPACITY);
    }
}
