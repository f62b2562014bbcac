//! Backends and an operator on a bad network. They submit, retract and put through the clients that users have, repeat
//! each call until it is acknowledged, and know in the end what must have become of it all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_client::{FeedbackClient, Submission};
use emend_core::{FeedbackId, Namespace, RequestId};
use emend_proto::{
    common::v1::ResourceKind,
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{PutResourceRequest, resource_service_client::ResourceServiceClient},
};
use futures::future::join_all;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use crate::{
    audit::ledger::Asked,
    harness::{
        Dice, Feedback, Learning, NAMESPACE, eventually, phrase, says,
        says::{alias_key, entity_value, maps_to},
        wait::{PATIENCE, holds},
        wary,
    },
};

/// The number of different phrases.
const PHRASES: usize = 12;
const CHOICE: &str = "create_csa";
/// The number of supporters that a choice needs.
const THRESHOLD: i64 = 3;
/// The timeout after which a call is repeated.
const CALL: Duration = Duration::from_secs(4);
/// Pause between two calls. It keeps small what has to be counted in the end.
const PAUSE: Duration = Duration::from_millis(15);

/// Running backends and operator.
#[derive(Debug)]
pub struct Backends {
    stop: CancellationToken,
    acknowledged: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<(Vec<AcknowledgedFeedback>, Asked)>>,
    operator: JoinHandle<BTreeMap<String, String>>,
}

/// A submission that was acknowledged.
#[derive(Debug)]
struct AcknowledgedFeedback {
    feedback_id: FeedbackId,
    phrase: usize,
    retracted: bool,
}

impl Backends {
    /// Starts `count` backends at the feedback-svc and an operator at the learning-svc at these addresses.
    pub fn start(
        count: usize,
        feedback: impl std::fmt::Display,
        learning: impl std::fmt::Display,
        seed: u64,
    ) -> Self {
        let stop = CancellationToken::new();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let writers = (0..count).map(|number| {
            let backend = Backend {
                number,
                client: wary::backend(&feedback).deadline(CALL),
                dice: Dice::seeded(seed.wrapping_add(number as u64)),
                acknowledged: Arc::clone(&acknowledged),
                asked: Asked::default(),
            };
            tokio::spawn(backend.work(stop.clone()))
        });
        let operator = operate(
            ResourceServiceClient::new(wary::channel(&learning)),
            stop.clone(),
            Arc::clone(&acknowledged),
        );
        Self {
            writers: writers.collect(),
            operator: tokio::spawn(operator),
            stop,
            acknowledged,
        }
    }

    /// Waits until `count` more calls are acknowledged.
    pub async fn go_on_by(&self, count: usize) {
        let goal = self.acknowledged.load(Ordering::SeqCst) + count;
        eventually("the load goes on", || async {
            let acknowledged = self.acknowledged.load(Ordering::SeqCst);
            holds(acknowledged >= goal, || format!("{acknowledged} of {goal}"))
        })
        .await;
    }

    /// Stops them and asserts that everything acknowledged has exactly one effect. Answers with the head, and with what
    /// was asked, for the ledger audit.
    ///
    /// # Panics
    /// If it has not.
    pub async fn end_with_one_effect_each(self, feedback: &Feedback, learning: &Learning) -> (i64, Asked) {
        self.stop.cancel();
        let (mut acknowledged, mut asked): (Vec<AcknowledgedFeedback>, Asked) = Default::default();
        for backend in join_all(self.writers).await {
            let (own, of_it) = backend.expect("a backend ends");
            acknowledged.extend(own);
            asked.merge(of_it);
        }
        let set = self.operator.await.expect("the operator ends");

        let stored = feedback.all_delivered(NAMESPACE).await;
        let stored_ids: BTreeSet<String> = stored.iter().map(|stored| stored.feedback_id.clone()).collect();
        let acknowledged_ids: BTreeSet<String> = acknowledged
            .iter()
            .map(|acknowledged| acknowledged.feedback_id.to_string())
            .collect();
        assert_eq!(
            stored_ids, acknowledged_ids,
            "what was acknowledged is stored, and nothing else"
        );
        assert_eq!(stored.len(), acknowledged.len(), "once each");

        let mut live: BTreeMap<usize, i64> = BTreeMap::new();
        for AcknowledgedFeedback {
            phrase, retracted, ..
        } in &acknowledged
        {
            *live.entry(*phrase).or_default() += i64::from(!*retracted);
        }
        let mut expected: BTreeMap<(i32, String), String> = set
            .into_iter()
            .map(|(alias, entity)| ((ResourceKind::EntityAlias.into(), alias), entity))
            .collect();
        for (phrase, count) in live {
            let candidate = learning.candidate_for(&name(phrase), CHOICE).await;
            assert_eq!(
                (candidate.occurrence_count, candidate.reporter_count),
                (count, count),
                "counted once each: {phrase}"
            );
            if count >= THRESHOLD {
                expected.insert(
                    (ResourceKind::InvocationPhrase.into(), name(phrase)),
                    CHOICE.into(),
                );
            }
        }
        let learned: BTreeMap<(i32, String), String> = learning
            .resources_in(NAMESPACE)
            .await
            .iter()
            .map(|resource| {
                let key = resource.key.as_ref().expect("a resource has a key");
                ((key.kind, key.key.clone()), maps_to(resource.value.as_ref()))
            })
            .collect();
        assert_eq!(learned, expected, "exactly what follows from it is learned");

        let head = learning.head().await;
        let log: Vec<i64> = learning
            .revisions()
            .await
            .iter()
            .map(|revision| revision.revision)
            .collect();
        assert_eq!(log, (1..=head).rev().collect::<Vec<_>>(), "no gap in the log");
        (head, asked)
    }
}

fn name(phrase: usize) -> String {
    format!("phrase {phrase}")
}

struct Backend {
    number: usize,
    client: FeedbackClient,
    dice: Dice,
    acknowledged: Arc<AtomicUsize>,
    asked: Asked,
}

impl Backend {
    async fn work(mut self, stop: CancellationToken) -> (Vec<AcknowledgedFeedback>, Asked) {
        let mut acknowledged: Vec<AcknowledgedFeedback> = Vec::new();
        let mut submitted = 0;
        while !stop.is_cancelled() {
            if self.dice.chance(0.2) && !acknowledged.is_empty() {
                let index = self.dice.below(acknowledged.len());
                let earlier = &mut acknowledged[index];
                self.retract(earlier.feedback_id).await;
                earlier.retracted = true;
            } else {
                let phrase = self.dice.below(PHRASES);
                let feedback_id = self.submit(submitted, phrase).await;
                submitted += 1;
                acknowledged.push(AcknowledgedFeedback {
                    feedback_id,
                    phrase,
                    retracted: false,
                });
            }
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            sleep(PAUSE).await;
        }
        (acknowledged, self.asked)
    }

    /// Submits, each time from a new reporter; safe to repeat because of the request id.
    async fn submit(&mut self, number: usize, of: usize) -> FeedbackId {
        let who = format!("{}-{number}", self.number);
        let reporter = format!("reporter-{who}");
        let submission = Submission::phrase_mapping(NAMESPACE, name(of), CHOICE)
            .reporter(&reporter)
            .request_id(&RequestId::parse(&who).expect("a request id"));
        // The same submission as a request, for the audit.
        let request = SubmitFeedbackRequest {
            request_id: who,
            ..says(&reporter, phrase(&name(of), CHOICE))
        };
        self.asked.ask(&request);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.client.submit(submission.clone()).await {
                Ok(recorded) => {
                    self.asked
                        .acknowledge(&request, &recorded.feedback_id.to_string());
                    return recorded.feedback_id;
                }
                Err(error) => assert!(Instant::now() < deadline, "never acknowledged: {error}"),
            }
            sleep(PAUSE).await;
        }
    }

    async fn retract(&mut self, feedback_id: FeedbackId) {
        let id = feedback_id.to_string();
        self.asked.ask_to_retract(&id);
        let namespace = Namespace::parse(NAMESPACE).expect("a namespace");
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self
            .client
            .retract(&namespace, feedback_id, "said in error", false)
            .await
        {
            assert!(Instant::now() < deadline, "never acknowledged: {error}");
            sleep(PAUSE).await;
        }
        self.asked.acknowledge_retraction(&id);
    }
}

/// Sets one name after another. Each name gets a single value: an attempt that was given up may still be in flight and
/// arrive after later ones.
async fn operate(
    client: ResourceServiceClient<Channel>,
    stop: CancellationToken,
    acknowledged: Arc<AtomicUsize>,
) -> BTreeMap<String, String> {
    let mut set = BTreeMap::new();
    for number in 0.. {
        if stop.is_cancelled() {
            break;
        }
        let (alias, entity) = (format!("alias {number}"), format!("entity-{number}"));
        let request = PutResourceRequest {
            key: Some(alias_key(&alias)),
            value: Some(entity_value(&entity)),
            reason: "an operator's decision".into(),
            ..PutResourceRequest::default()
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let put = timeout(CALL, client.clone().put_resource(request.clone())).await;
            if matches!(put, Ok(Ok(_))) {
                break;
            }
            assert!(Instant::now() < deadline, "never acknowledged: {put:?}");
            sleep(PAUSE).await;
        }
        set.insert(alias, entity);
        acknowledged.fetch_add(1, Ordering::SeqCst);
        sleep(PAUSE * 3).await;
    }
    set
}
