//! How far hosts are trusted, in SQL.

use std::collections::{BTreeSet, HashMap};

use emend_core::{
    Kind, Namespace,
    evidence::{Covering, Layers, RulesOfName, deciding, suffixes},
    key_hash,
};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::work::Work;
use crate::{
    batches::batches,
    evidence::rows::{DomainRuleRow, HostLevel},
};

type Result<T> = std::result::Result<T, StoreError>;

/// How far these hosts are trusted by the rules in force.
pub(crate) async fn levels(
    work: &mut Work,
    namespace: &Namespace,
    hosts: &[&str],
) -> Result<HashMap<String, HostLevel>> {
    let rules = rules_above(work, namespace, hosts).await?;
    let level = |host: &str| {
        let by = |layers| deciding(host, layers, |name| rules.get(name));
        let (all, set) = (by(Layers::All), by(Layers::WithoutVerified));
        HostLevel {
            level: all
                .as_ref()
                .map_or_else(Default::default, |decided| decided.level),
            set_level: set.map_or_else(Default::default, |decided| decided.level),
            layer: all.map(|decided| decided.layer),
        }
    };
    Ok(hosts
        .iter()
        .map(|host| ((*host).to_owned(), level(host)))
        .collect())
}

/// The rules in force of all names above these hosts, by name.
async fn rules_above(
    work: &mut Work,
    namespace: &Namespace,
    hosts: &[&str],
) -> Result<HashMap<String, RulesOfName<()>>> {
    let mut rules = HashMap::new();
    for hashes in batches(&patterns_above(hosts)) {
        add_rules(&mut rules, work.rows(of_patterns(namespace, hashes)).await?)?;
    }
    Ok(rules)
}

/// The hashes of all patterns that may cover these hosts.
pub(crate) fn patterns_above(hosts: &[&str]) -> Vec<i64> {
    let names: BTreeSet<&str> = hosts.iter().flat_map(|host| suffixes(host)).collect();
    let patterns = names
        .iter()
        .flat_map(|name| [key_hash(name), key_hash(&format!("*.{name}"))]);
    patterns.collect()
}

/// The rules in force of patterns with these hashes.
pub(crate) fn of_patterns(namespace: &Namespace, hashes: &[i64]) -> Statement {
    let mut query = Statement::new(
        "SELECT c.key, c.qualifier, r.value FROM contests AS c JOIN resources AS r ON r.contest = c.contest \
         WHERE c.namespace = ",
    );
    query.push_bind(namespace.as_str());
    query.push(" AND c.kind = ").push_bind(Kind::DomainRule.number());
    query.push(" AND c.key_hash IN ");
    query.push_list(hashes.iter().copied());
    query
}

/// Adds rules to those of their names.
pub(crate) fn add_rules(
    rules: &mut HashMap<String, RulesOfName<()>>,
    rows: Vec<DomainRuleRow>,
) -> Result<()> {
    for row in rows {
        let (pattern, layer, rule) = row.parse()?;
        let of_name = rules.entry(Covering::of(&pattern).name.to_owned()).or_default();
        of_name.set(&pattern, layer, Some((rule, ())));
    }
    Ok(())
}
