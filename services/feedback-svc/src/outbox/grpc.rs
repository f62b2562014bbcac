//! The RPCs of dead letters.

use emend_base::Error;
use emend_core::{EventId, Invalid, Namespace, Violations};
use emend_proto::feedback::v1 as pb;
use emend_serve::auth::Call;
use emend_wire::{
    page::{self, QueryHash},
    parse, render,
};
use feedback_store::records::outbox::{DeadLetter, DeadLetterPosition, DeadLetterQuery, Redrive};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::{outbox::dead_letters::DeadLetters, page::Page, roles::open};

const MAX_EVENT_IDS: usize = 500;
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 500;

impl DeadLetters {
    pub(crate) async fn list_dead_letters(
        &self,
        request: Request<pb::ListDeadLettersRequest>,
    ) -> Result<Response<pb::ListDeadLettersResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let hash = dead_letters_hash(&request);
        let query = dead_letters(&request, hash).map_err(Error::from)?;
        Ok(Response::new(dead_letter_page(self.list(query).await?, hash)))
    }

    pub(crate) async fn redrive_dead_letters(
        &self,
        request: Request<pb::RedriveDeadLettersRequest>,
    ) -> Result<Response<pb::RedriveDeadLettersResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let which = redrive(&message).map_err(Error::from)?;
        Ok(Response::new(pb::RedriveDeadLettersResponse {
            redriven_count: render::saturated(self.redrive(&which).await?),
        }))
    }
}

/// The namespace that is asked for, if one is.
fn asked_namespace(raw: &str) -> Result<Option<Namespace>, Invalid> {
    if raw.is_empty() {
        return Ok(None);
    }
    Namespace::parse(raw).map(Some)
}

/// Identifies a list of dead letters, whatever the page.
pub(crate) fn dead_letters_hash(request: &pb::ListDeadLettersRequest) -> QueryHash {
    let query = pb::ListDeadLettersRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListDeadLetters", &query)
}

pub(crate) fn dead_letters(
    request: &pb::ListDeadLettersRequest,
    hash: QueryHash,
) -> Result<DeadLetterQuery, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", asked_namespace(&request.namespace));
    let limit = violations.check(
        "page_size",
        parse::page_size(request.page_size, DEFAULT_PAGE, MAX_PAGE),
    );
    let after = violations.check("page_token", dead_letter_position(hash, &request.page_token));
    let parsed = (|| {
        Some(DeadLetterQuery {
            namespace: namespace?,
            after: after?,
            limit: limit?,
        })
    })();
    violations.finish(parsed)
}

fn dead_letter_position(hash: QueryHash, token: &str) -> Result<Option<DeadLetterPosition>, Invalid> {
    let Some(bytes) = page::position(hash, token)? else {
        return Ok(None);
    };
    let (time, id) = bytes
        .split_first_chunk::<8>()
        .and_then(|(time, id)| Some((*time, <[u8; 16]>::try_from(id).ok()?)))
        .ok_or_else(|| Invalid::new("is not a page token of this list"))?;
    Ok(Some(DeadLetterPosition {
        dead_at: i64::from_le_bytes(time),
        event_id: EventId(Uuid::from_bytes(id)),
    }))
}

pub(crate) fn redrive(request: &pb::RedriveDeadLettersRequest) -> Result<Redrive, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", asked_namespace(&request.namespace));
    let count = request.event_ids.len();
    if count > MAX_EVENT_IDS {
        violations.add(
            "event_ids",
            format!("must be at most {MAX_EVENT_IDS}, has {count}"),
        );
    }
    let parsed = request.event_ids.iter().take(MAX_EVENT_IDS).enumerate();
    let events: Vec<_> = parsed
        .filter_map(|(index, id)| violations.check(&format!("event_ids[{index}]"), EventId::parse(id)))
        .collect();
    let which = match namespace {
        Some(Some(namespace)) if count == 0 => Some(Redrive::Namespace(namespace)),
        Some(None) if count == 0 => {
            violations.add("namespace", "is required unless event_ids are given");
            None
        }
        namespace => namespace.map(|namespace| Redrive::Events(events, namespace)),
    };
    violations.finish(which)
}

fn dead_letter(letter: DeadLetter) -> pb::DeadLetter {
    pb::DeadLetter {
        event_id: letter.event_id.to_string(),
        feedback_id: letter.feedback_id.to_string(),
        namespace: letter.namespace.to_string(),
        attempts: i32::try_from(letter.attempts).unwrap_or(i32::MAX),
        code: letter.refusal.code,
        error: letter.refusal.error,
        dead_at: Some(render::timestamp_from_micros(letter.dead_at)),
    }
}

fn dead_letter_page(page: Page<DeadLetter>, hash: QueryHash) -> pb::ListDeadLettersResponse {
    let ends: Vec<_> = page
        .items
        .iter()
        .map(|letter| (letter.dead_at, letter.event_id))
        .collect();
    let (dead_letters, was_cut) = page::cut(page.items.into_iter().map(dead_letter).collect());
    let last = ends[..dead_letters.len()].last().filter(|_| page.more || was_cut);
    let next_page_token = last.map(|(dead_at, event_id)| {
        let mut position = dead_at.to_le_bytes().to_vec();
        position.extend_from_slice(event_id.0.as_bytes());
        page::token(hash, &position)
    });
    pb::ListDeadLettersResponse {
        dead_letters,
        next_page_token: next_page_token.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use emend_core::FeedbackId;
    use feedback_store::records::outbox::Refusal;
    use feedback_store::testing;
    use prost::Message as _;

    use super::*;

    /// What a client decodes by default.
    const CLIENT_LIMIT: usize = 4 * 1024 * 1024;

    #[test]
    fn a_page_of_large_dead_letters_holds_no_more_than_a_client_can_decode() {
        let large = |number: u128| DeadLetter {
            event_id: EventId(Uuid::from_u128(number)),
            feedback_id: FeedbackId(Uuid::from_u128(number)),
            namespace: testing::namespace(),
            attempts: 1,
            refusal: Refusal {
                code: 3,
                error: "x".repeat(16_000),
            },
            dead_at: 7,
        };
        let page = Page {
            items: (0..500).map(large).collect(),
            more: false,
        };
        let hash = QueryHash::of("List", &());
        let answered = dead_letter_page(page, hash);
        assert!(
            answered.encoded_len() < CLIENT_LIMIT,
            "{}",
            answered.encoded_len()
        );
        let last = u128::try_from(answered.dead_letters.len() - 1).unwrap();
        let position = page::position(hash, &answered.next_page_token).unwrap().unwrap();
        assert_eq!(position[8..], Uuid::from_u128(last).into_bytes());
    }
}
