//! Plays the day through the real services and asks both nodes before and after each step.
//!
//! It must know nothing of how it is printed.

use std::{collections::HashMap, time::Duration};

use emend_base::Lifecycle;
use emend_client::{FeedbackClient, Submission};
use emend_core::{FeedbackId, Kind as CoreKind, Namespace, Revision, UserId};
use emend_proto::{
    common::v1::OutcomeState,
    learning::v1::{
        ApproveCandidateRequest, BackendCandidate, ListCandidatesRequest, ListNodesRequest,
        ListResourcesRequest, ResolveRequest, RevertRevisionRequest,
    },
};
use tokio::time::{Instant, sleep};

use super::{
    nodes::{Node, PATIENCE, answer, applied, bounded},
    script::{Act, Answer, NAMESPACE, Question, Said, Step, backend},
};
use crate::{
    commands::resources::put_request,
    context::Context,
    failure::{Failure, Result},
    settled::settled,
    view,
    words::Kind,
};

/// The interval between polls.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// The nodes' names.
pub(super) const NODES: [&str; 2] = ["london", "tokyo"];

/// One node's part in a step.
#[derive(Debug)]
pub(super) struct NodeSeen {
    pub node: &'static str,
    pub before: Answer,
    pub after: Answer,
    /// From the commit to the answer; `None` if nothing changed.
    pub since_commit: Option<Duration>,
    /// From the receipt of the feedback that caused it; `None` if no feedback did.
    pub since_feedback: Option<Duration>,
}

/// The observations of a step.
#[derive(Debug)]
pub(super) struct Seen {
    pub nodes: Vec<NodeSeen>,
    /// The revision that was written; `None` if nothing changed.
    pub revision: Option<i64>,
    /// What was not as expected.
    pub wrong: Vec<String>,
}

/// How the day ended.
#[derive(Debug)]
pub(super) struct End {
    pub revision: i64,
    pub resources: usize,
    pub wrong: Vec<String>,
}

/// The nodes, the services, and the state kept from step to step.
pub(super) struct Day {
    context: Context,
    namespace: Namespace,
    feedback: FeedbackClient,
    nodes: Vec<Node>,
    /// Feedback ids by reporter and phrase, for retractions.
    said: HashMap<(&'static str, &'static str), FeedbackId>,
    newest: i64,
}

impl Day {
    /// Starts the nodes and waits until both have a state to answer from.
    pub(super) async fn begin(context: &Context, lifecycle: &Lifecycle) -> Result<Self> {
        let mut context = context.clone();
        context.global.namespace = Some(NAMESPACE.into());
        let namespace =
            Namespace::parse(NAMESPACE).map_err(|invalid| Failure::failed(invalid.to_string()))?;
        let feedback = context.feedback_client()?.deadline(PATIENCE);
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
            bounded(view.wait_until_filled(), "the first state of a node").await?;
            nodes.push(Node { name, view, events });
        }
        Ok(Self {
            context,
            namespace,
            feedback,
            nodes,
            said: HashMap::new(),
            newest: 0,
        })
    }

    /// Plays a step: asks, acts, waits, asks again.
    pub(super) async fn play(&mut self, step: &Step) -> Result<Seen> {
        let before = self.answers(step.ask)?;
        let mut wrong = Vec::new();
        let revision = self
            .act(step, &mut wrong)
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
                wrong.push(format!(
                    "{} answers {answer:?}, should answer {:?}",
                    node.name, step.expect
                ));
            }
        }
        let server = self.server_answers(step.ask).await?;
        if server != step.expect {
            wrong.push(format!(
                "learning-svc answers {server:?}, should answer {:?}",
                step.expect
            ));
        }
        let nodes = self
            .nodes
            .iter()
            .zip(before.into_iter().zip(after))
            .zip(times)
            .map(
                |((node, (before, after)), (since_commit, since_feedback))| NodeSeen {
                    node: node.name,
                    before,
                    after,
                    since_commit,
                    since_feedback,
                },
            )
            .collect();
        Ok(Seen {
            nodes,
            revision,
            wrong,
        })
    }

    /// Carries out the step's action. Returns the revision that it wrote, if any.
    async fn act(&mut self, step: &Step, wrong: &mut Vec<String>) -> Result<Option<i64>> {
        match &step.act {
            Act::Say {
                reporters,
                what,
                outcome,
            } => self.say(reporters, *what, step, *outcome, wrong).await,
            Act::Retract { reporter } => {
                let feedback_id = self
                    .said
                    .remove(&(*reporter, step.ask.phrase))
                    .ok_or_else(|| Failure::failed(format!("{reporter} said nothing")))?;
                let retracted = self
                    .feedback
                    .retract(&self.namespace, feedback_id, "on reflection", true)
                    .await
                    .map_err(|error| Failure::Refused(Box::new(error.0)))?;
                let deadline = Instant::now() + PATIENCE;
                let retracted = settled(&self.feedback, &self.namespace, retracted, deadline).await?;
                Ok(retracted.outcome().map(|outcome| outcome.revision))
            }
            Act::Approve { choice } => self.approve(step.ask, choice).await.map(Some),
            Act::Put { choice } => {
                let mut request = put_request(
                    NAMESPACE.into(),
                    step.ask.kind,
                    step.ask.phrase.into(),
                    (*choice).into(),
                );
                request.on_behalf_of = "dana".into();
                let mut client = self.context.resources().await?;
                Ok(Some(
                    client
                        .put_resource(self.context.request(request))
                        .await?
                        .into_inner()
                        .revision,
                ))
            }
            Act::RevertNewest => {
                let request = RevertRevisionRequest {
                    namespace: NAMESPACE.into(),
                    revision: self.newest,
                    reason: "the wrong one of two".into(),
                    on_behalf_of: "dana".into(),
                };
                let mut client = self.context.resources().await?;
                Ok(Some(
                    client
                        .revert_revision(self.context.request(request))
                        .await?
                        .into_inner()
                        .revision,
                ))
            }
        }
    }

    async fn say(
        &mut self,
        reporters: &[&'static str],
        what: Said,
        step: &Step,
        outcome: OutcomeState,
        wrong: &mut Vec<String>,
    ) -> Result<Option<i64>> {
        let mut last = None;
        for &reporter in reporters {
            let recorded = self
                .feedback
                .submit(
                    submission(what)
                        .reporter(reporter)
                        .client("emend-demo")
                        .wait_evaluated(),
                )
                .await
                .map_err(|error| Failure::Refused(Box::new(error.0)))?;
            let recorded = settled(
                &self.feedback,
                &self.namespace,
                recorded,
                Instant::now() + PATIENCE,
            )
            .await?;
            self.said
                .insert((reporter, step.ask.phrase), recorded.feedback_id);
            last = Some(recorded);
        }
        let last = last.ok_or_else(|| Failure::failed("nobody said anything"))?;
        if last.state() != outcome {
            wrong.push(format!(
                "the outcome is {}, should be {}",
                last.state().as_str_name(),
                outcome.as_str_name()
            ));
        }
        Ok(last.applied_revision().map(|revision| revision.0))
    }

    async fn approve(&self, question: Question, choice: &str) -> Result<i64> {
        let mut client = self.context.candidates().await?;
        let request = ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            kinds: vec![question.kind.number()],
            key: question.phrase.into(),
            ..Default::default()
        };
        let page = client
            .list_candidates(self.context.request(request))
            .await?
            .into_inner();
        let candidate = page
            .candidates
            .into_iter()
            .find(|candidate| view::maps_to(candidate.value.as_ref()) == choice)
            .ok_or_else(|| Failure::failed(format!("nobody proposed {choice}")))?;
        let request = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id,
            etag: candidate.etag,
            reason: "no CSA without an ISDA".into(),
            on_behalf_of: "dana".into(),
            ..Default::default()
        };
        Ok(client
            .approve_candidate(self.context.request(request))
            .await?
            .into_inner()
            .revision)
    }

    /// What each node answers.
    fn answers(&self, question: Question) -> Result<Vec<Answer>> {
        let kind = match question.kind {
            Kind::InvocationPhrase => CoreKind::InvocationPhrase,
            Kind::EntityAlias => CoreKind::EntityAlias,
            Kind::Prohibition => CoreKind::Prohibition,
        };
        let user = UserId::parse(question.user).ok();
        let own = backend(question);
        self.nodes
            .iter()
            .map(|node| {
                let resolved = node
                    .view
                    .resolve(
                        &self.namespace,
                        kind,
                        question.phrase,
                        user.as_ref(),
                        own.iter().copied(),
                    )
                    .map_err(|invalid| Failure::failed(invalid.to_string()))?;
                Ok(answer(
                    resolved.found.map(|found| found.value),
                    &resolved.prohibited,
                    own,
                ))
            })
            .collect()
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
                sleep(ASK_AGAIN).await;
            }
        };
        bounded(listed, "learning-svc to list both nodes").await?
    }

    /// Checks that both nodes are connected, hold what the database holds, and are listed by learning-svc.
    pub(super) async fn end(&mut self) -> Result<End> {
        let mut wrong = Vec::new();
        for node in &self.nodes {
            let staleness = node.view.staleness();
            if staleness.revision != Revision(self.newest) || staleness.in_doubt || !staleness.connected {
                wrong.push(format!(
                    "{} stands at {staleness:?}, the log at {}",
                    node.name, self.newest
                ));
            }
        }
        if let Err(failure) = self.wait_until_listed().await {
            wrong.push(failure.to_string());
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
        Ok(End {
            revision: self.newest,
            resources,
            wrong,
        })
    }
}

fn submission(what: Said) -> Submission {
    match what {
        Said::Verb {
            words,
            is,
            instead_of,
        } => Submission::verb(NAMESPACE, words, is).system_choice(instead_of),
        Said::Entity {
            words,
            is,
            instead_of,
        } => Submission::entity(NAMESPACE, words, is).system_choice(instead_of),
        Said::Never { words, choice } => Submission::prohibition(NAMESPACE, words, choice),
        Said::ForMe { words, is } => Submission::phrase_mapping(NAMESPACE, words, is).for_reporter_only(),
    }
}
