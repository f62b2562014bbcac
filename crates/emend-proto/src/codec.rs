//! The protobuf codec of all methods, with a bound of what decoding one message may hold.
//!
//! An element of a repeated message takes two bytes on the wire and its whole struct in memory: a request within its 4 MiB
//! could hold gigabytes before anybody counted its elements. So fields are counted before they are decoded. Wire-equal to
//! tonic's own codec.

use std::marker::PhantomData;

use bytes::{Buf as _, Bytes};
use prost::{
    Message,
    encoding::{WireType, decode_key, decode_varint},
};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// How many fields a message may have, each element of a repeated one counted. The largest that is of any use, a thousand
/// rows and what comes with them, has a quarter of it.
pub const MAX_FIELDS: usize = 4_096;

/// Passes messages as protobuf; one of more than [`MAX_FIELDS`] fields is `INVALID_ARGUMENT`.
#[derive(Debug)]
pub struct BoundedCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for BoundedCodec<E, D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<E, D> Codec for BoundedCodec<E, D>
where
    E: Message + 'static,
    D: Message + Default + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = BoundedEncoder<E>;
    type Decoder = BoundedDecoder<D>;

    fn encoder(&mut self) -> Self::Encoder {
        BoundedEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(PhantomData)
    }
}

/// The encoding half of [`BoundedCodec`].
#[derive(Debug)]
pub struct BoundedEncoder<E>(PhantomData<E>);

impl<E: Message> Encoder for BoundedEncoder<E> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, item: E, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buffer).expect("invariant: EncodeBuf grows as needed");
        Ok(())
    }
}

/// The decoding half of [`BoundedCodec`].
#[derive(Debug)]
pub struct BoundedDecoder<D>(PhantomData<D>);

impl<D: Message + Default> Decoder for BoundedDecoder<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        decode(buffer.copy_to_bytes(buffer.remaining())).map(Some)
    }
}

/// Decodes one whole message; `INVALID_ARGUMENT` where it has more than [`MAX_FIELDS`] fields, `INTERNAL`, as tonic has it,
/// where it is no protobuf.
pub fn decode<D: Message + Default>(bytes: Bytes) -> Result<D, Status> {
    if fields(&bytes, MAX_FIELDS) > MAX_FIELDS {
        return Err(Status::invalid_argument(format!(
            "the message has more than {MAX_FIELDS} fields, elements of repeated fields counted"
        )));
    }
    D::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// How many fields an encoded message has, counted up to one beyond `limit`. What is no protobuf is counted as far as it can
/// be read.
fn fields(mut bytes: &[u8], limit: usize) -> usize {
    let mut count = 0;
    while count <= limit && bytes.has_remaining() && skip(&mut bytes).is_some() {
        count += 1;
    }
    count
}

/// Skips one field; none where it is not whole. The fields of a group, which no message here has, are fields as well.
fn skip(bytes: &mut &[u8]) -> Option<()> {
    let (_, kind) = decode_key(bytes).ok()?;
    let length = match kind {
        WireType::Varint => {
            decode_varint(bytes).ok()?;
            0
        }
        WireType::SixtyFourBit => 8,
        WireType::LengthDelimited => usize::try_from(decode_varint(bytes).ok()?).ok()?,
        WireType::ThirtyTwoBit => 4,
        WireType::StartGroup | WireType::EndGroup => 0,
    };
    *bytes = bytes.get(length..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::{
        common::v1::{Correction, PhraseMapping, correction},
        feedback::v1::{BatchSubmitFeedbackRequest, SubmitFeedbackRequest},
    };

    fn batch(items: usize) -> BatchSubmitFeedbackRequest {
        let item = SubmitFeedbackRequest {
            namespace: "fund-admin".into(),
            correction: Some(Correction {
                correction: Some(correction::Correction::PhraseMapping(PhraseMapping {
                    phrase: "set up a CSA".into(),
                    verb: "create_isda".into(),
                })),
            }),
            ..SubmitFeedbackRequest::default()
        };
        BatchSubmitFeedbackRequest {
            requests: vec![item; items],
            ..BatchSubmitFeedbackRequest::default()
        }
    }

    #[test]
    fn what_is_sent_is_what_comes_and_what_is_within_a_field_does_not_count() {
        let sent = batch(1_000);
        let encoded = Bytes::from(sent.encode_to_vec());
        assert_eq!(fields(&encoded, MAX_FIELDS), 1_000);
        assert_eq!(decode::<BatchSubmitFeedbackRequest>(encoded).unwrap(), sent);
    }

    #[test]
    fn a_message_of_very_many_fields_is_refused_before_it_is_decoded() {
        let full = vec![[0x0a, 0x00]; MAX_FIELDS].concat();
        let decoded: BatchSubmitFeedbackRequest = decode(full.clone().into()).unwrap();
        assert_eq!(decoded.requests.len(), MAX_FIELDS);
        let beyond = [full, vec![0x0a, 0x00]].concat();
        let refused = decode::<BatchSubmitFeedbackRequest>(beyond.into()).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("4096"), "{}", refused.message());
    }

    #[test]
    fn what_is_no_protobuf_is_told_by_the_decoder() {
        for broken in [&[0x0a, 0x7f][..], &[0xff; 12], &[0x0a], &[0x07]] {
            let refused = decode::<BatchSubmitFeedbackRequest>(Bytes::copy_from_slice(broken)).unwrap_err();
            assert_eq!(refused.code(), Code::Internal, "{broken:?}");
        }
    }
}
