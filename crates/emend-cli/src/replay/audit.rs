//! Checks what was learned, and whether anything was lost, from the services' own records.
//!
//! It sees only what an operator could, nothing of the simulation.

use std::collections::{BTreeMap, HashMap};

use emend_client::NodeHandle;
use emend_core::{Kind, Namespace, NormalizedKey};
use emend_lab::replay::{Audit, dataset::Dataset};
use emend_proto::{
    common::v1::{Cause, ResourceKind},
    feedback::v1::{DeliveryState, ListDeadLettersRequest, ListFeedbackRequest},
    learning::v1::{ListCandidatesRequest, ListResourcesRequest, ListRevisionsRequest},
};

use crate::{
    commands,
    context::Context,
    failure::{Failure, Result},
    view,
};

/// The reason given by an outcome that is not known yet.
const NOT_EVALUATED: &str = "NOT_EVALUATED";

/// What was learned since the last query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LearnedSince {
    /// Values promoted by votes.
    pub promotions: u64,
    /// How many of them are not the true label.
    pub wrong_promotions: u64,
    /// What changed, in its order.
    pub changes: Vec<Changed>,
}

/// What a phrase meant, and what it means now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    /// In normal form.
    pub phrase: String,
    /// `None` if nothing was learned.
    pub before: Option<String>,
    /// `None` if nothing is learned any more.
    pub after: Option<String>,
}

/// Reads the services' records of one namespace.
#[derive(Debug)]
pub(super) struct Auditor {
    context: Context,
    namespace: String,
    seen: i64,
    revisions: u64,
    /// The resources according to the audit trail.
    replayed: HashMap<String, String>,
}

impl Auditor {
    /// An auditor that has read nothing yet.
    pub(super) fn new(context: Context, namespace: &str) -> Self {
        let mut context = context;
        context.global.namespace = Some(namespace.to_owned());
        Self {
            context,
            namespace: namespace.to_owned(),
            seen: 0,
            revisions: 0,
            replayed: HashMap::new(),
        }
    }

    /// Fails unless the namespace is empty: figures are counted from its records, so there must be no earlier ones.
    pub(super) async fn expect_empty(&self) -> Result {
        let request = ListFeedbackRequest {
            namespace: self.namespace.clone(),
            page_size: 1,
            ..Default::default()
        };
        let feedback = self
            .context
            .feedback()
            .await?
            .list_feedback(self.context.request(request))
            .await?;
        let (revisions, _) = self.revisions(1).await?;
        if feedback.into_inner().feedback.is_empty() && revisions.is_empty() {
            return Ok(());
        }
        Err(Failure::Conflict(format!(
            "the namespace {} is not empty; replay needs an empty one",
            self.namespace
        )))
    }

    async fn revisions(&self, limit: usize) -> Result<(Vec<emend_proto::learning::v1::Revision>, bool)> {
        commands::log::list(&self.context, limit, &|page_size, page_token| {
            ListRevisionsRequest {
                namespace: self.namespace.clone(),
                page_size,
                page_token,
                ..Default::default()
            }
        })
        .await
    }

    /// Reads what the audit trail has recorded since it was last read.
    pub(super) async fn since_last(&mut self, dataset: &Dataset) -> Result<LearnedSince> {
        let mut client = self.context.resources().await?;
        let mut request = ListRevisionsRequest {
            namespace: self.namespace.clone(),
            page_size: 500,
            ..Default::default()
        };
        let mut fresh = Vec::new();
        'pages: loop {
            let page = client
                .list_revisions(self.context.request(request.clone()))
                .await?
                .into_inner();
            for revision in page.revisions {
                if revision.revision <= self.seen {
                    break 'pages;
                }
                fresh.push(revision);
            }
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        let mut learned = LearnedSince::default();
        // The trail is listed newest first but replayed oldest first.
        for revision in fresh.into_iter().rev() {
            self.seen = revision.revision;
            self.revisions += 1;
            let by_votes = revision.cause == Cause::Votes as i32;
            for change in revision.changes {
                let key = change.key.unwrap_or_default().key;
                let after = change.after.map(|after| view::maps_to(Some(&after)));
                if let Some(verb) = after.as_ref().filter(|_| by_votes) {
                    learned.promotions += 1;
                    learned.wrong_promotions += u64::from(!is_right(dataset, &key, verb));
                }
                let before = match after.clone() {
                    Some(verb) => self.replayed.insert(key.clone(), verb),
                    None => self.replayed.remove(&key),
                };
                learned.changes.push(Changed {
                    phrase: key,
                    before,
                    after,
                });
            }
        }
        Ok(learned)
    }

    /// How many phrases are learned according to the audit trail.
    pub(super) fn phrases(&self) -> u64 {
        self.replayed.len() as u64
    }

    /// Checks that everything submitted is there, and that the node holds what the database holds.
    pub(super) async fn finish(
        mut self,
        submitted: u64,
        node: &NodeHandle,
        dataset: &Dataset,
    ) -> Result<Audit> {
        self.since_last(dataset).await?;
        let mut audit = Audit {
            submitted,
            revisions: self.revisions,
            ..Audit::default()
        };
        self.count_feedback(&mut audit).await?;
        self.count_candidates(&mut audit).await?;
        audit.dead_letters = self
            .context
            .list(
                &ListDeadLettersRequest {
                    namespace: self.namespace.clone(),
                    ..Default::default()
                },
                0,
            )
            .await?
            .0
            .len() as u64;
        let resources = self.resources().await?;
        audit.resources = resources.len() as u64;
        for (key, verb) in &resources {
            audit.wrong_resources += u64::from(!is_right(dataset, key, verb));
            audit.on_the_node += u64::from(self.answers(node, key).as_ref() == Some(verb));
        }
        let mut expect = |what: &str, is: u64, expected: u64| {
            if is != expected {
                audit.problems.push(format!("{what}: {is}, expected {expected}"));
            }
        };
        expect("corrections stored", audit.stored, submitted);
        expect("corrections evaluated", audit.evaluated, submitted);
        expect("corrections counted", audit.counted, submitted);
        expect("dead letters", audit.dead_letters, 0);
        expect(
            "resources that the node answers with",
            audit.on_the_node,
            audit.resources,
        );
        let from_the_trail: BTreeMap<_, _> = self.replayed.into_iter().collect();
        if from_the_trail != resources {
            audit.problems.push(format!(
                "the audit trail gives {} resources, the database holds {} or others",
                from_the_trail.len(),
                resources.len()
            ));
        }
        if node.view().staleness().in_doubt {
            audit
                .problems
                .push("the node's digests differ from the server's".into());
        }
        Ok(audit)
    }

    async fn count_feedback(&self, audit: &mut Audit) -> Result {
        let (feedback, _) = self
            .context
            .list(
                &ListFeedbackRequest {
                    namespace: self.namespace.clone(),
                    ..Default::default()
                },
                0,
            )
            .await?;
        audit.stored = feedback.len() as u64;
        let evaluated = feedback.iter().filter(|feedback| {
            feedback.delivery_state == DeliveryState::Delivered as i32
                && feedback
                    .outcome
                    .as_ref()
                    .is_some_and(|outcome| outcome.reason != NOT_EVALUATED)
        });
        audit.evaluated = evaluated.count() as u64;
        Ok(())
    }

    async fn count_candidates(&self, audit: &mut Audit) -> Result {
        let (candidates, _) = self
            .context
            .list(
                &ListCandidatesRequest {
                    namespace: self.namespace.clone(),
                    ..Default::default()
                },
                0,
            )
            .await?;
        let awaiting = emend_proto::learning::v1::CandidateStatus::AwaitingReview as i32;
        audit.awaiting_review = candidates
            .iter()
            .filter(|candidate| candidate.status == awaiting)
            .count() as u64;
        audit.counted = candidates
            .iter()
            .map(|candidate| u64::try_from(candidate.occurrence_count).unwrap_or_default())
            .sum();
        Ok(())
    }

    /// What the database holds, as key → verb.
    async fn resources(&self) -> Result<BTreeMap<String, String>> {
        let (resources, _) = self
            .context
            .list(
                &ListResourcesRequest {
                    namespace: self.namespace.clone(),
                    kinds: vec![ResourceKind::InvocationPhrase as i32],
                    min_revision: self.seen,
                    ..Default::default()
                },
                0,
            )
            .await?;
        let pairs = resources.into_iter().filter_map(|resource| {
            let verb = view::maps_to(resource.value.as_ref());
            Some((resource.key?.key, verb))
        });
        Ok(pairs.collect())
    }

    fn answers(&self, node: &NodeHandle, key: &str) -> Option<String> {
        let namespace = Namespace::parse(&self.namespace).ok()?;
        let resolved = node
            .view()
            .resolve(&namespace, Kind::InvocationPhrase, key, None, [])
            .ok()?;
        resolved.found.map(|found| found.value)
    }
}

fn is_right(dataset: &Dataset, key: &str, verb: &str) -> bool {
    NormalizedKey::parse(key).is_ok_and(|key| dataset.truth(&key) == Some(verb))
}
