//! Ids by their beginnings: where a table shows only the first characters of an id, these can be typed.
//!
//! The services know whole ids only. What begins so is looked for here, through all pages, so that a beginning which several
//! ids share is refused rather than guessed.

use emend_proto::{
    feedback::v1::{ListDeadLettersRequest, ListFeedbackRequest},
    learning::v1::{Candidate, ListCandidatesRequest},
};
use prost_types::Timestamp;

use crate::{
    context::{Context, pages},
    failure::{Failure, Result},
    output::ID_PREFIX,
};

/// The characters of a UUID, and those without dashes.
const WHOLE: [usize; 2] = [36, 32];
/// How far the clocks may differ that made a feedback's id and the time of its receipt.
const CLOCKS: i64 = 3_600;

/// A candidate's whole id; entries of profiles are found only with their user.
pub(super) async fn candidate(context: &Context, id: String, user_id: &str) -> Result<String> {
    single(candidates(context, vec![id], user_id).await?)
}

/// Whole ids of candidates, in the order given.
pub(super) async fn candidates(context: &Context, ids: Vec<String>, user_id: &str) -> Result<Vec<String>> {
    if !ids.iter().any(|id| is_beginning(id)) {
        return Ok(ids);
    }
    let client = context.candidates().await?;
    let begin_so = |candidate: Candidate| Some(candidate.candidate_id).filter(|id| begins_so(&ids, id));
    let (found, _) = pages(0, 500, |page_size, page_token| {
        let request = ListCandidatesRequest {
            namespace: context.namespace(),
            page_size,
            page_token,
            user_id: user_id.to_owned(),
            ..ListCandidatesRequest::default()
        };
        let mut client = client.clone();
        async move {
            let page = client.list_candidates(context.request(request)).await?;
            let page = page.into_inner();
            let ids = page.candidates.into_iter().filter_map(begin_so).collect();
            Ok((ids, page.next_page_token))
        }
    })
    .await?;
    complete(&ids, &found, "candidate", context)
}

/// A feedback's whole id.
pub(super) async fn feedback(context: &Context, id: String) -> Result<String> {
    if !is_beginning(&id) {
        return Ok(id);
    }
    let ids = [id];
    let (received_from, received_before) = received_around(&ids[0]).unzip();
    let request = ListFeedbackRequest {
        namespace: context.namespace(),
        received_from,
        received_before,
        ..ListFeedbackRequest::default()
    };
    let (found, _) = context.list(&request, 0).await?;
    let found: Vec<String> = found.into_iter().map(|feedback| feedback.feedback_id).collect();
    single(complete(&ids, &found, "feedback", context)?)
}

/// Whole ids of dead letters, in the order given.
pub(super) async fn dead_letters(context: &Context, ids: Vec<String>) -> Result<Vec<String>> {
    if !ids.iter().any(|id| is_beginning(id)) {
        return Ok(ids);
    }
    let request = ListDeadLettersRequest {
        namespace: context.namespace(),
        ..ListDeadLettersRequest::default()
    };
    let (found, _) = context.list(&request, 0).await?;
    let found: Vec<String> = found.into_iter().map(|letter| letter.event_id).collect();
    complete(&ids, &found, "dead letter", context)
}

/// Whether this may be a candidate's id, or the beginning of one.
pub(super) fn is_candidate(id: &str) -> bool {
    is_beginning(id) || WHOLE.contains(&id.len()) && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Whether this may be the beginning of an id, rather than a whole one or something that the service should refuse.
fn is_beginning(id: &str) -> bool {
    let of_an_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    (ID_PREFIX..WHOLE[0]).contains(&id.len()) && id.len() != WHOLE[1] && id.chars().all(of_an_id)
}

fn begins(id: &str, beginning: &str) -> bool {
    id.get(..beginning.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

fn begins_so(beginnings: &[String], id: &str) -> bool {
    beginnings.iter().any(|beginning| begins(id, beginning))
}

/// The ids with each beginning replaced by the one id that was found to begin so.
fn complete(ids: &[String], found: &[String], what: &str, context: &Context) -> Result<Vec<String>> {
    let whole = |id: &String| {
        if !is_beginning(id) {
            return Ok(id.clone());
        }
        let mut found = found.iter().filter(|found| begins(found, id));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(one), Some(other)) => Err(Failure::usage(format!(
                "the ids of several {what}s begin with {id}, such as {one} and {other}"
            ))),
            (None, _) => Err(Failure::NotFound(format!(
                "no {what} in the namespace {:?} has an id that begins with {id}",
                context.namespace()
            ))),
        }
    };
    ids.iter().map(whole).collect()
}

fn single(ids: Vec<String>) -> Result<String> {
    ids.into_iter()
        .next()
        .ok_or_else(|| Failure::failed("invariant: each id is completed"))
}

/// When feedback was received whose id begins so: a UUID of version 7 begins with its time in milliseconds, of which eight
/// digits tell some 65 seconds apart.
fn received_around(beginning: &str) -> Option<(Timestamp, Timestamp)> {
    let millis = i64::from_str_radix(beginning.get(..ID_PREFIX)?, 16).ok()? << 16;
    let at = |seconds| Timestamp { seconds, nanos: 0 };
    let from = millis / 1_000;
    Some((at((from - CLOCKS).max(0)), at(from + 66 + CLOCKS)))
}

#[cfg(test)]
mod tests {
    use emend_base::telemetry::Telemetry;

    use super::*;

    #[test]
    fn a_beginning_stands_for_the_one_id_that_begins_so() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            global: crate::context::Global,
        }
        let program = <Program as clap::Parser>::parse_from(["emend"]);
        let context = Context::new(program.global, Telemetry::default());
        let known = [
            "51fa440e-1535-5be4-ba57-7a0a9cb50bdf",
            "51fa440e-a535-5be4-ba57-7a0a9cb50bdf",
        ];
        let found: Vec<String> = known.map(str::to_owned).into();
        let completed = |id: &str| {
            complete(&[id.to_owned()], &found, "candidate", &context)
                .map(|ids| ids[0].clone())
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(completed("51FA440E-1"), Ok(known[0].to_owned()));
        assert_eq!(completed(known[1]), Ok(known[1].to_owned()));
        assert!(
            completed("51fa440e")
                .unwrap_err()
                .contains("several candidates begin")
        );
        assert!(
            completed("61fa440e")
                .unwrap_err()
                .contains("no candidate in the namespace")
        );
        // What no table shows is left to the service to judge.
        for other in ["51fa440", "not an id", "", "51fa440e15355be4ba577a0a9cb50bdf"] {
            assert_eq!(completed(other), Ok(other.to_owned()));
        }
    }

    #[test]
    fn the_beginning_of_a_feedbacks_id_tells_when_it_was_received() {
        let (from, before) = received_around("01a213e4-22").unwrap();
        // 2026-11-25T18:07:27Z
        assert!((from.seconds..before.seconds).contains(&1_795_630_047));
        assert!(before.seconds - from.seconds < 2 * CLOCKS + 100);
        assert_eq!(received_around("01a213e"), None);
    }
}
