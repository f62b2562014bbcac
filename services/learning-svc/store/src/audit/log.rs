//! Checks the log as such: its head, that it has no gaps, and the shape of each revision.

use std::collections::HashMap;

use emend_core::Revision;
use emend_store::{
    StoreError,
    audit::{Findings, Watch},
};

use super::{Figures, HEAD, LOG_GAP, REVISION_CHANGES, TOMBSTONE_HORIZON};
use crate::audit::stored::{AuditRead, Span};

/// Revisions per page.
const PAGE: i64 = 10_000;
/// Maximum changes per revision.
const MAX_CHANGES: i64 = 1_000;

pub(super) async fn check(
    reading: &mut dyn AuditRead,
    figures: &mut Figures,
    findings: &mut Findings,
    watch: &mut dyn Watch,
) -> Result<(), StoreError> {
    let heads = reading.heads().await?;
    if heads.len() != 1 {
        findings.add(HEAD, "the log", format_args!("it has {} heads", heads.len()));
    }
    if let Some(head) = heads.into_iter().next()
        && let Some(head) = findings.readable(head)?
    {
        figures.epoch = Some(head.epoch);
        figures.head = Revision(head.revision);
        figures.horizon = Revision(head.horizon);
        if !(0..=head.revision).contains(&head.horizon) {
            findings.add(
                TOMBSTONE_HORIZON,
                format_args!("revision {}", head.horizon),
                format_args!("the horizon is there, but the head is {}", head.revision),
            );
        }
    }
    let head = figures.head.0;
    watch.begins("revisions", u64::try_from(head).unwrap_or(0));
    beyond(reading, i64::MIN, 0, head, findings).await?;
    let mut after = 0;
    while after < head {
        let through = after.saturating_add(PAGE).min(head);
        let (revisions, spans) = reading.revisions(after, through).await?;
        let mut expected = after + 1;
        for revision in &revisions {
            missing(expected, *revision, findings);
            expected = revision + 1;
        }
        missing(expected, through + 1, findings);
        figures.changes += spans.iter().map(|span| span.changes.unsigned_abs()).sum::<u64>();
        check_changes(&revisions, &spans, findings);
        watch.went_on((through - after).unsigned_abs());
        after = through;
    }
    beyond(reading, head.max(0), i64::MAX, head, findings).await
}

/// Reports the revisions from `expected` up to but not including `found` as missing.
fn missing(expected: i64, found: i64, findings: &mut Findings) {
    match found - expected {
        0 => {}
        1 => findings.add(LOG_GAP, format_args!("revision {expected}"), "it is missing"),
        count => findings.add(
            LOG_GAP,
            format_args!("revisions {expected} to {}", found - 1),
            format_args!("{count} are missing"),
        ),
    }
}

/// Checks that nothing is in the log from `after` (exclusive) to `through` (inclusive).
async fn beyond(
    reading: &mut dyn AuditRead,
    after: i64,
    through: i64,
    head: i64,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let (revisions, spans) = reading.revisions(after, through).await?;
    for revision in &revisions {
        findings.add(
            LOG_GAP,
            format_args!("revision {revision}"),
            format_args!("it is in the log, but revisions go from 1 to {head}"),
        );
    }
    check_changes(&revisions, &spans, findings);
    Ok(())
}

fn check_changes(revisions: &[i64], spans: &[Span], findings: &mut Findings) {
    let mut spans: HashMap<i64, &Span> = spans.iter().map(|span| (span.revision, span)).collect();
    for revision in revisions {
        let wrong = match spans.remove(revision) {
            None => Some("it has no changes".to_owned()),
            Some(span) if span.changes > MAX_CHANGES => Some(format!("it has {} changes", span.changes)),
            Some(span) if span.first != 0 || span.last != span.changes - 1 => Some(format!(
                "its {} changes are numbered from {} to {}",
                span.changes, span.first, span.last
            )),
            Some(span) if span.keys != span.changes => Some(format!(
                "its {} changes have only {} different keys",
                span.changes, span.keys
            )),
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            findings.add(REVISION_CHANGES, format_args!("revision {revision}"), wrong);
        }
    }
    for revision in spans.into_keys() {
        findings.add(
            REVISION_CHANGES,
            format_args!("revision {revision}"),
            "it is not in the log, but has changes",
        );
    }
}
