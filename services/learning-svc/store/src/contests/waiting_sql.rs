//! The candidates that await review, in a table of their own: few of very many, which are listed by figures that each vote changes.

use std::collections::HashSet;

use emend_core::{CandidateId, ContestId, Status};
use emend_store::StoreError;

use super::{CandidateWrite, TransitionWrite, controversy};
use crate::{batches::batches, database::bytes, integers::saturated, work::Work};

type Result<T> = std::result::Result<T, StoreError>;

/// Follows what a unit of work writes. Where nothing waits or has waited, there is nothing to do.
pub(super) async fn save(
    work: &mut Work,
    candidates: &[CandidateWrite],
    transitions: &[(ContestId, TransitionWrite)],
) -> Result<()> {
    let left = transitions
        .iter()
        .filter(|(_, moved)| moved.from == Some(Status::AwaitingReview));
    let left: HashSet<(ContestId, CandidateId)> =
        left.map(|(contest, moved)| (*contest, moved.candidate)).collect();
    let (mut waiting, mut gone) = (Vec::new(), Vec::new());
    for write in candidates {
        let (contest, id) = (write.key.contest_id(), write.candidate.id);
        if write.candidate.status == Status::AwaitingReview {
            waiting.push((work.keys.candidate(contest, id)?, write));
        } else if left.contains(&(contest, id)) {
            gone.push(work.keys.candidate(contest, id)?);
        }
    }
    for waiting in batches(&waiting) {
        let query = work.write(
            "INSERT INTO waiting_candidates (candidate, namespace, kind, reporters, controversy, created_at, \
             candidate_id) ",
        );
        query.push_values(waiting, |mut row, (key, write)| {
            row.push_bind(*key)
                .push_bind(write.key.namespace.as_str())
                .push_bind(write.key.kind.number())
                .push_bind(saturated(write.candidate.reporters))
                .push_bind(controversy(&write.candidate))
                .push_bind(write.kept.created_at.as_microsecond())
                .push_bind(bytes(write.candidate.id.0));
        });
        query.push(
            " ON CONFLICT (candidate) DO UPDATE SET reporters = excluded.reporters, controversy = excluded.controversy",
        );
        work.written().await?;
    }
    for gone in batches(&gone) {
        let query = work.write("DELETE FROM waiting_candidates WHERE candidate IN ");
        query.push_list(gone.iter().copied());
        work.written().await?;
    }
    Ok(())
}
