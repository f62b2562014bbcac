//! Plays the day through the real services and asks both nodes before and after each step.

use std::{collections::HashMap, time::Duration};

use emend_base::Lifecycle;
use emend_client::{ExpandMode, FeedbackClient};
use emend_core::{FeedbackId, Invalid, Kind, Namespace, Revision, UserId};
use emend_proto::learning::v1::{
    BackendCandidate, Claim, GetClaimRequest, ListNodesRequest, ListResourcesRequest, ResolveRequest,
};
use tokio::time::sleep;

use super::{
    evidence::{CLAIM, evidence},
    nodes::{Node, TIMEOUT, answer, applied, has_all, within_timeout},
    script::{Answer, NAMESPACE, Question, Step, backend},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// The interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The nodes' names.
pub(super) const NODES: [&str; 2] = ["london", "tokyo"];

/// What a step changed on one node.
#[derive(Debug)]
pub(super) struct NodeResult {
    pub node: &'static str,
    pub before: Answer,
    pub after: Answer,
    /// From the commit to the answer; `None` if nothing changed.
    pub since_commit: Option<Duration>,
    /// From the receipt of the feedback that caused it; `None` if no feedback did.
    pub since_feedback: Option<Duration>,
}

/// What a step changed.
#[derive(Debug)]
pub(super) struct StepResult {
    pub nodes: Vec<NodeResult>,
    /// The revision that was written; `None` if nothing changed.
    pub revision: Option<i64>,
    /// Lines about it for people, such as what a proposal changes.
    pub shown: Vec<String>,
    /// What was not as expected.
    pub deviations: Vec<String>,
}

/// How the day ended.
#[derive(Debug)]
pub(super) struct Summary {
    pub revision: i64,
    pub resources: usize,
    /// The claim that people argued about.
    pub claim: Claim,
    pub deviations: Vec<String>,
}

/// The nodes, the services, and the state kept from step to step.
pub(super) struct Day {
    pub(super) context: Context,
    pub(super) namespace: Namespace,
    pub(super) feedback: FeedbackClient,
    nodes: Vec<Node>,
    /// Feedback ids by reporter and phrase, for retractions.
    pub(super) submitted: HashMap<(&'static str, &'static str), FeedbackId>,
    pub(super) newest: i64,
    /// The candidate of the prompt that was proposed last; empty before.
    pub(super) proposed: String,
}

impl Day {
    /// Stores what a backend read, starts the nodes, and waits until both have a state to answer from.
    pub(super) async fn begin(context: &Context, lifecycle: &Lifecycle) -> Result<Self> {
        let mut context = context.clone();
        context.global.namespace = Some(NAMESPACE.into());
        let namespace =
            Namespace::parse(NAMESPACE).map_err(|invalid| Failure::failed(invalid.to_string()))?;
        let feedback = context.feedback_client()?.deadline(TIMEOUT);
        let mut client = context.evidence().await?;
        client.upsert_evidence(context.request(evidence())).await?;
        let mut nodes = Vec::new();
        for name in NODES {
            let (node, events) = context
                .subscriber(name)?
                .namespace(NAMESPACE)
                .zone(name)
                .version(env!("CARGO_PKG_VERSION"))
                .include_user_scoped(true)
                .spawn_observed(lifecycle)
                .await
                .map_err(|error| Failure::failed(error.to_string()))?;
            let view = node.view().clone();
            within_timeout(view.wait_until_filled(), "the first state of a node").await?;
            nodes.push(Node { name, view, events });
        }
        Ok(Self {
            context,
            namespace,
            feedback,
            nodes,
            submitted: HashMap::new(),
            newest: 0,
            proposed: String::new(),
        })
    }

    /// Plays a step: asks, acts, waits, asks again.
    pub(super) async fn play(&mut self, step: &Step) -> Result<StepResult> {
        let before = self.answers(step.ask)?;
        let (mut shown, mut deviations) = (Vec::new(), Vec::new());
        let revision = self
            .act(step, &mut shown, &mut deviations)
            .await?
            .filter(|revision| *revision > self.newest);
        let mut times = vec![(None, None); self.nodes.len()];
        if let Some(revision) = revision {
            self.newest = revision;
            for (node, times) in self.nodes.iter_mut().zip(&mut times) {
                *times = applied(node, revision).await?;
            }
        }
        let after = self.answers(step.ask)?;
        for (node, answer) in self.nodes.iter().zip(&after) {
            if *answer != step.expect {
                deviations.push(format!(
                    "{} answers {answer:?}, expected {:?}",
                    node.name, step.expect
                ));
            }
        }
        // The server resolves phrases; what else nodes answer, they put together themselves.
        let server = if step.ask.kind.rules().is_answer {
            self.server_answers(step.ask).await?
        } else {
            step.expect.clone()
        };
        if server != step.expect {
            deviations.push(format!(
                "learning-svc answers {server:?}, expected {:?}",
                step.expect
            ));
        }
        if step.ask.kind == Kind::Prompt {
            let text = self.server_renders(step.ask.phrase).await?;
            for node in &self.nodes {
                if self
                    .rendered(&node.view, step.ask.phrase)?
                    .is_none_or(|(_, own)| own != text)
                {
                    deviations.push(format!("{} renders another prompt than learning-svc", node.name));
                }
            }
        }
        let nodes = self
            .nodes
            .iter()
            .zip(before.into_iter().zip(after))
            .zip(times)
            .map(
                |((node, (before, after)), (since_commit, since_feedback))| NodeResult {
                    node: node.name,
                    before,
                    after,
                    since_commit,
                    since_feedback,
                },
            )
            .collect();
        Ok(StepResult {
            nodes,
            revision,
            shown,
            deviations,
        })
    }

    /// What each node answers.
    fn answers(&self, question: Question) -> Result<Vec<Answer>> {
        let answered = self.nodes.iter().map(|node| match question.kind {
            Kind::Prompt => {
                let rendered = self.rendered(&node.view, question.phrase)?;
                let version = rendered.map(|(version, _)| format!("version {version}"));
                Ok(answer(version, &[], backend(question)))
            }
            _ => self
                .answer(node, question)
                .map_err(|invalid| Failure::failed(invalid.to_string())),
        });
        answered.collect()
    }

    /// What a node answers: for an edge its label, for a query the first title that has all of it, and where trust is decided, which of the
    /// backend's results comes first; else the choice.
    fn answer(&self, node: &Node, question: Question) -> Result<Answer, Invalid> {
        let user = UserId::parse(question.user).ok();
        let own = backend(question);
        let (view, phrase) = (&node.view, question.phrase);
        Ok(match question.kind {
            Kind::DomainRule => {
                let results = own.iter().map(|(host, score)| (*host, *host, *score));
                let ranked = view.rank(&self.namespace, results);
                let first = ranked.first().map(|(host, ..)| *host);
                let was_first = own.first().map(|(host, _)| *host);
                answer(first.filter(|_| first != was_first).map(str::to_owned), &[], own)
            }
            Kind::EdgeLabel => {
                let decided = view.edge_label(&self.namespace, phrase);
                answer(
                    decided.map(|decided| decided.relation.name().to_owned()),
                    &[],
                    own,
                )
            }
            Kind::Synonym => {
                let query = view.expand(&self.namespace, phrase, ExpandMode::Keyword, user.as_ref());
                let found = own
                    .iter()
                    .map(|(title, _)| *title)
                    .find(|title| has_all(title, &query));
                answer(found.map(str::to_owned), &[], &[])
            }
            kind => {
                let candidates = own.iter().copied();
                let resolved = view.resolve(&self.namespace, kind, phrase, user.as_ref(), candidates)?;
                answer(resolved.found.map(|found| found.value), &resolved.prohibited, own)
            }
        })
    }

    /// What learning-svc answers from a state as new as the nodes'.
    async fn server_answers(&self, question: Question) -> Result<Answer> {
        let own = backend(question);
        let request = ResolveRequest {
            namespace: NAMESPACE.into(),
            kind: question.kind.number(),
            phrase: question.phrase.into(),
            user_id: question.user.into(),
            backend_candidates: own
                .iter()
                .map(|&(value, score)| BackendCandidate {
                    value: value.into(),
                    score,
                })
                .collect(),
            min_revision: self.newest,
            near: false,
        };
        let mut client = self.context.resources().await?;
        let resolved = client.resolve(self.context.request(request)).await?.into_inner();
        Ok(answer(
            resolved.r#match.map(|found| found.value),
            &resolved.prohibited,
            own,
        ))
    }

    /// Waits until learning-svc lists both nodes at the newest revision: replicas record the state of nodes in batches.
    async fn wait_until_listed(&self) -> Result {
        let mut client = self.context.subscriptions().await?;
        let listed = async {
            loop {
                let request = self.context.request(ListNodesRequest::default());
                let page = client.list_nodes(request).await?.into_inner();
                if page.nodes.len() == NODES.len() && page.head_revision == self.newest {
                    return Ok(());
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        within_timeout(listed, "learning-svc to list both nodes").await?
    }

    /// Checks that both nodes are connected, hold what the database holds, and are listed by learning-svc.
    pub(super) async fn end(&mut self) -> Result<Summary> {
        let mut deviations = Vec::new();
        for node in &self.nodes {
            let staleness = node.view.staleness();
            if staleness.revision != Revision(self.newest) || staleness.in_doubt || !staleness.connected {
                deviations.push(format!(
                    "{} is at {staleness:?}, the log at {}",
                    node.name, self.newest
                ));
            }
        }
        if let Err(failure) = self.wait_until_listed().await {
            deviations.push(failure.to_string());
        }
        let mut client = self.context.resources().await?;
        let mut resources = 0;
        for user_id in ["", "mia"] {
            let request = ListResourcesRequest {
                namespace: NAMESPACE.into(),
                user_id: user_id.into(),
                min_revision: self.newest,
                ..Default::default()
            };
            resources += client
                .list_resources(self.context.request(request))
                .await?
                .into_inner()
                .resources
                .len();
        }
        let request = GetClaimRequest {
            namespace: NAMESPACE.into(),
            claim_id: CLAIM.into(),
            ..GetClaimRequest::default()
        };
        let mut client = self.context.evidence().await?;
        let claim = client
            .get_claim(self.context.request(request))
            .await?
            .into_inner()
            .claim;
        Ok(Summary {
            revision: self.newest,
            resources,
            claim: claim.unwrap_or_default(),
            deviations,
        })
    }
}
