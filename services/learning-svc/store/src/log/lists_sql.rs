//! Revisions in SQL, as auditors read them.

use std::collections::BTreeMap;

use emend_core::{Kind, Namespace, Revision, decide::Cause};
use emend_store::StoreError;
use emend_store::sql::Statement;
use sqlx_macros::FromRow;

use crate::SqlStore;
use crate::batches::batches;
use crate::contests::lists_sql::push_any_key;
use crate::database::bytes;
use crate::log::{
    ChangeRecord, RevisionFilter, RevisionRecord,
    rows::{ChangeRow, RevisionRow},
};

type Result<T> = std::result::Result<T, StoreError>;

/// A page of revisions ends after this many changes, so that no more are read than are likely to fit a message. The
/// renderer checks whether they do.
const CHANGES_PER_PAGE: i64 = 2_000;

#[derive(FromRow)]
struct RevisionSize {
    revision: i64,
    changes: i64,
}

/// See [`LogStore::list_revisions`](crate::log::LogStore::list_revisions).
pub(crate) async fn list(
    store: &SqlStore,
    filter: &RevisionFilter,
    before: Option<Revision>,
    limit: u32,
) -> Result<(Vec<RevisionRecord>, bool)> {
    let sizes = store
        .rows::<RevisionSize>(matching(filter, before, limit))
        .await?;
    let Some((shown, more)) = page(&sizes, limit) else {
        return Ok((Vec::new(), false));
    };
    let mut revisions = Vec::with_capacity(shown.len());
    for shown in batches(shown) {
        let mut records = store.revision_records(shown).await?;
        for (row, change) in store.change_records(&filter.namespace, shown).await? {
            if let Some(record) = records.get_mut(&row) {
                record.changes.push(change);
            }
        }
        revisions.extend(records.into_values().rev());
    }
    Ok((revisions, more))
}

impl SqlStore {
    /// Revisions by number, without their changes.
    async fn revision_records(&self, shown: &[RevisionSize]) -> Result<BTreeMap<i64, RevisionRecord>> {
        let mut query = Statement::new(
            "SELECT revision, operation_id, cause, caller, on_behalf_of, committed_at, CASE WHEN cause = ",
        );
        query.push_bind(Cause::Ruling.number());
        // Why a ruling was made can be erased, so it is where the ruling's other personal parts are.
        query.push(
            " THEN coalesce((SELECT d.reason FROM changes AS h JOIN ballot_details AS d ON d.feedback_id = h.feedback_id \
             WHERE h.revision = revisions.revision ORDER BY h.ordinal LIMIT 1), '') ELSE reason END AS reason \
             FROM revisions WHERE revision IN (",
        );
        push_revisions(&mut query, shown);
        let rows = self.rows::<RevisionRow>(query).await?;
        rows.into_iter()
            .map(|row| Ok((row.revision, row.parse()?)))
            .collect()
    }

    /// The changes these revisions made in a namespace, in order.
    async fn change_records(
        &self,
        namespace: &Namespace,
        shown: &[RevisionSize],
    ) -> Result<Vec<(i64, ChangeRecord)>> {
        let mut query = Statement::new(
            "SELECT h.revision, c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, h.value, \
             h.value_checksum, h.before_value, k.candidate_id, h.feedback_id, h.policy_version, \
             CASE WHEN EXISTS (SELECT 1 FROM changes AS newer WHERE newer.contest = h.contest \
             AND newer.revision > h.revision) THEN 1 ELSE 0 END AS changed_since \
             FROM changes AS h JOIN contests AS c ON c.contest = h.contest \
             LEFT JOIN candidates AS k ON k.candidate = h.candidate WHERE h.revision IN (",
        );
        push_revisions(&mut query, shown);
        query.push(" AND c.namespace = ").push_bind(namespace.as_str());
        query.push(" ORDER BY h.revision, h.ordinal");
        let rows = self.rows::<ChangeRow>(query).await?;
        rows.into_iter()
            .map(|row| Ok((row.revision, row.parse()?)))
            .collect()
    }
}

/// Appends `$1, $2, …)`.
fn push_revisions(query: &mut Statement, shown: &[RevisionSize]) {
    let mut list = query.separated(", ");
    for size in shown {
        list.push_bind(size.revision);
    }
    query.push(")");
}

/// The matching revisions below `before`, newest first, each with its number of changes in the namespace. They are
/// found in order by an index on what is asked for, then counted.
pub(crate) fn matching(filter: &RevisionFilter, before: Option<Revision>, limit: u32) -> Statement {
    let namespace = filter.namespace.as_str();
    let limit = i64::from(limit) + 1;
    let mut query = Statement::new(
        "SELECT found.revision, (SELECT count(*) FROM changes AS shown JOIN contests AS of ON of.contest = shown.contest \
         WHERE shown.revision = found.revision AND of.namespace = ",
    );
    query.push_bind(namespace).push(") AS changes FROM (");
    match (filter.keys.is_empty(), filter.operation) {
        (true, None) => {
            // The newest of each kind, merged.
            let kinds = filter.kind.as_ref().map_or(&Kind::ALL[..], std::slice::from_ref);
            for (index, kind) in kinds.iter().enumerate() {
                let union = if index > 0 { " UNION " } else { "" };
                query
                    .push(union)
                    .push("SELECT * FROM (SELECT r.revision FROM revision_kinds AS r WHERE r.namespace = ");
                query.push_bind(namespace);
                query.push(" AND r.kind = ").push_bind(kind.number());
                push_before(&mut query, "r", before);
                query.push(" ORDER BY r.revision DESC LIMIT ").push_bind(limit);
                query.push(format_args!(") AS kind_{index}"));
            }
            query.push(" ORDER BY revision DESC LIMIT ").push_bind(limit);
        }
        (_, Some(operation)) => {
            query
                .push("SELECT r.revision FROM revisions AS r WHERE r.operation_id IS NOT NULL AND r.operation_id = ")
                .push_bind(bytes(operation.0));
            push_before(&mut query, "r", before);
            query.push(
                " AND EXISTS (SELECT 1 FROM changes AS h JOIN contests AS c ON c.contest = h.contest \
                 WHERE h.revision = r.revision",
            );
            push_changed(&mut query, filter);
            query.push(") ORDER BY r.revision DESC LIMIT ").push_bind(limit);
        }
        (false, None) => {
            // A CROSS JOIN makes SQLite join in this order.
            query.push(
                "SELECT h.revision FROM contests AS c CROSS JOIN changes AS h WHERE h.contest = c.contest",
            );
            push_changed(&mut query, filter);
            push_before(&mut query, "h", before);
            query
                .push(" GROUP BY h.revision ORDER BY h.revision DESC LIMIT ")
                .push_bind(limit);
        }
    }
    query.push(") AS found ORDER BY found.revision DESC");
    query
}

/// Appends the conditions on the contest `c` of a change.
fn push_changed(query: &mut Statement, filter: &RevisionFilter) {
    if !filter.keys.is_empty() {
        query.push(" AND ");
        push_any_key(query, &filter.keys);
    }
    query
        .push(" AND c.namespace = ")
        .push_bind(filter.namespace.as_str().to_owned());
    if let Some(kind) = filter.kind {
        query.push(" AND c.kind = ").push_bind(kind.number());
    }
}

fn push_before(query: &mut Statement, table: &str, before: Option<Revision>) {
    if let Some(before) = before {
        query.push(format_args!(" AND {table}.revision < "));
        query.push_bind(before.0);
    }
}

/// The matching revisions that fit a page, and whether there are more. None if nothing matches.
fn page(sizes: &[RevisionSize], limit: u32) -> Option<(&[RevisionSize], bool)> {
    let mut changes = 0;
    let fitting = sizes
        .iter()
        .take(limit as usize)
        .take_while(|size| {
            let first = changes == 0;
            changes += size.changes;
            first || changes <= CHANGES_PER_PAGE
        })
        .count();
    let (shown, rest) = sizes.split_at_checked(fitting)?;
    (!shown.is_empty()).then_some((shown, !rest.is_empty()))
}
