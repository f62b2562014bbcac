//! What is read of a large graph: a claim, the edges of a conflict, and exports of tasks.

use anyhow::{Context as _, Result, ensure};
use emend_core::evidence::{Combining, EdgeRelation, EvidenceId, TrustLevel};
use futures::TryStreamExt as _;
use learning_store::evidence::{EdgeFilter, EdgePosition, EvidenceStore};
use learning_svc::{capabilities::Capabilities, export_slots::ExportSlots};
use tokio::time::Instant;

use super::graph::{LARGE_TASK, PER_CLAIM, id, namespace, task};
use crate::memory;

/// Reads timed.
const READS: usize = 200;

/// Reads claims and the edges of conflicts all over the graph.
pub(super) async fn claims_and_conflicts(name: &str, app: &Capabilities, edges: usize) -> Result<()> {
    let evidence: &dyn EvidenceStore = &*app.store;
    let claims = edges.div_ceil(PER_CLAIM);
    let step = (claims / READS).max(1);
    let mut of_claims = Vec::new();
    let mut of_conflicts = Vec::new();
    for claim in (0..claims).step_by(step) {
        let claim = id("c", claim)?;
        let began = Instant::now();
        let found = evidence
            .claim(&namespace()?, &claim, Combining::CountAll.into())
            .await?;
        of_claims.push(began.elapsed().as_micros());
        let found = found.context("a claim")?;
        ensure!(found.evidence.supporting_count > 0, "a claim has lost its edges");
        let filter = EdgeFilter {
            namespace: namespace()?,
            claim: Some(claim),
            relations: vec![EdgeRelation::Supports, EdgeRelation::Refutes],
            levels: vec![TrustLevel::Unverified, TrustLevel::Low],
            reviewed: None,
            corrected: None,
            task: None,
            edge: None,
        };
        let began = Instant::now();
        let found = evidence.edges(&filter, EdgePosition::default(), 100).await?;
        of_conflicts.push(began.elapsed().as_micros());
        ensure!(!found.is_empty(), "a conflict has lost its edges");
    }
    for (what, micros) in [
        ("a claim", of_claims),
        ("the edges of a conflict by levels", of_conflicts),
    ] {
        println!("{name}: of {edges} edges, {what} in {}", quantiles(micros));
    }
    Ok(())
}

fn quantiles(mut micros: Vec<u128>) -> String {
    micros.sort_unstable();
    let at = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(0);
    format!("{} µs (median), {} µs (99 %)", at(50), at(99))
}

/// Exports an ordinary task and the large one, and compares the memory that this takes.
pub(super) async fn exports(name: &str, app: &Capabilities, edges: usize) -> Result<()> {
    let large = EvidenceId::parse(LARGE_TASK).context("a task")?;
    for task in [task(0, edges)?, large] {
        memory::forget()?;
        let before = memory::most()?;
        let began = Instant::now();
        let slot = ExportSlots::default().take()?;
        let mut pages = app
            .evidence
            .export_materials(&namespace()?, &task, false, slot)
            .await?
            .pages();
        let mut first = None;
        let mut lines = 0;
        while let Some(page) = pages.try_next().await? {
            first.get_or_insert_with(|| began.elapsed());
            lines += page.len();
        }
        let elapsed = began.elapsed();
        let after = memory::most()?;
        println!(
            "{name}: task {task} exported, {lines} lines, in {elapsed:.2?}, the first after {:.2?}; at most {after} MiB resident, {before} MiB before",
            first.unwrap_or_default()
        );
    }
    Ok(())
}
