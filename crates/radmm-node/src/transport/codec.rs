//! Frames on a stream: bytes as they are, in the envelope of gRPC.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// What is called on the other side.
pub(super) const PATH: &str = "/radmm.v1.Edge/Talk";

/// Bytes are their own encoding.
#[derive(Clone, Copy)]
pub(super) struct Frames;

impl Codec for Frames {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Frames {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, frame: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(frame.len());
        to.put_slice(&frame);
        Ok(())
    }
}

impl Decoder for Frames {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut frame = Vec::with_capacity(from.remaining());
        frame.put(from);
        Ok(Some(frame))
    }
}

/// The frames that wait to leave. It ends when nobody can queue more.
pub(super) struct Queue(pub(super) mpsc::Receiver<Vec<u8>>);

impl Stream for Queue {
    type Item = Result<Vec<u8>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}
