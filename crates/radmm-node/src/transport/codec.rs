//! The codec of frames on a gRPC stream: bytes as they are.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// The path of the gRPC call.
pub(super) const PATH: &str = "/radmm.v1.Edge/Talk";

/// The identity codec.
#[derive(Clone, Copy)]
pub(super) struct RawFrameCodec;

impl Codec for RawFrameCodec {
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

impl Encoder for RawFrameCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, frame: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(frame.len());
        to.put_slice(&frame);
        Ok(())
    }
}

impl Decoder for RawFrameCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut frame = Vec::with_capacity(from.remaining());
        frame.put(from);
        Ok(Some(frame))
    }
}

/// The stream of frames that wait to leave. It ends when no more can be queued.
pub(super) struct FrameQueue(pub(super) mpsc::Receiver<Vec<u8>>);

impl Stream for FrameQueue {
    type Item = Result<Vec<u8>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}
