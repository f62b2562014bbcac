//! Names that have a row and a key, in SQL: read, and written where they have none.

use std::collections::{BTreeSet, HashMap};

use emend_store::{StoreError, sql::Statement};

use crate::{batches::batches, work::Work};

type Result<T> = std::result::Result<T, StoreError>;

/// A table whose rows are names with a key.
pub(crate) struct Names {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    /// Further columns of a new row, with what is in them.
    new: (&'static str, &'static str),
}

pub(crate) const TASKS: Names = Names {
    table: "evidence_tasks",
    key: "task",
    name: "task_id",
    new: ("", ""),
};
pub(crate) const DOMAINS: Names = Names {
    table: "evidence_domains",
    key: "domain",
    name: "name",
    new: (", stale", "0"),
};
pub(crate) const HOSTS: Names = Names {
    table: "evidence_hosts",
    key: "host",
    name: "reversed",
    new: ("", ""),
};

/// The keys of the names that have a row.
pub(crate) async fn known_rows(
    work: &mut Work,
    kind: &Names,
    space: i64,
    names: &BTreeSet<&str>,
) -> Result<HashMap<String, i64>> {
    let names: Vec<&str> = names.iter().copied().collect();
    let mut known = HashMap::with_capacity(names.len());
    for names in batches(&names) {
        let Names { table, key, name, .. } = kind;
        let mut query = Statement::new("");
        query.push(format_args!("SELECT {name}, {key} FROM {table} WHERE space = "));
        query.push_bind(space);
        query.push(format_args!(" AND {name} IN "));
        push_names(&mut query, names.iter().copied());
        known.extend(work.rows::<(String, i64)>(query).await?);
    }
    Ok(known)
}

/// The keys of names, which get a row if they have none.
pub(crate) async fn named_rows(
    work: &mut Work,
    kind: &Names,
    space: i64,
    names: &BTreeSet<&str>,
) -> Result<HashMap<String, i64>> {
    let mut known = known_rows(work, kind, space, names).await?;
    let new: BTreeSet<&str> = names
        .iter()
        .copied()
        .filter(|name| !known.contains_key(*name))
        .collect();
    let added: Vec<&str> = new.iter().copied().collect();
    for added in batches(&added) {
        let Names { table, name, new, .. } = kind;
        let mut query = Statement::new("");
        query.push(format_args!("INSERT INTO {table} (space, {name}{}) ", new.0));
        query.push_values(added, |mut row, name| {
            row.push_bind(space).push_bind(*name);
            if !new.1.is_empty() {
                row.push(new.1);
            }
        });
        query.push(format_args!(" ON CONFLICT (space, {name}) DO NOTHING"));
        work.run(query).await?;
    }
    if !new.is_empty() {
        known.extend(known_rows(work, kind, space, &new).await?);
    }
    Ok(known)
}

/// Appends `($1, $2, …)`.
pub(crate) fn push_names<'q>(query: &mut Statement, names: impl IntoIterator<Item = &'q str>) {
    query.push("(");
    let mut list = query.separated(", ");
    for name in names {
        list.push_bind(name.to_owned());
    }
    query.push(")");
}
