//! The protobuf codec of all methods, with a bound on what decoding one request may allocate.
//!
//! An element of a repeated message takes as little as two bytes on the wire but its whole struct in memory, so a
//! request within its 4 MiB could take hundreds of times that before its elements are validated. Elements, nested ones
//! included, are therefore counted before decoding. Wire-equal to tonic's own codec.

use std::marker::PhantomData;

use bytes::{Buf as _, Bytes};
use prost::{Message, Name};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::shape;

/// Maximum number of repeated-field elements and map entries in a request, nested ones included. The largest useful
/// request, 256 events with the full context a correction may have, has 8,448.
pub const MAX_ELEMENTS: usize = 10_000;

/// Encodes messages as protobuf. A request of more than [`MAX_ELEMENTS`] is `INVALID_ARGUMENT`.
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
    D: Message + Name + Default + 'static,
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

impl<D: Message + Name + Default> Decoder for BoundedDecoder<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        decode(buffer.copy_to_bytes(buffer.remaining())).map(Some)
    }
}

/// Decodes one whole message. A request that is malformed or has more than [`MAX_ELEMENTS`] is `INVALID_ARGUMENT`; an
/// unreadable response is `INTERNAL`, as in tonic.
pub fn decode<D: Message + Name + Default>(bytes: Bytes) -> Result<D, Status> {
    // Each element takes at least one byte.
    let may_have_more = bytes.len() > MAX_ELEMENTS;
    if may_have_more && shape::elements(&D::full_name(), &bytes, MAX_ELEMENTS) > MAX_ELEMENTS {
        return Err(Status::invalid_argument(format!(
            "the request has more than {MAX_ELEMENTS} elements of lists and maps, nested ones included"
        )));
    }
    D::decode(bytes).map_err(|error| {
        if shape::is_request(&D::full_name()) {
            Status::invalid_argument(format!("the request can't be read: {error}"))
        } else {
            Status::internal(error.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;

    use super::*;
    use crate::{
        common::v1::{Correction, PhraseMapping, correction},
        feedback::v1::{BatchSubmitFeedbackRequest, SubmitFeedbackRequest},
        learning::v1::{
            ImportResourcesRequest, ImportRow, ImportRows, IngestRequest, ListResourcesRequest,
            ListResourcesResponse, import_resources_request,
        },
    };

    /// This many empty elements of the repeated field 1.
    fn empty(elements: usize) -> Vec<u8> {
        [0x0a, 0x00].repeat(elements)
    }

    /// A message nested in another, at this field.
    fn within(field: u8, message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![field << 3 | 2];
        prost::encode_length_delimiter(message.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(message);
        bytes
    }

    fn refused<D: Message + Name + Default>(bytes: Vec<u8>) {
        let refused = decode::<D>(bytes.into()).map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("10000"), "{}", refused.message());
    }

    fn submission(context: usize) -> SubmitFeedbackRequest {
        SubmitFeedbackRequest {
            namespace: "fund-admin".into(),
            correction: Some(Correction {
                correction: Some(correction::Correction::PhraseMapping(PhraseMapping {
                    phrase: "set up a CSA".into(),
                    verb: "create_isda".into(),
                })),
            }),
            context: (0..context).map(|n| (n.to_string(), "x".repeat(100))).collect(),
            ..SubmitFeedbackRequest::default()
        }
    }

    #[test]
    fn the_largest_useful_requests_are_decoded_unchanged() {
        let batch = BatchSubmitFeedbackRequest {
            requests: vec![submission(32); 100],
            ..BatchSubmitFeedbackRequest::default()
        };
        let rows = ImportRows {
            rows: vec![
                ImportRow {
                    line: 7,
                    correction: submission(0).correction,
                    user_id: "u".repeat(100),
                };
                1_000
            ],
        };
        let import = ImportResourcesRequest {
            message: Some(import_resources_request::Message::Rows(rows)),
        };
        assert_eq!(
            decode::<BatchSubmitFeedbackRequest>(batch.encode_to_vec().into()).unwrap(),
            batch
        );
        assert_eq!(
            decode::<ImportResourcesRequest>(import.encode_to_vec().into()).unwrap(),
            import
        );
    }

    #[test]
    fn a_request_of_very_many_elements_is_refused_before_it_is_decoded() {
        let decoded: BatchSubmitFeedbackRequest = decode(empty(MAX_ELEMENTS).into()).unwrap();
        assert_eq!(decoded.requests.len(), MAX_ELEMENTS);
        refused::<BatchSubmitFeedbackRequest>(empty(MAX_ELEMENTS + 1));
        refused::<IngestRequest>(empty(2_000_000));
    }

    #[test]
    fn elements_within_others_count() {
        // The rows of an import are in a nested message.
        refused::<ImportResourcesRequest>(within(2, &empty(MAX_ELEMENTS + 1)));
        // The same field twice is one message with the elements of both.
        let half = within(2, &empty(MAX_ELEMENTS / 2 + 1));
        refused::<ImportResourcesRequest>([half.clone(), half].concat());
        // A map is a list of its entries.
        let context: HashMap<String, String> = (0..MAX_ELEMENTS)
            .map(|n| (n.to_string(), String::new()))
            .collect();
        let item = SubmitFeedbackRequest {
            context,
            ..SubmitFeedbackRequest::default()
        };
        refused::<BatchSubmitFeedbackRequest>(within(1, &item.encode_to_vec()));
    }

    #[test]
    fn numbers_count_one_by_one_and_packed() {
        refused::<ListResourcesRequest>([0x10, 0x01].repeat(MAX_ELEMENTS + 1));
        refused::<ListResourcesRequest>(within(2, &[0x01; MAX_ELEMENTS + 1]));
        let large_numbers = [0x81, 0x01].repeat(MAX_ELEMENTS);
        assert!(decode::<ListResourcesRequest>(within(2, &large_numbers).into()).is_ok());
    }

    #[test]
    fn a_response_may_have_as_many_elements_as_its_server_sends() {
        let answer: ListResourcesResponse = decode(empty(MAX_ELEMENTS + 1).into()).unwrap();
        assert_eq!(answer.resources.len(), MAX_ELEMENTS + 1);
    }

    #[test]
    fn malformed_protobuf_is_refused_by_the_decoder() {
        let long = vec![0xff; 3 * MAX_ELEMENTS];
        for broken in [&[0x0a, 0x7f][..], &[0xff; 12], &[0x0a], &[0x07], &long] {
            let refused = decode::<BatchSubmitFeedbackRequest>(Bytes::copy_from_slice(broken)).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{} bytes", broken.len());
            let answer = decode::<ListResourcesResponse>(Bytes::copy_from_slice(broken)).unwrap_err();
            assert_eq!(answer.code(), Code::Internal, "{} bytes", broken.len());
        }
    }
}
