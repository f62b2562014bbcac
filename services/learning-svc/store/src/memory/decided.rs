//! What decisions come to besides contests and resources, in memory.
//!
//! This store holds no evidence graph: nobody can upsert any here, so no target is known and nothing in it is marked. What was
//! done is kept.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use emend_core::{CandidateId, ContestId, Kind, Namespace, ResourceKey, Target, UserId};

use super::{
    MemoryStore, Result,
    tables::{Write, value},
    work::Work,
};
use crate::{
    evidence::{EventWrite, RulingRepository, RulingWrite},
    profiles::{EntryRepository, StoredProfile, SuggestionDetails, SuggestionStore},
};

#[async_trait]
impl RulingRepository for Work {
    async fn known_targets(&mut self, _keys: &[&ResourceKey]) -> Result<HashMap<ContestId, Target>> {
        Ok(HashMap::new())
    }

    async fn save_rulings(&mut self, _rulings: &[RulingWrite]) -> Result<()> {
        Ok(())
    }

    async fn note_rules(&mut self, _changed: &[(Namespace, String)]) -> Result<()> {
        Ok(())
    }

    async fn save_events(&mut self, events: &[EventWrite]) -> Result<()> {
        self.note("save_events", Write::Events(events.into())).await
    }
}

#[async_trait]
impl EntryRepository for Work {
    async fn stored(&mut self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile> {
        self.read("stored_profile", |tables| {
            let is_entry = |key: &ResourceKey| {
                (key.kind, &key.namespace, key.user.as_ref()) == (Kind::Profile, namespace, Some(user))
            };
            let resources = tables
                .resources
                .iter()
                .filter(|(_, (resource, _))| is_entry(&resource.key));
            let entries = resources.map(|(contest, (resource, _))| {
                let value = value(resource.value.as_deref(), "resources", *contest)?;
                Ok((resource.key.clone(), value))
            });
            let changes = tables.changes.values().filter(|change| is_entry(&change.key));
            Ok(StoredProfile {
                entries: entries.collect::<Result<_>>()?,
                revision: changes.map(|change| change.revision).max().unwrap_or_default(),
            })
        })
        .await
    }
}

/// Nothing is suggested here.
#[async_trait]
impl SuggestionStore for MemoryStore {
    async fn suggestion(&self, _candidate: CandidateId) -> Result<Option<SuggestionDetails>> {
        Ok(None)
    }
}

impl MemoryStore {
    /// What was done to evidence, the oldest first.
    pub fn evidence_events(&self) -> Vec<Arc<EventWrite>> {
        self.state().tables.events.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Caller, Revision};
    use jiff::Timestamp;

    use super::*;
    use crate::{Store as _, actor::Actor, evidence::EvidenceAction};

    #[tokio::test]
    async fn what_was_done_to_evidence_is_kept_once_it_is_committed() {
        let store = MemoryStore::default();
        let event = EventWrite {
            action: EvidenceAction::Corrected,
            key: ResourceKey::parse("research", Some(Kind::ClaimState), "c1", "", "").unwrap(),
            task: "t1".to_owned(),
            correction: None,
            actor: Actor::caller(Caller::system()),
            reason: String::new(),
            before: String::new(),
            after: "rejected".to_owned(),
            proposed: String::new(),
            feedback: None,
            candidate: None,
            revision: Revision(1),
            at: Timestamp::UNIX_EPOCH,
        };
        for is_committed in [false, true] {
            let mut tx = store.begin().await.unwrap();
            tx.rulings()
                .save_events(std::slice::from_ref(&event))
                .await
                .unwrap();
            assert_eq!(store.evidence_events(), []);
            if is_committed {
                tx.commit().await.unwrap();
            }
        }
        assert_eq!(store.evidence_events(), [Arc::new(event)]);
    }
}
