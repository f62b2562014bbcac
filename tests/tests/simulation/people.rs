//! The users of the system: backends that submit corrections until they are acknowledged, and operators.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use emend_base::Error;
use emend_core::{Caller, Correction, Namespace, Revision};
use emend_proto::{
    common::v1::{Reporter, Scope, SynonymRelation},
    feedback::v1::{RetractFeedbackRequest, SubmitFeedbackRequest, Wait},
};
use emend_serve::auth::Access;
use emend_tests::harness::{alias, phrase, prohibit, says::synonyms};
use feedback_svc::simulation::Replica;
use learning_store::{actor::Actor, policies::PolicyKey};
use learning_svc::{
    capabilities::CoreCapabilities,
    decisions::review::{Review, Verdict},
    log::revert::Revert,
    policies::update::PolicyUpdate,
    resources::write::{Delete, Put},
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};
use tonic::{Code, Status};

use crate::{
    network::{Lost, PATIENCE},
    weather::Place,
    world::{Running, World, lock},
};

pub(crate) const NAMESPACES: [&str; 2] = ["funds", "cards"];
pub(crate) const PHRASES: [&str; 3] = ["open a line", "close it", "the usual"];
pub(crate) const CHOICES: [&str; 3] = ["v_one", "v_two", "v_three"];
const REPORTERS: usize = 5;

/// What backends were told.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// Feedback ids by request.
    pub(crate) stored: Mutex<BTreeMap<String, String>>,
    /// Retracted feedback.
    pub(crate) retracted: Mutex<Vec<String>>,
}

/// Starts backends and operators, each in a task of its own.
pub(crate) fn set_to_work(world: &Arc<World>) -> (Arc<Acknowledged>, JoinSet<()>) {
    let acknowledged = Arc::new(Acknowledged::default());
    let mut at_work = JoinSet::new();
    for number in 0..2 + world.dice.below(2) {
        at_work.spawn(backend(Arc::clone(world), number, Arc::clone(&acknowledged)));
    }
    if world.dice.chance(0.5) {
        at_work.spawn(operator(Arc::clone(world)));
    }
    (acknowledged, at_work)
}

async fn backend(world: Arc<World>, number: usize, acknowledged: Arc<Acknowledged>) {
    let busy = world.dice.chance(0.4);
    for _ in 0..3 + world.dice.below(9) {
        sleep(world.some_millis(if busy { 100 } else { 1_200 })).await;
        // Submissions that share a commit share its fate.
        let at_once = if world.dice.chance(0.3) { 3 } else { 1 };
        let mut submissions = JoinSet::new();
        for _ in 0..at_once {
            let (world, acknowledged) = (Arc::clone(&world), Arc::clone(&acknowledged));
            submissions.spawn(async move { submit(&world, number, &acknowledged).await });
        }
        while submissions.join_next().await.is_some() {}
    }
}

fn correction(world: &World) -> SubmitFeedbackRequest {
    let dice = &world.dice;
    let (input, choice) = (*dice.one_of(&PHRASES), *dice.one_of(&CHOICES));
    let correction = match dice.below(10) {
        0..4 => alias(input, choice),
        4..7 => phrase(input, choice),
        7 => prohibit(input, choice),
        _ => {
            let others: Vec<_> = PHRASES.into_iter().filter(|phrase| *phrase != input).collect();
            let relation = if dice.chance(0.7) {
                SynonymRelation::Equivalent
            } else {
                SynonymRelation::OneWay
            };
            synonyms(input, &others, relation)
        }
    };
    let named = dice.chance(0.85);
    let reporter = Reporter {
        id: if named {
            format!("reporter-{}", dice.below(REPORTERS))
        } else {
            String::new()
        },
        session_id: if dice.chance(0.5) {
            "session".into()
        } else {
            String::new()
        },
        ..Reporter::default()
    };
    SubmitFeedbackRequest {
        request_id: world.new_id().to_string(),
        namespace: (*dice.one_of(&NAMESPACES)).to_owned(),
        reporter: Some(reporter),
        scope: if named && dice.chance(0.15) {
            Scope::User
        } else {
            Scope::Global
        }
        .into(),
        wait: if dice.chance(0.3) {
            Wait::Evaluated
        } else {
            Wait::Recorded
        }
        .into(),
        correction: Some(correction),
        ..SubmitFeedbackRequest::default()
    }
}

/// Submits one correction until it is acknowledged, or gives up; then may retract it.
async fn submit(world: &Arc<World>, number: usize, acknowledged: &Acknowledged) {
    let request = correction(world);
    let gives_up = world.dice.chance(0.2);
    for attempt in 0.. {
        if gives_up && attempt > 1 {
            return;
        }
        let (to_send, id) = (request.clone(), request.request_id.clone());
        let answer = ask(
            world,
            number,
            |replica| async move { replica.submit(to_send).await },
        )
        .await;
        let Some(answer) = answer else {
            sleep(world.some_millis(800)).await;
            continue;
        };
        let feedback = answer.feedback.unwrap_or_default();
        world.trace.note(format_args!(
            "request {id} is acknowledged as {}",
            feedback.feedback_id
        ));
        let before = lock(&acknowledged.stored).insert(id.clone(), feedback.feedback_id.clone());
        if before.is_some_and(|before| before != feedback.feedback_id) {
            world.violation(format!("request {id} is two feedbacks"));
        }
        // Some callers repeat a request although it was answered.
        if world.dice.chance(0.1) {
            continue;
        }
        if world.dice.chance(0.25) {
            retract(world, number, &request, feedback.feedback_id, acknowledged).await;
        }
        return;
    }
}

async fn retract(
    world: &Arc<World>,
    number: usize,
    request: &SubmitFeedbackRequest,
    feedback_id: String,
    acknowledged: &Acknowledged,
) {
    sleep(world.some_millis(1_000)).await;
    loop {
        let retraction = RetractFeedbackRequest {
            namespace: request.namespace.clone(),
            feedback_id: feedback_id.clone(),
            reason: "a mistake".into(),
            ..RetractFeedbackRequest::default()
        };
        let answer = ask(world, number, |replica| async move {
            replica.retract(retraction).await
        })
        .await;
        if answer.is_some() {
            world.trace.note(format_args!(
                "feedback {feedback_id} is acknowledged as retracted"
            ));
            lock(&acknowledged.retracted).push(feedback_id);
            return;
        }
        sleep(world.some_millis(800)).await;
    }
}

/// Calls any replica of feedback-svc. `None`: there was no answer, or one that asks for a retry.
async fn ask<T, F>(
    world: &Arc<World>,
    number: usize,
    call: impl FnOnce(Arc<Replica>) -> F + Send + 'static,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Status>> + Send + 'static,
{
    let (from, slot) = (
        Place::Backend(number),
        &world.feedback[world.dice.below(world.feedback.len())],
    );
    let answered = async {
        world.travel(from, slot.place).await?;
        let running: Running<Replica> = slot.running().ok_or(Lost)?;
        let (answer, answered) = oneshot::channel();
        // The process continues whether or not the caller waits.
        tokio::spawn(async move {
            let call = call(Arc::clone(&running.replica));
            if let Ok(done) = World::within(&running, call).await
                && !running.killed.is_cancelled()
            {
                let _ = answer.send(done);
            }
        });
        let done = answered.await.map_err(|_| Lost)?;
        world.travel(slot.place, from).await?;
        Ok::<_, Lost>(done)
    };
    match timeout(PATIENCE, answered).await {
        Ok(Ok(Ok(answer))) => Some(answer),
        Ok(Ok(Err(status))) => {
            if !matches!(status.code(), Code::Unavailable | Code::ResourceExhausted) {
                world.violation(format!("{:?} answers: {status}", slot.place));
            }
            None
        }
        Ok(Err(Lost)) | Err(_) => None,
    }
}

async fn operator(world: Arc<World>) {
    for _ in 0..=world.dice.below(8) {
        sleep(world.some_millis(2_000)).await;
        let slot = &world.learning[world.dice.below(world.learning.len())];
        let Some(running) = slot.running() else { continue };
        let action = OperatorAction::draw(&world);
        let line = format!("{action:?}");
        // It may fail and yet have been done: what counts is that everything stays sound.
        let work = action.done(running.replica.capabilities().clone());
        let done = timeout(Duration::from_secs(20), World::within(&running, work)).await;
        world
            .trace
            .note(format_args!("an operator at {:?}: {line}: {done:?}", slot.place));
    }
}

/// What an operator does.
#[derive(Debug)]
enum OperatorAction {
    Put(Put),
    Delete(Delete),
    Revert(Revert),
    Review(Box<Review>),
    Policy(PolicyUpdate),
}

impl OperatorAction {
    fn draw(world: &World) -> Self {
        let dice = &world.dice;
        let is_entity = dice.chance(0.5);
        let namespace = Namespace::parse(NAMESPACES[dice.below(2)]).expect("a namespace");
        let (phrase, choice) = (PHRASES[dice.below(3)], CHOICES[dice.below(3)]);
        let correction = if is_entity {
            Correction::parse_entity(phrase, "", choice)
        } else {
            Correction::parse_phrase_mapping(phrase, choice)
        };
        let proposal = correction
            .expect("a correction")
            .effects(&namespace, None)
            .remove(0);
        let actor = Actor::caller(Caller::parse("console").expect("a caller"));
        let proposed = world.learning_database.proposed();
        match dice.below(10) {
            0 | 1 => Self::Put(Put {
                key: proposal.key,
                value: proposal.value,
                etag: None,
                reason: None,
                actor,
            }),
            2 | 3 => Self::Delete(Delete {
                key: proposal.key,
                etag: None,
                reason: None,
                actor,
            }),
            4 => Self::Revert(Revert {
                namespace,
                revision: Revision(1 + i64::try_from(dice.below(5)).expect("small")),
                actor,
                reason: "wrong".into(),
            }),
            5..8 if !proposed.is_empty() => {
                let write = &proposed[dice.below(proposed.len())];
                Self::Review(Box::new(Review {
                    namespace: write.key.namespace.clone(),
                    candidate: write.candidate.id,
                    etag: None,
                    actor,
                    operation: None,
                    verdict: if dice.chance(0.6) {
                        Verdict::Approve {
                            edited: None,
                            reason: None,
                            accept_redacted: false,
                        }
                    } else {
                        Verdict::Reject {
                            reason: "wrong".into(),
                        }
                    },
                }))
            }
            _ => {
                let threshold = 1 + u32::try_from(dice.below(3)).expect("small");
                let room = if dice.chance(0.3) { 2 } else { 1_000 };
                Self::Policy(PolicyUpdate {
                    key: PolicyKey::of(&proposal.key),
                    etag: None,
                    actor,
                    reason: None,
                    change: Box::new(move |policy| {
                        policy.votes.threshold = threshold;
                        policy.max_resources = room;
                    }),
                })
            }
        }
    }

    async fn done(self, app: CoreCapabilities) -> Result<(), Error> {
        match self {
            Self::Put(put) => app.resources.put(&put).await.map(|_| ()),
            Self::Delete(delete) => app.resources.delete(&delete).await.map(|_| ()),
            Self::Revert(revert) => app.log.revert(&revert, &Access::open()).await.map(|_| ()),
            Self::Review(review) => app.decisions.review(&review, &Access::open()).await.map(|_| ()),
            Self::Policy(update) => app.policies.update_policy(&update).await.map(|_| ()),
        }
    }
}
