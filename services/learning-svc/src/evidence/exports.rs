//! Exports: one state of the graph, read page by page as the client takes it.
//!
//! An export holds one transaction from its first line to its last, so that what it says belongs together. It ends, and the
//! transaction with it, as soon as it is dropped.

use std::collections::VecDeque;

use emend_base::Error;
use emend_core::{Namespace, evidence::EvidenceId};
use futures::stream::{self, BoxStream, StreamExt as _};
use learning_store::evidence::{
    EdgePosition, ExportRead, Line, Part, ReviewFilter, SampleRecord, TaskKey, Weighing,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::evidence::Evidence;

/// Keys that are found by one query. A task's nodes are found by going through all of its edges: not for each page again.
const KEYS: u32 = 20_000;
/// Lines of one page: each may have a text of 32,768 characters.
const PAGE: usize = 64;

/// An export of a task under way.
pub struct Materials {
    reading: Box<dyn ExportRead>,
    task: TaskKey,
    weighing: Weighing,
    parts: std::slice::Iter<'static, Part>,
    part: Option<Part>,
    /// Keys found and not yet read.
    keys: VecDeque<i64>,
    /// The last key found of this part; none: all are found.
    after: Option<i64>,
    _slot: OwnedSemaphorePermit,
}

impl Materials {
    /// Its pages.
    pub fn pages(self) -> BoxStream<'static, Result<Vec<Line>, Error>> {
        let pages = stream::try_unfold(self, |mut export| async move {
            Ok(export.next().await?.map(|lines| (lines, export)))
        });
        pages.boxed()
    }

    /// The next lines; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<Line>>, Error> {
        while let Some(part) = self.part {
            if self.keys.is_empty()
                && let Some(after) = self.after
            {
                let found = self.reading.keys(part, self.task, after, KEYS).await?;
                let is_full = found.len() == KEYS as usize;
                self.after = found.last().copied().filter(|_| is_full);
                self.keys.extend(found);
            }
            let page: Vec<i64> = self.keys.drain(..self.keys.len().min(PAGE)).collect();
            if !page.is_empty() {
                let lines = self.reading.lines(part, self.task, &page, self.weighing).await?;
                return Ok(Some(lines));
            }
            self.part = self.parts.next().copied();
            self.after = Some(0);
        }
        Ok(None)
    }
}

/// An export of correction samples under way.
pub(crate) struct Samples {
    reading: Box<dyn ExportRead>,
    filter: ReviewFilter,
    after: Option<EdgePosition>,
    _slot: OwnedSemaphorePermit,
}

impl Samples {
    /// Its pages.
    pub(crate) fn pages(self) -> BoxStream<'static, Result<Vec<SampleRecord>, Error>> {
        let pages = stream::try_unfold(self, |mut export| async move {
            Ok(export.next().await?.map(|samples| (samples, export)))
        });
        pages.boxed()
    }

    /// The next samples, by when they were reviewed; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<SampleRecord>>, Error> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let limit = u32::try_from(PAGE).unwrap_or(u32::MAX);
        let found = self.reading.samples(&self.filter, after, limit).await?;
        self.after = found.last().map(|(position, _)| *position);
        let samples = found.into_iter().map(|(_, sample)| sample).collect::<Vec<_>>();
        Ok((!samples.is_empty()).then_some(samples))
    }
}

impl Evidence {
    /// Begins to export a task; `both`: with both readings of what the edges of its claims come to.
    pub async fn export_materials(
        &self,
        namespace: &Namespace,
        task: &EvidenceId,
        both: bool,
        slot: OwnedSemaphorePermit,
    ) -> Result<Materials, Error> {
        let combining = self.combining(namespace).await?;
        let mut reading = self.graph().begin_export().await?;
        let found = reading.task(namespace, task).await?;
        let mut parts = Part::ALL.iter();
        Ok(Materials {
            task: found.ok_or_else(|| Error::not_found("task", task.as_str()))?,
            reading,
            weighing: Weighing { combining, both },
            part: parts.next().copied(),
            parts,
            keys: VecDeque::new(),
            after: Some(0),
            _slot: slot,
        })
    }

    /// Begins to export correction samples.
    pub(crate) async fn export_corrections(
        &self,
        filter: ReviewFilter,
        slot: OwnedSemaphorePermit,
    ) -> Result<Samples, Error> {
        Ok(Samples {
            reading: self.graph().begin_export().await?,
            filter,
            after: Some(EdgePosition::default()),
            _slot: slot,
        })
    }
}
