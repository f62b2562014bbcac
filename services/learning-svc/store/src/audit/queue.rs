//! Checks the review queue: what is listed, leased, counted and told against the candidates themselves.

use emend_store::{StoreError, audit::Findings};

use super::{QUEUE_CHANGE, QUEUE_DAY, QUEUE_LEASE, QUEUE_WAITING, stored::AuditRead};
use crate::rows::StoredId;

pub(super) async fn check(reading: &mut dyn AuditRead, findings: &mut Findings) -> Result<(), StoreError> {
    for wrong in reading.wrong_waiting().await? {
        let (check, message) = match wrong.what {
            1 => (QUEUE_WAITING, "it awaits review, but the queue does not list it"),
            2 => (QUEUE_WAITING, "the queue lists it, but it does not await review"),
            3 => (QUEUE_WAITING, "the queue lists it with other figures than it has"),
            _ => (QUEUE_LEASE, "somebody has it open for longer than a lease lasts"),
        };
        findings.add(check, format_args!("candidate {}", StoredId(&wrong.id)), message);
    }
    for wrong in reading.wrong_days().await? {
        findings.add(
            QUEUE_DAY,
            format_args!(
                "namespace {}, kind {}, day {}",
                wrong.namespace, wrong.kind, wrong.day
            ),
            "its figures are below zero, or below what the histories of its candidates say",
        );
    }
    for change in reading.wrong_queue_changes().await? {
        findings.add(
            QUEUE_CHANGE,
            format_args!("change {change} of the queue"),
            "its contest does not exist, or a status that it names",
        );
    }
    Ok(())
}
