//! Finding pages by what they are known by, in SQL.

use std::collections::BTreeMap;

use emend_core::{
    Namespace,
    evidence::{EvidenceId, WorkId},
};
use emend_store::StoreError;
use emend_store::sql::Statement;
use sqlx_macros::FromRow;

use crate::evidence::names_sql::push_names;
use crate::evidence::reads_sql::Rows;
use crate::evidence::reads_sql::space_of;
use crate::{
    batches::batches,
    evidence::{KnownPage, known_rows::identities},
    rows::At,
};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, FromRow)]
struct KnownPageRow {
    /// The id of its work by which it was found; empty: by its own.
    identity: String,
    page: i64,
    page_id: String,
    doi: String,
    pmid: String,
    arxiv_id: String,
}

impl KnownPageRow {
    fn parse(self) -> Result<KnownPage> {
        let at = At {
            table: "evidence_pages",
            id: &self.page_id,
        };
        let mut works: Vec<WorkId> = Vec::new();
        let own = identities(&[self.doi, self.pmid, self.arxiv_id]);
        for id in own.iter().chain(Some(&self.identity)).filter(|id| !id.is_empty()) {
            works.push(at.parse("identity", WorkId::parse(id))?);
        }
        Ok(KnownPage {
            id: at.parse("page_id", EvidenceId::parse(&self.page_id))?,
            works,
        })
    }
}

/// The pages of a namespace that have one of these ids, and of each work that has one of these the page that was upserted first;
/// in the order in which they were.
pub(crate) async fn pages_known_as(
    reading: &mut impl Rows,
    namespace: &Namespace,
    ids: &[EvidenceId],
    works: &[WorkId],
) -> Result<Vec<KnownPage>> {
    let Some(space) = space_of(reading, namespace).await? else {
        return Ok(Vec::new());
    };
    let ids: Vec<&str> = ids.iter().map(EvidenceId::as_str).collect();
    let works: Vec<String> = works.iter().map(ToString::to_string).collect();
    let works: Vec<&str> = works.iter().map(String::as_str).collect();
    let mut rows: Vec<KnownPageRow> = Vec::new();
    for ids in batches(&ids) {
        rows.extend(reading.rows(with_ids(space, ids)).await?);
    }
    for works in batches(&works) {
        rows.extend(reading.rows(of_works(space, works)).await?);
    }
    let mut found: BTreeMap<i64, KnownPage> = BTreeMap::new();
    for row in rows {
        let key = row.page;
        let page = row.parse()?;
        match found.get_mut(&key) {
            Some(known) => known.works.extend(page.works),
            None => {
                found.insert(key, page);
            }
        }
    }
    Ok(found.into_values().collect())
}

fn with_ids(space: i64, ids: &[&str]) -> Statement {
    let mut query = Statement::new(
        "SELECT '' AS identity, page, page_id, doi, pmid, arxiv_id FROM evidence_pages WHERE space = ",
    );
    query.push_bind(space).push(" AND page_id IN ");
    push_names(&mut query, ids.iter().copied());
    query
}

fn of_works(space: i64, works: &[&str]) -> Statement {
    let mut query = Statement::new(
        "SELECT i.identity, p.page, p.page_id, p.doi, p.pmid, p.arxiv_id FROM evidence_identities AS i \
         JOIN evidence_pages AS p ON p.page = \
         (SELECT MIN(q.page) FROM evidence_pages AS q WHERE q.work <> 0 AND q.work = i.work) WHERE i.space = ",
    );
    query.push_bind(space).push(" AND i.identity IN ");
    push_names(&mut query, works.iter().copied());
    query
}
