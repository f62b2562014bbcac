//! What a source is asked, and what it gives.

use emend_base::http_client::{Client, ErrorKind, ServiceError};
use emend_core::evidence::WorkId;

use super::{
    paper::{Paper, Related},
    scorer::words,
};

/// The paper whose citations are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The one with this id.
    Id(WorkId),
    /// The one with this title.
    Title(String),
}

/// How many papers are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Of those that the paper cites, the first.
    pub references: usize,
    /// Of those that cite it.
    pub cited_by: usize,
}

/// What one source gives.
#[derive(Debug, Default)]
pub struct Given {
    /// The paper itself.
    pub paper: Option<Paper>,
    /// What it cites, and then what cites it.
    pub related: Vec<Related>,
    /// What was asked for in vain.
    pub failures: Vec<ServiceError>,
}

/// A source of citations.
pub trait Source: Sync {
    /// What the source says of a paper.
    type Found: Send;

    /// Finds a paper.
    fn find(&self, wanted: &Wanted) -> impl Future<Output = Result<Self::Found, ServiceError>> + Send;

    /// The paper that was found.
    fn paper(found: &Self::Found) -> Paper;

    /// The first papers that it cites.
    fn references(
        &self,
        paper: &Self::Found,
        count: usize,
    ) -> impl Future<Output = Result<Vec<Related>, ServiceError>> + Send;

    /// Papers that cite it.
    fn cited_by(
        &self,
        paper: &Self::Found,
        count: usize,
    ) -> impl Future<Output = Result<Vec<Related>, ServiceError>> + Send;
}

/// All that a source gives; what one question fails at does not keep the others from being asked.
pub async fn ask<S: Source>(source: &S, wanted: &Wanted, counts: Counts) -> Given {
    let mut given = Given::default();
    let found = match source.find(wanted).await {
        Ok(found) => found,
        Err(failure) => {
            given.failures.push(failure);
            return given;
        }
    };
    let mut take = |what: &str, answer: Result<Vec<Related>, ServiceError>| match answer {
        Ok(related) => given.related.extend(related),
        Err(failure) => given.failures.push(ServiceError {
            message: format!("{what}: {}", failure.message),
            ..failure
        }),
    };
    if counts.references > 0 {
        take("references", source.references(&found, counts.references).await);
    }
    if counts.cited_by > 0 {
        take("cited by", source.cited_by(&found, counts.cited_by).await);
    }
    given.paper = Some(S::paper(&found));
    given
}

/// The first paper that has the title, whatever its case and punctuation: a search finds also what is only similar.
pub fn titled<F>(
    client: &Client<'_>,
    title: &str,
    found: impl IntoIterator<Item = F>,
    title_of: impl Fn(&F) -> &str,
) -> Result<F, ServiceError> {
    let wanted: Vec<String> = words(title).collect();
    let mut similar = None;
    for paper in found {
        if words(title_of(&paper)).eq(wanted.iter().cloned()) {
            return Ok(paper);
        }
        similar.get_or_insert_with(|| title_of(&paper).to_owned());
    }
    let similar = similar.map_or_else(String::new, |similar| format!("; the nearest is {similar:?}"));
    Err(client.error(
        ErrorKind::NotFound,
        format!("knows no paper with this title{similar}"),
    ))
}
