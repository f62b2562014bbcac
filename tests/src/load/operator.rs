//! A writer that decides by itself: it puts values, deletes them and reverts what it did.

use emend_proto::learning::v1::{DeleteResourceRequest, PutResourceRequest, RevertRevisionRequest};
use tonic::Code;

use super::{
    Writer,
    record::{OperatorWrite, Record, Revert},
    retry::{Clients, Ended},
};
use crate::harness::{
    Learning, NAMESPACE,
    says::{phrase_key, verb_value},
};

/// The number of phrases that it decides; on some of them reporters disagree.
const PHRASES: usize = 16;
const VERBS: [&str; 3] = ["close_trade", "book_trade", "amend_trade"];

/// Decides until it is stopped.
pub(super) async fn work(mut writer: Writer, mut clients: Clients<Learning>) -> Record {
    let mut last_put = None;
    while writer.goes_on().await {
        let place = writer.dice.below(PHRASES);
        let key = if place < 4 {
            format!("phrase {place}")
        } else {
            format!("ruled {place}")
        };
        match writer.dice.below(10) {
            0..=5 => {
                if let Some(act) = put(&mut writer, &mut clients, &key).await {
                    last_put = Some(act.revision);
                    writer.record.acts.push(act);
                }
            }
            6 | 7 => {
                if let Some(act) = delete(&mut writer, &mut clients, &key).await {
                    writer.record.acts.push(act);
                }
            }
            _ => {
                if let Some(of) = last_put.take()
                    && let Some(revert) = revert(&mut writer, &mut clients, of).await
                {
                    writer.record.reverts.push(revert);
                }
            }
        }
        writer.acknowledged();
    }
    writer.record
}

async fn put(writer: &mut Writer, clients: &mut Clients<Learning>, key: &str) -> Option<OperatorWrite> {
    let verb = *writer.dice.one_of(&VERBS);
    let request = PutResourceRequest {
        key: Some(phrase_key(key)),
        value: Some(verb_value(verb)),
        reason: "an operator's decision".into(),
        ..PutResourceRequest::default()
    };
    let call = |client: Learning| {
        let request = request.clone();
        async move { client.resources.clone().put_resource(request).await }
    };
    match clients.until_answered(writer, "a put", call).await {
        // Revision 0: it already had this value, perhaps from an earlier attempt.
        Ended::Acknowledged(answer, _) => operator_write(answer.into_inner().revision, key, Some(verb)),
        Ended::Refused(refusal) => panic!("{}: a put was refused: {refusal}", writer.name),
    }
}

async fn delete(writer: &mut Writer, clients: &mut Clients<Learning>, key: &str) -> Option<OperatorWrite> {
    let request = DeleteResourceRequest {
        key: Some(phrase_key(key)),
        reason: "an operator's decision".into(),
        ..DeleteResourceRequest::default()
    };
    let call = |client: Learning| {
        let request = request.clone();
        async move { client.resources.clone().delete_resource(request).await }
    };
    match clients.until_answered(writer, "a deletion", call).await {
        Ended::Acknowledged(answer, _) => operator_write(answer.into_inner().revision, key, None),
        // Nothing was there, or an earlier attempt deleted it.
        Ended::Refused(refusal) if refusal.code == Code::NotFound => None,
        Ended::Refused(refusal) => panic!("{}: a deletion was refused: {refusal}", writer.name),
    }
}

fn operator_write(revision: i64, key: &str, value: Option<&str>) -> Option<OperatorWrite> {
    (revision > 0).then(|| OperatorWrite {
        revision,
        key: key.to_owned(),
        value: value.map(str::to_owned),
    })
}

async fn revert(writer: &mut Writer, clients: &mut Clients<Learning>, of: i64) -> Option<Revert> {
    let request = RevertRevisionRequest {
        namespace: NAMESPACE.into(),
        revision: of,
        reason: "it was wrong".into(),
        ..RevertRevisionRequest::default()
    };
    let call = |client: Learning| {
        let request = request.clone();
        async move { client.resources.clone().revert_revision(request).await }
    };
    match clients.until_answered(writer, "a revert", call).await {
        Ended::Acknowledged(answer, _) => {
            let revision = answer.into_inner().revision;
            (revision > 0).then_some(Revert { of, revision })
        }
        // The key has changed since, perhaps by an earlier attempt.
        Ended::Refused(refusal) if refusal.code == Code::FailedPrecondition => None,
        Ended::Refused(refusal) => panic!("{}: a revert was refused: {refusal}", writer.name),
    }
}
