//! A message of the update stream as encoded bytes, and the codec that passes them through.
//!
//! The server encodes a batch once and hands the same [`Frame`] to every stream; the client receives the bytes and
//! decodes them as [`wire::SubscribeResponse`](crate::wire::SubscribeResponse).

use std::marker::PhantomData;

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message as _;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::{codec, learning::v1::SubscribeRequest};

/// Initial size of a stream's buffer. Frames reserve what they need; an idle stream, as most streams are most of the
/// time, holds nothing.
const INITIAL_BUFFER: usize = 0;
/// How many encoded bytes are buffered before they are sent; tonic's own default.
const YIELD_THRESHOLD: usize = 32 * 1024;

/// One encoded `SubscribeResponse`. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(pub Bytes);

/// A message that [`FrameCodec`] can write to the wire and read from it.
pub trait Wire: Sized + Send + 'static {
    /// Appends the encoded message.
    fn put(self, buffer: &mut EncodeBuf<'_>);
    /// Reads one whole message.
    fn take(buffer: &mut DecodeBuf<'_>) -> Result<Self, Status>;
}

impl Wire for Frame {
    fn put(self, buffer: &mut EncodeBuf<'_>) {
        buffer.reserve(self.0.len());
        buffer.put_slice(&self.0);
    }

    fn take(buffer: &mut DecodeBuf<'_>) -> Result<Self, Status> {
        Ok(Self(buffer.copy_to_bytes(buffer.remaining())))
    }
}

impl Wire for SubscribeRequest {
    fn put(self, buffer: &mut EncodeBuf<'_>) {
        self.encode(buffer).expect("invariant: EncodeBuf grows as needed");
    }

    fn take(buffer: &mut DecodeBuf<'_>) -> Result<Self, Status> {
        codec::decode(buffer.copy_to_bytes(buffer.remaining()))
    }
}

/// Encodes `Subscribe`'s messages: requests as protobuf, responses as [`Frame`]s. Wire-equal to the protobuf codec.
#[derive(Debug)]
pub struct FrameCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for FrameCodec<E, D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<E: Wire, D: Wire> Codec for FrameCodec<E, D> {
    type Encode = E;
    type Decode = D;
    type Encoder = WireEncoder<E>;
    type Decoder = WireDecoder<D>;

    fn encoder(&mut self) -> Self::Encoder {
        WireEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        WireDecoder(PhantomData)
    }
}

/// The encoding half of [`FrameCodec`].
#[derive(Debug)]
pub struct WireEncoder<E>(PhantomData<E>);

impl<E: Wire> Encoder for WireEncoder<E> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, item: E, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.put(buffer);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(INITIAL_BUFFER, YIELD_THRESHOLD)
    }
}

/// The decoding half of [`FrameCodec`].
#[derive(Debug)]
pub struct WireDecoder<D>(PhantomData<D>);

impl<D: Wire> Decoder for WireDecoder<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        D::take(buffer).map(Some)
    }
}
