//! Fuzzes streamed imports.

use emend_core::{Caller, OperationId};
use emend_proto::learning::v1::{self as pb, import_resources_request::Message};
use prost::Message as _;

use crate::resources::grpc::import::{ERRORS, ERRORS_IN_STATUS, Error, Upload, header};

/// The messages of one stream, in one message.
#[derive(Clone, PartialEq, prost::Message)]
struct Sent {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<pb::ImportResourcesRequest>,
}

/// Reads one import as far as it is valid. Every row is kept, as one proposal or more, or counted as bad, and the errors
/// reported are bounded.
pub fn import(bytes: &[u8]) {
    let Ok(sent) = Sent::decode(bytes) else {
        return;
    };
    let mut messages = sent.messages.into_iter().map_while(|message| message.message);
    let Some(Message::Header(first)) = messages.next() else {
        return;
    };
    let operation = OperationId(uuid::Uuid::from_u128(1));
    let Ok(import) = header(&Caller::anonymous(), &first, operation) else {
        return;
    };
    let mut upload = Upload::new(&import, 128 << 20);
    let mut received = 0;
    for message in messages {
        let Message::Rows(rows) = message else { return };
        if upload.take(&rows.rows).is_err() {
            return;
        }
        received += rows.rows.len();
    }
    let rejected = usize::try_from(upload.rejected).expect("no more than were sent");
    assert!(upload.rows.len() + rejected >= received && rejected <= received);
    assert!(upload.errors.len() <= ERRORS && (upload.rejected == 0) == upload.errors.is_empty());
    for row in &upload.rows {
        assert!(row.line >= 1);
        assert_eq!(row.proposal.key.namespace, import.namespace);
    }
    if let Error::InvalidArgument(violations) = upload.refusal() {
        assert!(violations.len() <= ERRORS_IN_STATUS + 1);
    }
}
