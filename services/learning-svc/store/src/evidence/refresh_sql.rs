//! Bringing levels of hosts up to date, in SQL.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::{Namespace, evidence::registrable_domain};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::evidence::levels_sql::levels;
use crate::work::Work;
use crate::{
    batches::batches,
    evidence::{
        Refreshed,
        rows::{HostRow, StaleNameRow, reversed},
    },
    rows::At,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Names that are done in one transaction at most.
const NAMES: u32 = 100;

/// See [`Derivations::refresh_levels`](crate::evidence::Derivations::refresh_levels).
///
/// The namespace is locked: whoever changes rules about it or adds hosts or edges has committed before, and is seen, or waits.
pub(crate) async fn refresh(work: &mut Work, limit: usize) -> Result<Option<Refreshed>> {
    let Some((space, namespace)) = work.rows::<(i64, String)>(oldest()).await?.pop() else {
        return Ok(None);
    };
    let at = At {
        table: "evidence_spaces",
        id: &space,
    };
    let namespace = at.parse("namespace", Namespace::parse(&namespace))?;
    let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE space = ");
    query.push_bind(space).for_update();
    work.rows::<(i64,)>(query).await?;

    let mut refreshed = Refreshed::default();
    let mut hosts: BTreeMap<i64, HostRow> = BTreeMap::new();
    let mut domains = BTreeSet::new();
    for name in work.rows::<StaleNameRow>(stale_names(space)).await? {
        let room = limit.saturating_sub(refreshed.hosts);
        let below = hosts_below(work, space, &name, room).await?;
        refreshed.hosts += below.len();
        let of_name = format!("{}.", name.reversed);
        for host in &below {
            // A rule for a part of a domain says nothing of the domain.
            let domain = format!("{}.", reversed(registrable_domain(&reversed(&host.reversed))));
            if domain.starts_with(&of_name) {
                domains.insert(host.domain);
            }
        }
        let is_done = below.len() < room;
        let mut query = Statement::new("");
        if is_done {
            query.push("DELETE FROM evidence_stale_names");
            refreshed.names += 1;
        } else if let Some(last) = below.last() {
            query.push("UPDATE evidence_stale_names SET done = ");
            query.push_bind(last.reversed.as_str());
        } else {
            break;
        }
        query.push(" WHERE stale = ").push_bind(name.stale);
        work.run(query).await?;
        hosts.extend(below.into_iter().map(|host| (host.host, host)));
        if !is_done {
            break;
        }
    }
    let crossed = save_levels(work, &namespace, &hosts).await?;
    mark(work, &crossed, &domains.into_iter().collect::<Vec<_>>()).await?;
    Ok(Some(refreshed))
}

/// Writes the levels that changed. Returns the hosts whose pages are counted as sources otherwise now.
async fn save_levels(
    work: &mut Work,
    namespace: &Namespace,
    hosts: &BTreeMap<i64, HostRow>,
) -> Result<Vec<i64>> {
    let names: Vec<String> = hosts.values().map(|host| reversed(&host.reversed)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let levels = levels(work, namespace, &names).await?;
    let mut changed = Vec::new();
    let mut crossed = Vec::new();
    for (name, host) in names.iter().zip(hosts.values()) {
        let now = levels.get(*name).copied().unwrap_or_default();
        let before = host.level()?;
        if now != before {
            changed.push((host.host, now));
        }
        if now.set_level.pages_are_sources() != before.set_level.pages_are_sources() {
            crossed.push(host.host);
        }
    }
    for changed in batches(&changed) {
        let mut query = Statement::new(
            "UPDATE evidence_hosts SET level = written.column2, set_level = written.column3, layer = written.column4 FROM (",
        );
        query.push_values(changed, |mut row, (host, level)| {
            row.push_bind(*host)
                .push_bind(level.level.number())
                .push_bind(level.set_level.number())
                .push_bind(level.layer_number());
        });
        query.push(") AS written WHERE evidence_hosts.host = written.column1");
        work.run(query).await?;
    }
    Ok(crossed)
}

/// Marks the claims that edges of these hosts lead to, and these domains.
async fn mark(work: &mut Work, hosts: &[i64], domains: &[i64]) -> Result<()> {
    for hosts in batches(hosts) {
        work.run(mark_claims(hosts)).await?;
    }
    for domains in batches(domains) {
        let mut query = Statement::new(MARK_DOMAINS);
        query.push_list(domains.iter().copied());
        query.push(" ORDER BY domain").for_update().push(")");
        work.run(query).await?;
    }
    Ok(())
}

/// Domains are locked in the order of their keys, so that those who mark them seldom wait for each other in turn.
pub(crate) const MARK_DOMAINS: &str = "UPDATE evidence_domains SET stale = 1 WHERE domain IN \
     (SELECT domain FROM evidence_domains WHERE domain IN ";

fn oldest() -> Statement {
    Statement::new(
        "SELECT n.space, s.namespace FROM evidence_stale_names AS n JOIN evidence_spaces AS s ON s.space = n.space \
         ORDER BY n.stale LIMIT 1",
    )
}

pub(crate) fn stale_names(space: i64) -> Statement {
    let mut query = Statement::new("SELECT stale, reversed, done FROM evidence_stale_names WHERE space = ");
    query.push_bind(space).push(" ORDER BY stale LIMIT ");
    query.push_limit(NAMES);
    query
}

/// The hosts at and below a name that are not done, in order, at most `limit`. What follows the name and sorts before its dot, as in
/// `org.example-site`, is not below it.
async fn hosts_below(work: &mut Work, space: i64, name: &StaleNameRow, limit: usize) -> Result<Vec<HostRow>> {
    let mut found = Vec::new();
    if name.done < name.reversed && limit > 0 {
        let mut query = Statement::new(HOSTS);
        query.push_bind(space);
        query.push(" AND reversed = ").push_bind(name.reversed.as_str());
        found = work.rows::<HostRow>(query).await?;
    }
    let limit = u32::try_from(limit - found.len()).unwrap_or(u32::MAX);
    found.extend(work.rows::<HostRow>(below(space, name, limit)).await?);
    Ok(found)
}

const HOSTS: &str =
    "SELECT host, reversed, domain, level, set_level, layer FROM evidence_hosts WHERE space = ";

pub(crate) fn below(space: i64, name: &StaleNameRow, limit: u32) -> Statement {
    let first = format!("{}.", name.reversed);
    let mut query = Statement::new(HOSTS);
    query.push_bind(space);
    query
        .push(" AND reversed > ")
        .push_bind(name.done.as_str().max(&first).to_owned());
    query
        .push(" AND reversed < ")
        .push_bind(format!("{}/", name.reversed));
    query.push(" ORDER BY reversed LIMIT ");
    query.push_limit(limit);
    query
}

pub(crate) fn mark_claims(hosts: &[i64]) -> Statement {
    let mut query = Statement::new(
        "UPDATE evidence_claims SET stale = 1 WHERE claim IN \
         (SELECT target FROM evidence_edges WHERE target_sort = 3 AND host IN ",
    );
    query.push_list(hosts.iter().copied());
    query.push(")");
    query
}
