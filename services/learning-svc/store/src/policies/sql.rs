//! Policies in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{Kind, Namespace, Policy};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::SqlStore;
use crate::policies::{PolicyKey, PolicyRepository, PolicyStore, PolicyWrite, StoredPolicy, rows::PolicyRow};
use crate::work::Work;
use crate::{
    batches::batches_up_to,
    codes, conflict,
    integers::{saturated, small},
};

type Result<T> = std::result::Result<T, StoreError>;

/// Appends `((a = $1 AND b = $2) OR …)` for namespaces and kinds.
pub(crate) fn push_policy_keys(query: &mut Statement, keys: &[PolicyKey]) {
    query.push("(");
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            query.push(" OR ");
        }
        query.push("(namespace = ").push_bind(key.namespace.as_str());
        query.push(" AND kind = ").push_bind(key.kind.number());
        query.push(")");
    }
    query.push(")");
}

const POLICY: &str = "SELECT namespace, kind, version, risk, threshold, counting, half_life, max_derived_voters, \
     max_resources, max_value_bytes, max_counted_feedback, entitled, window_good, window_bad, window_max_text_chars, \
     window_language, review_min_bad, review_automatic, reviewers_needed, frozen, updated_at FROM policies WHERE ";
const POLICY_IN_FORCE: &str = " AND version = (SELECT max(newer.version) FROM policies AS newer \
     WHERE newer.namespace = policies.namespace AND newer.kind = policies.kind)";

/// The query for the policies in force.
pub(crate) fn policies_in_force(keys: &[PolicyKey]) -> Statement {
    let mut query = Statement::new(POLICY);
    push_policy_keys(&mut query, keys);
    query.push(POLICY_IN_FORCE);
    query
}

/// The stored policy, or the default if it was never changed.
pub(crate) fn or_default(rows: &[PolicyRow], key: &PolicyKey) -> Result<StoredPolicy> {
    match rows.first() {
        Some(row) => Ok(row.parse()?.1),
        None => Ok(StoredPolicy {
            policy: Policy::default_for(key.kind),
            updated_at: None,
        }),
    }
}

#[async_trait]
impl PolicyRepository for Work {
    async fn in_force(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, Policy>> {
        let mut policies: HashMap<_, _> = keys
            .iter()
            .map(|key| (key.clone(), Policy::default_for(key.kind)))
            .collect();
        for keys in batches_up_to(keys, 16) {
            for row in self.rows::<PolicyRow>(policies_in_force(keys)).await? {
                let (key, stored) = row.parse()?;
                policies.insert(key, stored.policy);
            }
        }
        Ok(policies)
    }

    async fn stored(&mut self, key: &PolicyKey) -> Result<StoredPolicy> {
        let rows = self.rows(policies_in_force(std::slice::from_ref(key))).await?;
        or_default(&rows, key)
    }

    async fn save(&mut self, write: &PolicyWrite) -> Result<()> {
        let policy = &write.policy;
        let mut query = Statement::new(
            "INSERT INTO policies (namespace, kind, version, risk, threshold, counting, half_life, max_derived_voters, \
         max_resources, max_value_bytes, max_counted_feedback, entitled, window_good, \
         window_bad, window_max_text_chars, window_language, review_min_bad, review_automatic, reviewers_needed, frozen, caller, on_behalf_of, reason, updated_at) ",
        );
        query.push_values([write], |mut row, write| {
            row.push_bind(write.key.namespace.as_str())
                .push_bind(write.key.kind.number())
                .push_bind(policy.version)
                .push_bind(codes::risk(policy.votes.risk))
                .push_bind(small(policy.votes.threshold))
                .push_bind(codes::counting(policy.votes.counting))
                .push_bind(policy.votes.half_life.map_or(0, |half_life| half_life.as_secs()))
                .push_bind(small(policy.votes.max_derived_voters))
                .push_bind(saturated(policy.max_resources))
                .push_bind(small(policy.max_value_bytes))
                .push_bind(small(policy.votes.max_counted_feedback))
                .push_bind(codes::role(policy.ruling.entitled))
                .push_bind(small(policy.window.good))
                .push_bind(small(policy.window.bad))
                .push_bind(small(policy.window.max_text_chars))
                .push_bind(policy.window.language.number())
                .push_bind(small(policy.review.min_bad))
                .push_bind(i32::from(policy.review.automatic))
                .push_bind(small(policy.reviewers_needed))
                .push_bind(i32::from(policy.frozen))
                .push_bind(write.actor.caller.as_str())
                .push_bind(write.actor.on_behalf_of.as_str())
                .push_bind(write.reason.as_str())
                .push_bind(write.updated_at.as_microsecond());
        });
        query.push(" ON CONFLICT (namespace, kind, version) DO NOTHING");
        if self.run(query).await? == 1 {
            Ok(())
        } else {
            Err(conflict("another update stored this version of the policy"))
        }
    }
}

#[async_trait]
impl PolicyStore for SqlStore {
    async fn policy(&self, key: &PolicyKey) -> Result<StoredPolicy> {
        let rows = self.rows(policies_in_force(std::slice::from_ref(key))).await?;
        or_default(&rows, key)
    }

    async fn frozen(&self, namespace: &Namespace) -> Result<Vec<Kind>> {
        let mut query = Statement::new(POLICY);
        query
            .push("frozen = 1 AND namespace = ")
            .push_bind(namespace.as_str());
        query.push(POLICY_IN_FORCE).push(" ORDER BY kind");
        let rows = self.rows::<PolicyRow>(query).await?;
        let kinds = rows.iter().map(|row| Ok(row.parse()?.0.kind));
        kinds.collect()
    }
}
