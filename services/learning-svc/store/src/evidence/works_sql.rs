//! Which pages are one work, in SQL.
//!
//! Each id has a row that names its work, and each page names its work. Where an upsert joins works, the pages and ids of the smaller
//! ones get the key of the largest one: of n pages each changes its key at most log2 n times, so a work of many pages costs an upsert
//! no more than one of few. Only where a page loses an id, or is deleted, all pages of its work are read: it may be several now.
//!
//! The namespace must be locked exclusively.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use emend_core::evidence::joined;
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::evidence::names_sql::push_names;
use crate::work::Work;
use crate::{batches::batches, evidence::known_rows::WorkPageRow};

type Result<T> = std::result::Result<T, StoreError>;

/// A page whose ids are written already, and the work that it is stored with; 0: none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identified {
    pub page: i64,
    pub work: i64,
    /// As [`identities`](crate::evidence::known_rows::identities) gives them.
    pub ids: Vec<String>,
}

impl From<WorkPageRow> for Identified {
    fn from(row: WorkPageRow) -> Self {
        Self {
            page: row.page,
            work: row.work,
            ids: row.ids(),
        }
    }
}

/// What joins pages: an id, or a work whose pages stay together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tie {
    Id(String),
    Work(i64),
}

/// Pages that are one work from now on, with the works that they are joined with.
#[derive(Debug, Default)]
struct Group {
    pages: Vec<Identified>,
    works: BTreeSet<i64>,
}

/// Gives pages whose ids changed their works. Of the works `left` a page lost an id or was deleted.
pub(crate) async fn relate(
    work: &mut Work,
    space: i64,
    changed: Vec<Identified>,
    left: &BTreeSet<i64>,
) -> Result<()> {
    if changed.is_empty() && left.is_empty() {
        return Ok(());
    }
    let mut pages: BTreeMap<i64, Identified> = BTreeMap::new();
    let left_keys: Vec<i64> = left.iter().copied().collect();
    for left in batches(&left_keys) {
        let rows: Vec<WorkPageRow> = work.rows(pages_of(left)).await?;
        pages.extend(rows.into_iter().map(|row| (row.page, Identified::from(row))));
        let mut query = Statement::new("DELETE FROM evidence_identities WHERE work IN ");
        query.push_list(left.iter().copied());
        work.run(query).await?;
    }
    pages.extend(changed.into_iter().map(|page| (page.page, page)));
    let known = known_ids(work, space, &pages).await?;
    let groups = groups(&pages, &known, left);
    let sizes = sizes(work, &groups).await?;

    let mut free: BTreeSet<i64> = left.clone();
    let keys = choose(work, space, &groups, &sizes, &mut free).await?;
    let mut moved = Vec::new();
    let mut ids = Vec::new();
    let mut counts = Vec::new();
    for (group, key) in groups.iter().zip(keys) {
        for other in group.works.iter().copied().filter(|other| *other != key) {
            merge(work, other, key).await?;
        }
        let new = group
            .pages
            .iter()
            .filter(|page| !group.works.contains(&page.work));
        let count: i64 = group.works.iter().filter_map(|work| sizes.get(work)).sum();
        counts.push((key, count + i64::try_from(new.clone().count()).unwrap_or(0)));
        moved.extend(new.filter(|page| page.work != key).map(|page| (page.page, key)));
        let of_group: BTreeSet<&String> = group.pages.iter().flat_map(|page| &page.ids).collect();
        ids.extend(
            of_group
                .into_iter()
                .filter(|id| !known.contains_key(*id))
                .map(|id| (id.clone(), key)),
        );
    }
    moved.extend(
        pages
            .values()
            .filter(|page| page.ids.is_empty() && page.work != 0)
            .map(|page| (page.page, 0)),
    );
    write(work, space, &moved, &ids, &counts).await?;
    let free: Vec<i64> = free.into_iter().collect();
    for free in batches(&free) {
        let mut query = Statement::new("DELETE FROM evidence_works WHERE work IN ");
        query.push_list(free.iter().copied());
        work.run(query).await?;
    }
    Ok(())
}

pub(crate) fn pages_of(works: &[i64]) -> Statement {
    let mut query = Statement::new(
        "SELECT page, work, doi, pmid, arxiv_id FROM evidence_pages WHERE work <> 0 AND work IN ",
    );
    query.push_list(works.iter().copied());
    query
}

/// The works of those ids of pages that have one.
async fn known_ids(
    work: &mut Work,
    space: i64,
    pages: &BTreeMap<i64, Identified>,
) -> Result<HashMap<String, i64>> {
    let ids: BTreeSet<&str> = pages
        .values()
        .flat_map(|page| &page.ids)
        .map(String::as_str)
        .collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let mut known = HashMap::new();
    for ids in batches(&ids) {
        known.extend(work.rows::<(String, i64)>(works_of_ids(space, ids)).await?);
    }
    Ok(known)
}

pub(crate) fn works_of_ids(space: i64, ids: &[&str]) -> Statement {
    let mut query = Statement::new("SELECT identity, work FROM evidence_identities WHERE space = ");
    query.push_bind(space).push(" AND identity IN ");
    push_names(&mut query, ids.iter().copied());
    query
}

/// Which of these pages are one work from now on.
fn groups(
    pages: &BTreeMap<i64, Identified>,
    known: &HashMap<String, i64>,
    left: &BTreeSet<i64>,
) -> Vec<Group> {
    let pages: Vec<&Identified> = pages.values().filter(|page| !page.ids.is_empty()).collect();
    let works = |page: &Identified| {
        let own = Some(page.work).filter(|work| *work != 0 && !left.contains(work));
        own.into_iter()
            .chain(page.ids.iter().filter_map(|id| known.get(id).copied()))
            .collect::<Vec<i64>>()
    };
    let first = joined(pages.iter().map(|page| {
        let ids = page.ids.iter().cloned().map(Tie::Id);
        ids.chain(works(page).into_iter().map(Tie::Work))
            .collect::<Vec<_>>()
    }));
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for (page, first) in pages.into_iter().zip(first) {
        let group = groups.entry(first).or_default();
        group.works.extend(works(page));
        group.pages.push(page.clone());
    }
    groups.into_values().collect()
}

/// How many pages the works have that groups are joined with.
async fn sizes(work: &mut Work, groups: &[Group]) -> Result<HashMap<i64, i64>> {
    let works: BTreeSet<i64> = groups.iter().flat_map(|group| &group.works).copied().collect();
    let works: Vec<i64> = works.into_iter().collect();
    let mut sizes = HashMap::with_capacity(works.len());
    for works in batches(&works) {
        let mut query = Statement::new("SELECT work, pages FROM evidence_works WHERE work IN ");
        query.push_list(works.iter().copied());
        sizes.extend(work.rows::<(i64, i64)>(query).await?);
    }
    Ok(sizes)
}

/// The key of each group: that of its largest work, else one of those `free` that its pages had, the largest group first, else a
/// new one.
async fn choose(
    work: &mut Work,
    space: i64,
    groups: &[Group],
    sizes: &HashMap<i64, i64>,
    free: &mut BTreeSet<i64>,
) -> Result<Vec<i64>> {
    let mut keys = vec![0; groups.len()];
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(groups[*place].pages.len()));
    let mut without = Vec::new();
    for place in order {
        let group = &groups[place];
        let size = |work: &&i64| (sizes.get(work).copied().unwrap_or(0), std::cmp::Reverse(**work));
        let own = || {
            group
                .pages
                .iter()
                .map(|page| page.work)
                .find(|work| free.contains(work))
        };
        match group.works.iter().max_by_key(size).copied().or_else(own) {
            Some(key) => {
                free.remove(&key);
                keys[place] = key;
            }
            None => without.push(place),
        }
    }
    for places in batches(&without) {
        let mut query = Statement::new("INSERT INTO evidence_works (space, pages) ");
        query.push_values(places, |mut row, _| {
            row.push_bind(space).push("0");
        });
        query.push(" RETURNING work");
        let new: Vec<(i64,)> = work.rows(query).await?;
        for (place, (key,)) in places.iter().zip(new) {
            keys[*place] = key;
        }
    }
    Ok(keys)
}

/// Gives the pages and ids of a work to another one.
async fn merge(work: &mut Work, from: i64, into: i64) -> Result<()> {
    work.run(mark_claims_of_work(from)).await?;
    for sql in [
        "UPDATE evidence_pages SET work = ",
        "UPDATE evidence_identities SET work = ",
    ] {
        let mut query = Statement::new(sql);
        query
            .push_bind(into)
            .push(" WHERE work <> 0 AND work = ")
            .push_bind(from);
        work.run(query).await?;
    }
    let mut query = Statement::new("DELETE FROM evidence_works WHERE work = ");
    query.push_bind(from);
    work.run(query).await?;
    Ok(())
}

/// What its pages support has another independent source.
pub(crate) fn mark_claims_of_work(work: i64) -> Statement {
    let mut query = Statement::new(
        "UPDATE evidence_claims SET stale = 1 WHERE claim IN (SELECT e.target FROM evidence_pages AS p \
         JOIN evidence_edges AS e ON e.page = p.page WHERE p.work <> 0 AND p.work = ",
    );
    query.push_bind(work).push(" AND e.target_sort = 3)");
    query
}

/// The same of these pages.
pub(crate) fn mark_claims_of_pages(pages: &[i64]) -> Statement {
    let mut query = Statement::new(
        "UPDATE evidence_claims SET stale = 1 WHERE claim IN \
         (SELECT target FROM evidence_edges WHERE target_sort = 3 AND page IN ",
    );
    query.push_list(pages.iter().copied());
    query.push(")");
    query
}

/// Writes the works of pages and of ids, and how many pages each work has.
async fn write(
    work: &mut Work,
    space: i64,
    moved: &[(i64, i64)],
    ids: &[(String, i64)],
    counts: &[(i64, i64)],
) -> Result<()> {
    for moved in batches(moved) {
        let pages: Vec<i64> = moved.iter().map(|(page, _)| *page).collect();
        work.run(mark_claims_of_pages(&pages)).await?;
        let mut query = Statement::new("UPDATE evidence_pages SET work = written.column2 FROM (");
        query.push_values(moved, |mut row, (page, key)| {
            row.push_bind(*page).push_bind(*key);
        });
        query.push(") AS written WHERE evidence_pages.page = written.column1");
        work.run(query).await?;
    }
    for ids in batches(ids) {
        let mut query = Statement::new("INSERT INTO evidence_identities (space, identity, work) ");
        query.push_values(ids, |mut row, (id, key)| {
            row.push_bind(space).push_bind(id.as_str()).push_bind(*key);
        });
        work.run(query).await?;
    }
    for counts in batches(counts) {
        let mut query = Statement::new("UPDATE evidence_works SET pages = written.column2 FROM (");
        query.push_values(counts, |mut row, (key, count)| {
            row.push_bind(*key).push_bind(*count);
        });
        query.push(") AS written WHERE evidence_works.work = written.column1");
        work.run(query).await?;
    }
    Ok(())
}
