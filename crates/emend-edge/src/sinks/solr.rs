//! A managed set of synonyms in Solr, which counts after a reload of the core.
//!
//! Solr adds to a managed set and takes single terms out of it, but replaces none. So a set that is being written says so:
//! first its stamp goes, then what is learned is added, then what is no longer learned goes, and the new stamp comes last. So where
//! Solr refuses a step, the set has rather too much than too little. What is written is answered by only after the reload.
//!
//! In `SolrCloud` every core of a collection has its own copy of the set until the collection is reloaded, and whatever it is told it writes over
//! what another one wrote. So all steps go to one core of the node that is named.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use emend_base::http_client::{Client, ErrorKind};
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    config::SolrConfig,
    content::{Entries, Seen, Wanted},
    error::SinkError,
    fail_points,
    http::{PATIENCE, part},
    selection::{Selection, What},
    synonyms::{self, PROBE, WRITING},
    target::Target,
};

/// A managed set of synonyms.
pub(super) struct Solr {
    config: SolrConfig,
}

#[derive(Deserialize)]
struct Held {
    #[serde(rename = "synonymMappings")]
    mappings: Mappings,
}

#[derive(Deserialize)]
struct Mappings {
    #[serde(rename = "managedMap")]
    map: Entries,
}

#[derive(Deserialize)]
struct Cores {
    status: BTreeMap<String, Core>,
}

#[derive(Deserialize)]
struct Core {
    cloud: Option<Cloud>,
}

#[derive(Deserialize)]
struct Cloud {
    collection: String,
}

impl Solr {
    pub(super) fn new(config: SolrConfig) -> Self {
        Self { config }
    }

    fn client(&self) -> Result<Client<'static>, SinkError> {
        self.config.access.client("Solr", PATIENCE)
    }

    /// The core or the collection.
    fn name(&self) -> &str {
        let SolrConfig { core, collection, .. } = &self.config;
        core.as_deref().or(collection.as_deref()).unwrap_or_default()
    }

    /// The path of the managed set: of a collection, in the first of its cores on this node.
    async fn path(&self, client: &Client<'static>) -> Result<String, SinkError> {
        let core = match &self.config.collection {
            None => self.name().to_owned(),
            Some(collection) => self.core_of(client, collection).await?,
        };
        Ok(format!(
            "/{}/schema/analysis/synonyms/{}",
            part(&core),
            part(&self.config.set)
        ))
    }

    async fn core_of(&self, client: &Client<'static>, collection: &str) -> Result<String, SinkError> {
        let cores: Cores = client
            .get("/admin/cores?action=STATUS&indexInfo=false&wt=json")
            .await?;
        let mut of_collection = cores.status.into_iter().filter(|(_, core)| {
            let cloud = core.cloud.as_ref();
            cloud.is_some_and(|cloud| cloud.collection == collection)
        });
        let found = of_collection.next().map(|(name, _)| name);
        found.ok_or_else(|| {
            SinkError::refused(format!(
                "the node of Solr at the address has no replica of the collection {collection:?}: name the address of one that has, not \
                 that of a load balancer, and the collection itself, not an alias"
            ))
        })
    }

    async fn held(&self, client: &Client<'static>, path: &str) -> Result<Entries, SinkError> {
        let held = client.get::<Held>(path).await.map_err(|error| {
            if error.kind == ErrorKind::NotFound {
                return SinkError::refused(format!(
                    "Solr has no managed synonyms {:?} in {:?}: the schema must have a filter managedSynonymGraph with \
                     managed=\"{}\"",
                    self.config.set,
                    self.name(),
                    self.config.set
                ));
            }
            error.into()
        })?;
        Ok(held.mappings.map)
    }

    /// Reloads the core or the collection.
    async fn reload(&self, client: &Client<'static>) -> Result<(), SinkError> {
        let name = part(self.name());
        let path = if self.config.core.is_some() {
            format!("/admin/cores?action=RELOAD&core={name}&wt=json")
        } else {
            format!("/admin/collections?action=RELOAD&name={name}&wt=json")
        };
        let _: Value = client.get(&path).await?;
        fail_points::LOADED.pass();
        Ok(())
    }
}

/// A managed set that is being written.
struct Set<'a> {
    client: &'a Client<'static>,
    path: String,
}

impl Set<'_> {
    async fn add(&self, entries: &Entries) -> Result<(), SinkError> {
        let _: Value = self
            .client
            .send(Method::PUT, &self.path, Some(&json!(entries)))
            .await?;
        Ok(())
    }

    /// Takes a term out; it may be gone already.
    async fn remove(&self, term: &str) -> Result<(), SinkError> {
        let path = format!("{}/{}", self.path, part(term));
        match self.client.send::<Value>(Method::DELETE, &path, None).await {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Target for Solr {
    fn selection(&self, namespaces: &[String]) -> Selection {
        Selection {
            namespaces: namespaces.to_owned(),
            what: What::Synonyms,
        }
    }

    /// Solr takes every term as it is: it analyses none of a managed set.
    async fn accept(&mut self, _wanted: &mut Wanted) -> Result<(), SinkError> {
        Ok(())
    }

    async fn read(&mut self, _wanted: &Wanted) -> Result<Seen, SinkError> {
        let client = self.client()?;
        let path = self.path(&client).await?;
        Ok(synonyms::seen(&self.held(&client, &path).await?))
    }

    fn wait(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    async fn write(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        let client = self.client()?;
        let mut due = wanted.synonyms().clone();
        let path = self.path(&client).await?;
        let held = self.held(&client, &path).await?;
        let set = Set {
            client: &client,
            path,
        };
        if !held.contains_key(WRITING) {
            let writing = BTreeSet::from([WRITING.to_owned()]);
            set.add(&Entries::from([(WRITING.to_owned(), writing)])).await?;
        }
        fail_points::BEGUN.pass();
        set.remove(PROBE).await?;
        // What a term no longer stands for goes only with the term, which then comes again.
        let (stale, rest): (Entries, Entries) = held
            .into_iter()
            .filter(|(term, _)| term != WRITING && term != PROBE)
            .partition(|(term, all)| due.get(term).is_none_or(|due| !all.is_subset(due)));
        let mut missing = due.clone();
        missing.retain(|term, all| !stale.contains_key(term) && rest.get(term) != Some(all));
        if !missing.is_empty() {
            set.add(&missing).await?;
        }
        for term in stale.keys() {
            set.remove(term).await?;
        }
        fail_points::REMOVED.pass();
        due.retain(|term, _| stale.contains_key(term));
        set.add(&synonyms::with_probe(&due, &wanted.stamp())).await?;
        set.remove(WRITING).await?;
        fail_points::WRITTEN.pass();
        self.reload(&client).await
    }

    async fn load(&mut self, _wanted: &Wanted) -> Result<(), SinkError> {
        self.reload(&self.client()?).await
    }

    /// Solr tells into what it parsed a query, by the analysis that the field has now.
    async fn probe(&mut self, wanted: &Wanted) -> Result<bool, SinkError> {
        let query = format!("{{!field f={}}}{PROBE}", self.config.field);
        let path = format!(
            "/{}/select?q={}&rows=0&debug=query&wt=json",
            part(self.name()),
            part(&query)
        );
        let answer: Value = self.client()?.get(&path).await?;
        let parsed = answer.pointer("/debug/parsedquery").map(ToString::to_string);
        Ok(parsed.is_some_and(|parsed| parsed.contains(wanted.mark.as_str())))
    }
}
