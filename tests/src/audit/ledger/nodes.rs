//! Compares what nodes hold with what the database holds, by digest and in full.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use emend_core::Digest;
use emend_proto::learning::v1::SubscribeRequest;
use emend_store::audit::Findings;
use learning_store::audit::{Figures, Group};
use tokio::time::timeout;

use super::{NODE_BEHIND, NODE_DIFFERS, NODE_DIGEST};
use crate::harness::{
    Subscriber,
    held::{Held, Key, group, sums_of},
    node::{Holds, Node},
};

/// What the database holds.
pub(super) struct Database<'a> {
    pub(super) figures: &'a Figures,
    pub(super) resources: BTreeMap<Key, Held>,
    /// Keys for which something was ever proposed, or that are in the log.
    pub(super) once: BTreeSet<Key>,
}

/// A party that holds what was learned.
#[derive(Debug)]
pub enum Holder<'a> {
    /// A node as applications embed it: compared by what it holds and by what it answers for every key, past and
    /// present.
    Node(&'a Node),
    /// A subscriber that has read up to the head: compared by what it holds.
    Subscriber(&'a Subscriber),
}

impl<'a> From<&'a Node> for Holder<'a> {
    fn from(node: &'a Node) -> Self {
        Self::Node(node)
    }
}

impl<'a> From<&'a Subscriber> for Holder<'a> {
    fn from(subscriber: &'a Subscriber) -> Self {
        Self::Subscriber(subscriber)
    }
}

impl Holder<'_> {
    /// Waits until it has applied the head, then compares.
    pub(super) async fn check(&self, patience: Duration, database: &Database<'_>, findings: &mut Findings) {
        match self {
            Self::Node(node) => check_node(node, patience, database, findings).await,
            Self::Subscriber(subscriber) => check_subscriber(subscriber, database, findings),
        }
    }
}

async fn check_node(node: &Node, patience: Duration, database: &Database<'_>, findings: &mut Findings) {
    const NODE: &str = "a node";
    let Database {
        figures,
        resources,
        once,
    } = database;
    let head = figures.head;
    let view = node.view();
    let in_time = timeout(patience, view.wait_for_revision(head)).await.is_ok();
    let Holds {
        revision,
        resources: of_node,
        digests,
    } = node.holds();
    if !in_time || revision.unwrap_or(0) != head.0 {
        findings.add(
            NODE_BEHIND,
            NODE,
            format_args!(
                "it shows revision {} and holds {revision:?}, the head is {head}",
                view.revision()
            ),
        );
    }
    compare(
        NODE,
        (&of_node, &digests),
        (&resources.iter().collect(), &figures.digests),
        findings,
    );
    if view.staleness().in_doubt {
        findings.add(NODE_DIGEST, NODE, "its digests are not the server's");
    }
    for difference in node.differences(resources, once) {
        findings.add(NODE_DIFFERS, NODE, difference);
    }
}

fn check_subscriber(subscriber: &Subscriber, database: &Database<'_>, findings: &mut Findings) {
    let Database {
        figures, resources, ..
    } = database;
    let request = subscriber.request();
    let id = request.node.as_ref().map_or("", |node| node.id.as_str());
    let evidence = format!("subscriber {id}");
    let applied = subscriber.cursor().revision;
    if applied < figures.head.0 {
        findings.add(
            NODE_BEHIND,
            &evidence,
            format_args!("it has applied {applied}, the head is {}", figures.head),
        );
    }
    let held = subscriber.held();
    let digests: BTreeMap<Group, Digest> = figures
        .digests
        .iter()
        .filter(|(group, _)| wants(request, group))
        .map(|(group, digest)| (group.clone(), *digest))
        .collect();
    let mut own = sums_of(held);
    own.retain(|_, digest| digest.count != 0);
    let wanted = resources
        .iter()
        .filter(|(key, _)| wants(request, &group(key)))
        .collect();
    compare(&evidence, (held, &own), (&wanted, &digests), findings);
}

/// Compares what a party holds, and its digests, with what is stored within its filter.
fn compare(
    evidence: &str,
    (held, own): (&BTreeMap<Key, Held>, &BTreeMap<Group, Digest>),
    (wanted, digests): (&BTreeMap<&Key, &Held>, &BTreeMap<Group, Digest>),
    findings: &mut Findings,
) {
    if own != digests {
        findings.add(NODE_DIGEST, evidence, "its digests are not the database's");
    }
    for (key, held) in held {
        if wanted.get(key) != Some(&held) {
            findings.add(
                NODE_DIFFERS,
                evidence,
                format_args!("{key:?} is not as it is stored"),
            );
        }
    }
    for key in wanted.keys().filter(|key| !held.contains_key(**key)) {
        findings.add(NODE_DIFFERS, evidence, format_args!("{key:?} is not there"));
    }
}

/// Whether a subscriber asked for this group.
fn wants(request: &SubscribeRequest, (namespace, kind, user_scoped): &Group) -> bool {
    (request.namespaces.is_empty() || request.namespaces.contains(namespace))
        && (request.kinds.is_empty() || request.kinds.contains(kind))
        && (request.include_user_scoped || !user_scoped)
}
