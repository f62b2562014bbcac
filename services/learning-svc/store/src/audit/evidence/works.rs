//! Checks which pages are one work: recomputed from their ids, a work at a time.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::evidence::joined;
use emend_store::{StoreError, audit::Findings};
use futures::TryStreamExt as _;

use super::{PAGE, report};
use crate::audit::EVIDENCE_WORK;
use crate::audit::stored::{AuditRead, evidence::AuditedWork};

/// The ids of each page of a work, and those that are stored with the work.
#[derive(Debug, Default)]
struct OfWork {
    pages: Vec<Vec<String>>,
    ids: BTreeSet<String>,
}

pub(super) async fn check(reading: &mut dyn AuditRead, findings: &mut Findings) -> Result<(), StoreError> {
    report(EVIDENCE_WORK, reading.works_of_nothing().await?, findings);
    let mut after = 0;
    loop {
        let works = reading.works_after(after, PAGE).await?;
        let Some(last) = works.last() else {
            return Ok(());
        };
        let through = last.work;
        let mut found: BTreeMap<i64, OfWork> = BTreeMap::new();
        let mut pages = reading.pages_of_works(after, through);
        while let Some(page) = pages.try_next().await? {
            let of_work = found.entry(page.work).or_default();
            of_work.pages.push(page.ids());
        }
        drop(pages);
        let mut ids = reading.ids_of_works(after, through);
        while let Some((work, id)) = ids.try_next().await? {
            found.entry(work).or_default().ids.insert(id);
        }
        drop(ids);
        for work in &works {
            check_work(work, &found.remove(&work.work).unwrap_or_default(), findings);
        }
        after = through;
    }
}

fn check_work(work: &AuditedWork, found: &OfWork, findings: &mut Findings) {
    let id = format!("work number {}", work.work);
    let parts = joined(&found.pages).into_iter().collect::<BTreeSet<_>>().len();
    if parts > 1 {
        findings.add(
            EVIDENCE_WORK,
            &id,
            format_args!("its pages are {parts} works: no id leads from one to the other"),
        );
    }
    if i64::try_from(found.pages.len()).ok() != Some(work.pages) {
        findings.add(
            EVIDENCE_WORK,
            &id,
            format_args!(
                "it says that it has {} pages, but it has {}",
                work.pages,
                found.pages.len()
            ),
        );
    }
    let of_pages: BTreeSet<&String> = found.pages.iter().flatten().collect();
    if of_pages != found.ids.iter().collect() {
        findings.add(EVIDENCE_WORK, &id, "its ids are not those of its pages");
    }
}
