//! Pages of the audit trail, each small enough for a client to read, however large a single revision is.

use emend_core::{Invalid, Revision};
use emend_proto::learning::v1 as pb;
use emend_wire::{
    page::{self, MAX_PAGE_BYTES, QueryHash},
    render,
};
use learning_store::log::{ChangeRecord, RevisionRecord};
use prost::Message as _;

use crate::grpc::render::actor;

/// Where a page begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// At the newest revision below this one; none: at the newest of all.
    pub(crate) before: Option<Revision>,
    /// How many of that revision's changes were on earlier pages.
    skipped: usize,
}

impl Place {
    /// The place a token names.
    pub(crate) fn parse(query: QueryHash, token: &str) -> Result<Self, Invalid> {
        let Some(position) = page::position(query, token)? else {
            return Ok(Self::default());
        };
        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).ok();
        let parsed = match position.split_at_checked(8) {
            Some((before, [])) => number(before).map(|before| (before, 0)),
            Some((before, skipped)) => number(before).zip(number(skipped)),
            None => None,
        };
        parsed
            .and_then(|(before, skipped)| {
                Some(Self {
                    before: Some(Revision(before)),
                    skipped: usize::try_from(skipped).ok()?,
                })
            })
            .ok_or_else(|| Invalid::new("is not a page token of this list"))
    }

    /// The token that names this place; empty at the newest revision of all.
    pub(crate) fn token(self, query: QueryHash) -> String {
        let Some(before) = self.before else {
            return String::new();
        };
        let mut position = before.0.to_le_bytes().to_vec();
        if self.skipped > 0 {
            let skipped = i64::try_from(self.skipped).unwrap_or(i64::MAX);
            position.extend_from_slice(&skipped.to_le_bytes());
        }
        page::token(query, &position)
    }
}

/// The page that begins at `place`, made of the records found there. `more`: further records follow them.
pub(crate) fn page(
    query: QueryHash,
    place: Place,
    records: Vec<RevisionRecord>,
    more: bool,
) -> pb::ListRevisionsResponse {
    let mut revisions: Vec<pb::Revision> = records.into_iter().map(revision).collect();
    if let Some(first) = revisions.first_mut() {
        first.changes.drain(..place.skipped.min(first.changes.len()));
        if first.encoded_len() > MAX_PAGE_BYTES {
            let (changes, was_cut) = page::cut(std::mem::take(&mut first.changes));
            first.changes = changes;
            first.changes_continue = was_cut;
        }
        if first.changes_continue {
            let rest = Place {
                before: Some(Revision(first.revision + 1)),
                skipped: place.skipped + first.changes.len(),
            };
            let next_page_token = rest.token(query);
            revisions.truncate(1);
            return pb::ListRevisionsResponse {
                revisions,
                next_page_token,
            };
        }
    }
    let (revisions, was_cut) = page::cut(revisions);
    let last = revisions.last().filter(|_| more || was_cut);
    let next_page_token = last
        .map(|last| Place {
            before: Some(Revision(last.revision)),
            skipped: 0,
        })
        .map(|next| next.token(query))
        .unwrap_or_default();
    pb::ListRevisionsResponse {
        revisions,
        next_page_token,
    }
}

fn revision(record: RevisionRecord) -> pb::Revision {
    pb::Revision {
        revision: record.revision.0,
        operation_id: record.operation,
        cause: render::cause(record.cause),
        actor: Some(actor(&record.actor)),
        reason: record.reason,
        committed_at: Some(render::timestamp(record.committed_at)),
        changes: record.changes.into_iter().map(change).collect(),
        changes_continue: false,
    }
}

fn change(change: ChangeRecord) -> pb::RevisionChange {
    let value = |value| render::value_of(&change.key, value);
    pb::RevisionChange {
        key: Some(render::resource_key(&change.key)),
        before: change.before.as_ref().map(value),
        after: change.after.as_ref().map(value),
        candidate_id: change.candidate,
        feedback_id: change.feedback,
        policy_version: change.policy_version,
        value_dropped: change.is_dropped,
        after_checksum: change.checksum,
        changed_since: change.changed_since,
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Caller, Cause, Kind, Learned, ResourceKey, ResourceValue};
    use jiff::Timestamp;

    use super::*;
    use learning_store::{actor::Actor, log::ChangeRecord};

    const CLIENT_LIMIT: usize = 4 * 1024 * 1024;

    fn record(revision: i64, changes: usize) -> RevisionRecord {
        // As large as keys and values get.
        let text = |n: usize| format!("{n:04}{}", "\u{10437}".repeat(508));
        let value = |n| ResourceValue::new(text(n), Learned::Entity("\u{10437}".repeat(256)));
        let change = |n: usize| ChangeRecord {
            key: ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), &text(n), "", "").unwrap(),
            before: Some(value(n)),
            after: Some(value(n)),
            is_dropped: false,
            checksum: 0,
            candidate: String::new(),
            feedback: String::new(),
            policy_version: 0,
            changed_since: false,
        };
        RevisionRecord {
            revision: Revision(revision),
            operation: String::new(),
            cause: Cause::Import,
            actor: Actor::caller(Caller::system()),
            reason: "x".repeat(4_000),
            committed_at: Timestamp::UNIX_EPOCH,
            changes: (0..changes).map(change).collect(),
        }
    }

    #[test]
    fn a_revision_of_a_thousand_large_changes_is_listed_in_pages_that_a_client_can_decode() {
        let query = QueryHash::of("ListRevisions", &());
        let log = [record(9, 3), record(8, 1_000), record(7, 2)];
        let expected: Vec<(i64, usize)> = log.iter().map(|r| (r.revision.0, r.changes.len())).collect();
        let (mut token, mut pages) = (String::new(), 0);
        let mut seen: Vec<(i64, usize)> = Vec::new();
        let mut keys = std::collections::BTreeSet::new();
        loop {
            let place = Place::parse(query, &token).unwrap();
            let below = place.before.map_or(i64::MAX, |before| before.0);
            let found: Vec<_> = log.iter().filter(|r| r.revision.0 < below).cloned().collect();
            let answer = page(query, place, found, false);
            assert!(answer.encoded_len() < CLIENT_LIMIT, "{}", answer.encoded_len());
            pages += 1;
            for revision in &answer.revisions {
                keys.extend(
                    revision
                        .changes
                        .iter()
                        .map(|change| (revision.revision, change.key.clone().unwrap().key)),
                );
                match seen.last_mut() {
                    Some(last) if last.0 == revision.revision => last.1 += revision.changes.len(),
                    _ => seen.push((revision.revision, revision.changes.len())),
                }
            }
            token = answer.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, expected, "every change of every revision, newest first");
        assert_eq!(keys.len(), 1_005, "none of them twice");
        assert!(pages > 3, "{pages}");
    }

    #[test]
    fn page_tokens_of_the_older_form_are_accepted() {
        let query = QueryHash::of("ListRevisions", &());
        let place = Place::parse(query, &page::number_token(query, 7)).unwrap();
        assert_eq!((place.before, place.skipped), (Some(Revision(7)), 0));
        for bad in [&b"x"[..], &[0; 9], &[255; 16]] {
            assert!(Place::parse(query, &page::token(query, bad)).is_err(), "{bad:?}");
        }
    }
}
