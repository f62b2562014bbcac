//! A writer that submits corrections, one by one and in batches, and retracts some of them.

use emend_base::status::{Explained, from_item_status};
use emend_proto::{
    common::v1::{Scope, SynonymRelation},
    feedback::v1::{
        BatchSubmitFeedbackRequest, Feedback as StoredFeedback, RetractFeedbackRequest,
        SubmitFeedbackRequest, Wait,
    },
};

use super::{
    Writer,
    record::Record,
    retry::{Clients, Ended},
};
use crate::harness::{Feedback, NAMESPACE, alias, prohibit, says, says::synonyms, verb};

/// The number of disputed phrases.
const PHRASES: usize = 12;
const CHOICES: [&str; 4] = ["create_csa", "create_csa", "create_isda", "create_gmra"];
/// Reporters that speak repeatedly, so that votes move.
const REGULARS: usize = 8;

/// Submits and retracts until it is stopped.
pub(super) async fn work(mut writer: Writer, mut clients: Clients<Feedback>) -> Record {
    let mut own: Vec<String> = Vec::new();
    let mut n = 0;
    while writer.goes_on().await {
        n += 1;
        match writer.dice.below(20) {
            0..=2 if !own.is_empty() => {
                let id = own.swap_remove(writer.dice.below(own.len()));
                retract(&mut writer, &mut clients, &id).await;
                writer.record.acknowledge_retraction(id);
            }
            3 => {
                let items = 2 + writer.dice.below(5);
                let requests: Vec<_> = (0..items)
                    .map(|item| request(&writer, &format!("{n}.{item}")))
                    .collect();
                let all = submit_all(&mut writer, &mut clients, &requests).await;
                for (request, stored) in requests.iter().zip(all) {
                    own.push(writer.record.acknowledge(request, stored));
                }
            }
            _ => {
                let request = request(&writer, &n.to_string());
                let stored = submit(&mut writer, &mut clients, &request).await;
                own.push(writer.record.acknowledge(&request, stored));
            }
        }
        writer.acknowledged();
    }
    writer.record
}

fn request(writer: &Writer, n: &str) -> SubmitFeedbackRequest {
    let dice = &writer.dice;
    let request_id = format!("{}-{n}", writer.name);
    let phrase = format!("phrase {}", dice.below(PHRASES));
    let choice = *dice.one_of(&CHOICES);
    let correction = match dice.below(12) {
        0..=5 => verb(&phrase, choice),
        6..=8 => alias(&phrase, choice),
        9 => prohibit(&phrase, choice),
        _ => synonyms(
            &phrase,
            &["term one", "term two", "term three"],
            SynonymRelation::Equivalent,
        ),
    };
    let regular = dice.chance(0.5);
    let reporter = if regular {
        format!("regular-{}", dice.below(REGULARS))
    } else {
        format!("once-{request_id}")
    };
    let scope = if regular && dice.chance(0.2) {
        Scope::User
    } else {
        Scope::Global
    };
    let wait = if dice.chance(0.1) {
        Wait::Evaluated
    } else {
        Wait::Recorded
    };
    SubmitFeedbackRequest {
        request_id,
        wait: wait.into(),
        scope: scope.into(),
        ..says(&reporter, correction)
    }
}

async fn submit(
    writer: &mut Writer,
    clients: &mut Clients<Feedback>,
    request: &SubmitFeedbackRequest,
) -> StoredFeedback {
    writer.record.asked.ask(request);
    let call = |client: Feedback| {
        let request = request.clone();
        async move { client.service.clone().submit_feedback(request).await }
    };
    match clients.until_answered(writer, "a submission", call).await {
        Ended::Acknowledged(answer, _) => answer.into_inner().feedback.expect("an answer has the feedback"),
        Ended::Refused(refusal) => panic!("{}: a submission was refused: {refusal}", writer.name),
    }
}

/// Submits in one batch; whatever the batch could not store is then submitted one by one.
async fn submit_all(
    writer: &mut Writer,
    clients: &mut Clients<Feedback>,
    requests: &[SubmitFeedbackRequest],
) -> Vec<StoredFeedback> {
    for request in requests {
        writer.record.asked.ask(request);
    }
    let batch = BatchSubmitFeedbackRequest {
        requests: requests.to_vec(),
        ..BatchSubmitFeedbackRequest::default()
    };
    let call = |client: Feedback| {
        let batch = batch.clone();
        async move { client.service.clone().batch_submit_feedback(batch).await }
    };
    let results = match clients.until_answered(writer, "a batch", call).await {
        Ended::Acknowledged(answer, _) => answer.into_inner().results,
        Ended::Refused(refusal) => panic!("{}: a batch was refused: {refusal}", writer.name),
    };
    assert_eq!(results.len(), requests.len(), "a result for each item");
    let mut all = Vec::new();
    for (request, result) in requests.iter().zip(results) {
        if let Some(stored) = result.feedback {
            all.push(stored);
            continue;
        }
        let refusal = result.status.as_ref().and_then(from_item_status);
        let refusal = Explained::from(&refusal.expect("an item without feedback says why"));
        writer.record.refusals.add(&refusal);
        all.push(submit(writer, clients, request).await);
    }
    all
}

async fn retract(writer: &mut Writer, clients: &mut Clients<Feedback>, id: &str) {
    writer.record.asked.ask_to_retract(id);
    let request = RetractFeedbackRequest {
        namespace: NAMESPACE.into(),
        feedback_id: id.into(),
        reason: "said in error".into(),
        ..RetractFeedbackRequest::default()
    };
    let call = |client: Feedback| {
        let request = request.clone();
        async move { client.service.clone().retract_feedback(request).await }
    };
    match clients.until_answered(writer, "a retraction", call).await {
        Ended::Acknowledged(answer, _) => {
            let stored = answer.into_inner().feedback.expect("an answer has the feedback");
            assert!(stored.retracted_at.is_some(), "it is retracted: {stored:?}");
        }
        Ended::Refused(refusal) => panic!("{}: a retraction was refused: {refusal}", writer.name),
    }
}
