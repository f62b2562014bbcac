//! Rows of events, reviews and exports.

use emend_core::{
    Revision,
    evidence::{EdgeRelation, EvidenceId},
};
use emend_store::StoreError;
use sqlx_macros::FromRow;

use super::{
    EdgeRecord, EventPosition, EventRecord, EvidenceAction, PageRecord, ReviewCount, SampleRecord,
    rows::host_record,
};
use crate::{
    evidence::graph::{Element, ElementSort, Fragment},
    rows::{At, KeyRow, actor},
};

#[derive(Debug, FromRow)]
pub(crate) struct EventRow {
    pub first: i64,
    pub event: i64,
    pub action: i32,
    pub task_id: String,
    pub caller: String,
    pub on_behalf_of: String,
    pub reason: String,
    pub value_before: String,
    pub value_after: String,
    pub proposed: String,
    pub feedback_id: Option<Vec<u8>>,
    pub candidate_id: Option<Vec<u8>>,
    pub revision: i64,
    pub made_at: i64,
    pub element_sort: i32,
    pub element_id: String,
    // Those of its contest, if it has one.
    pub contest_id: Option<Vec<u8>>,
    pub namespace: Option<String>,
    pub kind: Option<i32>,
    pub key: Option<String>,
    pub qualifier: Option<String>,
    pub user_id: Option<String>,
    /// What the reporter gave as the reason.
    pub said: Option<String>,
    /// Whose correction it is.
    pub reporter: Option<String>,
}

impl EventRow {
    pub(crate) fn parse(self) -> Result<(EventPosition, EventRecord), StoreError> {
        let at = At {
            table: "evidence_events",
            id: &self.event,
        };
        let id = |column, id: &Option<Vec<u8>>| -> Result<String, StoreError> {
            let id = id.as_deref().map(|id| at.uuid(column, id)).transpose()?;
            Ok(id.map(|id| id.to_string()).unwrap_or_default())
        };
        let element = match self.element_sort {
            0 => None,
            sort => Some(Element {
                sort: at.known("element_sort", sort, ElementSort::from_number(sort))?,
                id: at.parse("element_id", EvidenceId::parse(&self.element_id))?,
            }),
        };
        let key = if element.is_some() {
            None
        } else {
            let key = KeyRow {
                contest_id: at.known("contest", "none", self.contest_id)?,
                namespace: self.namespace.unwrap_or_default(),
                kind: self.kind.unwrap_or_default(),
                key: self.key.unwrap_or_default(),
                qualifier: self.qualifier.unwrap_or_default(),
                user_id: self.user_id.unwrap_or_default(),
            };
            Some(key.parse("contests")?)
        };
        let record = EventRecord {
            element,
            event: self.event,
            action: at.known("action", self.action, EvidenceAction::from_number(self.action))?,
            key,
            actor: actor(at, "caller", &self.caller, &self.on_behalf_of)?,
            reason: self.said.unwrap_or(self.reason),
            feedback: id("feedback_id", &self.feedback_id)?,
            candidate: id("candidate_id", &self.candidate_id)?,
            revision: Revision(at.number("revision", self.revision)?),
            at: at.time("made_at", self.made_at)?,
            task: self.task_id,
            before: self.value_before,
            after: self.value_after,
            proposed: self.proposed,
            reporter: self.reporter.unwrap_or_default(),
        };
        let position = EventPosition {
            at: self.first,
            event: self.event,
        };
        Ok((position, record))
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct ReviewRow {
    pub predicted: i32,
    pub ruled: i32,
    pub edges: i64,
}

impl ReviewRow {
    pub(crate) fn parse(&self) -> Result<ReviewCount, StoreError> {
        let at = At {
            table: "evidence_edges",
            id: &"a reviewed edge",
        };
        let relation = |column, number| at.known(column, number, EdgeRelation::from_number(number));
        Ok(ReviewCount {
            predicted: relation("label", self.predicted)?,
            correct: relation("ruled", self.ruled)?,
            edges: at.number("edges", self.edges)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct PageRow {
    pub page_id: String,
    pub url: String,
    pub title: String,
    pub doi: String,
    pub pmid: String,
    pub arxiv_id: String,
    pub reversed: Option<String>,
    pub level: Option<i32>,
}

impl PageRow {
    pub(crate) fn parse(self) -> Result<PageRecord, StoreError> {
        let at = At {
            table: "evidence_pages",
            id: &self.page_id,
        };
        let host = host_record(at, "level", self.reversed.as_deref(), self.level)?;
        Ok(PageRecord {
            id: at.parse("page_id", EvidenceId::parse(&self.page_id))?,
            host,
            url: self.url,
            title: self.title,
            works: [self.doi, self.pmid, self.arxiv_id],
        })
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct FragmentRow {
    pub fragment_id: String,
    pub page_id: Option<String>,
    pub text: String,
}

impl FragmentRow {
    pub(crate) fn parse(self) -> Result<Fragment, StoreError> {
        let at = At {
            table: "evidence_fragments",
            id: &self.fragment_id,
        };
        let page = at.known("page", "none", self.page_id.as_ref())?;
        Ok(Fragment {
            id: at.parse("fragment_id", EvidenceId::parse(&self.fragment_id))?,
            page: at.parse("page", EvidenceId::parse(page))?,
            text: self.text,
        })
    }
}

/// The texts of an edge's ends, and who corrected it.
#[derive(Debug, FromRow)]
pub(crate) struct SampleRow {
    pub edge: i64,
    pub premise: Option<String>,
    pub hypothesis: Option<String>,
    pub reporter_id: Option<String>,
}

impl SampleRow {
    pub(crate) fn of(self, edge: EdgeRecord) -> SampleRecord {
        SampleRecord {
            edge,
            premise: self.premise.unwrap_or_default(),
            hypothesis: self.hypothesis.unwrap_or_default(),
            reporter: self.reporter_id.unwrap_or_default(),
        }
    }
}
