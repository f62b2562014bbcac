//! Resources in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::policies::sql::push_policy_keys;
use crate::work::Work;
use crate::{
    batches::{batches, batches_up_to},
    integers::checksum,
    policies::PolicyKey,
    resources::{ResourceRepository, ResourceWrites},
    rows::CountRow,
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl ResourceRepository for Work {
    async fn counts(&mut self, keys: &[PolicyKey]) -> Result<HashMap<PolicyKey, u64>> {
        let mut counts: HashMap<_, _> = keys.iter().map(|key| (key.clone(), 0)).collect();
        for keys in batches_up_to(keys, 16) {
            let mut query = Statement::new("SELECT namespace, kind, count FROM resource_counts WHERE ");
            push_policy_keys(&mut query, keys);
            for row in self.rows::<CountRow>(query).await? {
                let (key, count) = row.parse()?;
                counts.insert(key, count);
            }
        }
        Ok(counts)
    }

    async fn scopes_in_use(&mut self) -> Result<u64> {
        let query = Statement::new("SELECT COUNT(*) FROM resource_counts WHERE count > 0");
        let counted: Vec<(i64,)> = self.rows(query).await?;
        Ok(counted
            .first()
            .map_or(0, |(count,)| u64::try_from(*count).unwrap_or(0)))
    }

    async fn save(&mut self, writes: &ResourceWrites) -> Result<HashMap<PolicyKey, u64>> {
        save_resources(self, writes).await?;
        save_counts(self, writes).await
    }
}

async fn save_resources(work: &mut Work, writes: &ResourceWrites) -> Result<()> {
    let (mut put, mut deleted) = (Vec::new(), Vec::new());
    for resource in &writes.resources {
        let contest = work.keys.contest(resource.key.contest_id())?;
        match &resource.value {
            Some(value) => put.push((contest, resource.revision, value)),
            None => deleted.push(contest),
        }
    }
    for put in batches(&put) {
        let query =
            work.write("INSERT INTO resources (contest, revision, value, value_checksum, committed_at) ");
        query.push_values(put, |mut row, (contest, revision, value)| {
            row.push_bind(*contest)
                .push_bind(revision.0)
                .push_bind(value.to_vec())
                .push_bind(checksum(value))
                .push_bind(writes.committed_at);
        });
        query.push(
            " ON CONFLICT (contest) DO UPDATE SET revision = excluded.revision, value = excluded.value, \
             value_checksum = excluded.value_checksum, committed_at = excluded.committed_at",
        );
        work.written().await?;
    }
    for deleted in batches(&deleted) {
        let query = work.write("DELETE FROM resources WHERE contest IN ");
        query.push_list(deleted.iter().copied());
        work.written().await?;
    }
    Ok(())
}

async fn save_counts(work: &mut Work, writes: &ResourceWrites) -> Result<HashMap<PolicyKey, u64>> {
    let changed: Vec<_> = writes.counts.iter().filter(|(_, by)| **by != 0).collect();
    let mut counts = HashMap::with_capacity(changed.len());
    for changed in batches(&changed) {
        let query = work.write("INSERT INTO resource_counts (namespace, kind, count) ");
        query.push_values(changed, |mut row, (key, by)| {
            row.push_bind(key.namespace.as_str())
                .push_bind(key.kind.number())
                .push_bind(**by);
        });
        query.push(
            " ON CONFLICT (namespace, kind) DO UPDATE SET count = resource_counts.count + excluded.count \
             RETURNING namespace, kind, count",
        );
        for row in work.rows_written::<CountRow>().await? {
            let (key, count) = row.parse()?;
            counts.insert(key, count);
        }
    }
    Ok(counts)
}
