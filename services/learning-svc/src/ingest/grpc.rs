//! The ingest service: batches in, batches of results out, in order; and what has become of feedbacks.

use std::{pin::Pin, sync::Arc};

use emend_base::{
    Error,
    error::{PreconditionViolation, to_item_status},
    traceparent::Traceparent,
};
use emend_core::{
    AcceptOrder, Caller, EventId, FeedbackId, InstallationId, Invalid, Kind, Namespace, NormalizedKey,
    ReporterId, ResourceValue, Roles, Rule, Scope, Violations, correction::scope_user,
    violation::bounded_text, voter::VoterKey,
};
use emend_proto::learning::v1::{self as pb, event, event_result, ingest_service_server::IngestService};
use emend_serve::auth::{Access, Call};
use emend_wire::parse;
use futures::{Stream, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    grpc::parse::REASON,
    ingest::{
        event::{ErasedVoter, FeedbackChange, IngestEvent, Recorded},
        queue::IngestQueue,
    },
    roles::{admit, open},
    standings::{Standings, grpc as wire},
};

/// Events in one batch at most.
const BATCH: usize = 256;
/// Batches of one stream in flight at once; beyond that, back-pressure holds the sender.
const IN_FLIGHT: usize = 8;
/// Streams at once: one for each replica of feedback-svc and, for a while, those of replaced replicas.
const SENDERS: usize = 256;

/// Takes events from feedback-svc.
#[derive(Debug, Clone)]
pub struct IngestHandler {
    queue: IngestQueue,
    standings: Standings,
    installation: InstallationId,
    /// When cancelled, streams end after the batches in flight.
    soft: CancellationToken,
    room: Arc<Semaphore>,
}

impl IngestHandler {
    /// Events go to `queue`, which applies them, if they are meant for `installation`; streams end when `soft` is
    /// cancelled.
    pub fn new(
        queue: IngestQueue,
        standings: Standings,
        installation: InstallationId,
        soft: CancellationToken,
    ) -> Self {
        Self {
            queue,
            standings,
            installation,
            soft,
            room: Arc::new(Semaphore::new(SENDERS)),
        }
    }

    /// Applies one batch of a stream, within the sender's rights.
    pub(crate) async fn batch(
        self,
        access: Access,
        request: Result<pb::IngestRequest, Status>,
    ) -> Result<pb::IngestResponse, Status> {
        let pb::IngestRequest {
            events,
            installation_id,
        } = request?;
        // A sender that is no longer known, or no ingester any more, is refused as a whole: its events stay queued and
        // are sent again.
        let access = access.as_of_now()?;
        self.check_installation(&installation_id)?;
        if events.is_empty() || events.len() > BATCH {
            let found = events.len();
            return Err(
                Error::invalid("events", format!("must have 1 to {BATCH} entries, has {found}")).into(),
            );
        }
        let ids: Vec<String> = events.iter().map(|event| event.event_id.clone()).collect();
        let (mut results, mut valid, mut places) = (Vec::with_capacity(ids.len()), Vec::new(), Vec::new());
        for (place, event) in events.into_iter().enumerate() {
            let admitted = admit(&access, &event).and_then(|()| Ok(self::event(&event)?));
            match admitted {
                Ok(event) => {
                    valid.push(event);
                    places.push(place);
                    results.push(None);
                }
                Err(refused) => results.push(Some(Err(refused))),
            }
        }
        for (place, result) in places.into_iter().zip(self.queue.submit(valid).await) {
            results[place] = Some(result);
        }
        let results = ids
            .into_iter()
            .zip(results)
            .map(|(event_id, result)| pb::EventResult {
                event_id,
                result: Some(match result {
                    Some(Ok(outcome)) => event_result::Result::Outcome(outcome),
                    Some(Err(error)) => event_result::Result::Error(to_item_status(&error)),
                    None => event_result::Result::Error(to_item_status(&Error::internal(
                        "an event has no result",
                    ))),
                }),
            });
        Ok(pb::IngestResponse {
            results: results.collect(),
            installation_id: self.installation.to_string(),
        })
    }

    /// A sender that knows an installation delivers to no other.
    fn check_installation(&self, meant: &str) -> Result<(), Error> {
        if meant.is_empty() {
            return Ok(());
        }
        let id =
            InstallationId::parse(meant).map_err(|invalid| Error::invalid("installation_id", invalid.0))?;
        if id == self.installation {
            return Ok(());
        }
        Err(Error::FailedPrecondition {
            reason: "INSTALLATION_MISMATCH",
            message: format!(
                "the call is meant for installation {id}, this is {}",
                self.installation
            ),
            violations: vec![PreconditionViolation {
                kind: "INSTALLATION".into(),
                subject: self.installation.to_string(),
                description: "the installation that answers".to_owned(),
            }],
        })
    }
}

#[tonic::async_trait]
impl IngestService for IngestHandler {
    type IngestStream = Pin<Box<dyn Stream<Item = Result<pb::IngestResponse, Status>> + Send>>;

    async fn ingest(
        &self,
        request: Request<Streaming<pb::IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let place = Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            Error::unavailable(
                "TOO_MANY_SENDERS",
                "this replica has its maximum number of senders; try another",
            )
        })?;
        let (ingest, access) = (self.clone(), Access::of(&request));
        let batches = request
            .into_inner()
            .take_until(self.soft.clone().cancelled_owned());
        let answers = batches
            .map(move |batch| ingest.clone().batch(access.clone(), batch))
            .buffered(IN_FLIGHT)
            .map(move |answer| {
                // Released when the stream is dropped.
                let _held: &OwnedSemaphorePermit = &place;
                answer
            });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_standings(
        &self,
        request: Request<pb::GetStandingsRequest>,
    ) -> Result<Response<pb::GetStandingsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let (namespace, feedback) = wire::asked(&message).map_err(Error::from)?;
        self.check_installation(&message.installation_id)?;
        let found = self.standings.read(&namespace, &feedback).await?;
        Ok(Response::new(wire::told(&found)))
    }
}

/// A valid event, or all its violations.
pub(crate) fn event(message: &pb::Event) -> Result<IngestEvent, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("event_id", EventId::parse(&message.event_id));
    let feedback = match message.event {
        Some(event::Event::ReporterRedacted(_) | event::Event::Mined(_) | event::Event::Unanswered(_)) => {
            Some(FeedbackId::none())
        }
        _ => violations.check("feedback_id", FeedbackId::parse(&message.feedback_id)),
    };
    let namespace = violations.check("namespace", Namespace::parse(&message.namespace));
    if message.accept_order < 1 {
        violations.add(
            "accept_order",
            format!("must be 1 or more, is {}", message.accept_order),
        );
    }
    let change = match &message.event {
        None => {
            violations.add(
                "event",
                "is required: one of recorded, retracted, redacted, reporter_redacted, mined, unanswered",
            );
            None
        }
        Some(event::Event::Unanswered(query)) => violations.part("unanswered", unanswered(query)),
        Some(event::Event::Mined(mined)) => violations.part("mined", self::mined(mined, namespace.as_ref())),
        Some(event::Event::ReporterRedacted(redacted)) => {
            let caller = violations.check("reporter_redacted.caller", Caller::parse(&redacted.caller));
            let reporter = violations.check(
                "reporter_redacted.reporter_id",
                ReporterId::parse(&redacted.reporter_id),
            );
            (|| {
                Some(FeedbackChange::ReporterErased {
                    caller: caller?,
                    reporter: reporter?,
                })
            })()
        }
        Some(event::Event::Recorded(recorded)) => {
            let recorded = self::recorded(recorded, namespace.as_ref());
            violations
                .part("recorded", recorded)
                .map(|recorded| FeedbackChange::Recorded(Box::new(recorded)))
        }
        Some(event::Event::Retracted(retracted)) => {
            let caller = violations.check("retracted.caller", Caller::parse(&retracted.caller));
            let sender = violations.check("retracted.sender_roles", roles(&retracted.sender_roles));
            let at = time(
                &mut violations,
                "retracted.retracted_at",
                retracted.retracted_at.as_ref(),
            );
            (|| {
                Some(FeedbackChange::Retracted {
                    caller: caller?,
                    at: at?,
                    sender: sender?,
                })
            })()
        }
        Some(event::Event::Redacted(redacted)) => {
            let caller = violations.check("redacted.caller", Caller::parse(&redacted.caller));
            let at = time(
                &mut violations,
                "redacted.redacted_at",
                redacted.redacted_at.as_ref(),
            );
            (|| {
                Some(FeedbackChange::Redacted {
                    caller: caller?,
                    at: at?,
                })
            })()
        }
    };
    let parsed = (|| {
        Some(IngestEvent {
            id: id?,
            feedback: feedback?,
            namespace: namespace?,
            accept_order: AcceptOrder(message.accept_order),
            // As W3C Trace Context requires, an invalid value is ignored.
            traceparent: Traceparent::parse(&message.traceparent)
                .map(|traceparent| traceparent.as_str().to_owned())
                .unwrap_or_default(),
            applied_under: None,
            change: change?,
        })
    })();
    violations.finish(parsed)
}

fn recorded(message: &pb::FeedbackRecorded, namespace: Option<&Namespace>) -> Result<Recorded, Violations> {
    let mut violations = Violations::new();
    let reporter = violations.part("reporter", parse::reporter(message.reporter.as_ref()));
    let caller = violations.check("caller", Caller::parse(&message.caller));
    let query_id = violations.check("query_id", bounded_text(&message.query_id, 0, 128));
    let reason = violations.check("reason", parse::free_text(&message.reason, REASON));
    let context = violations.part("", parse::context(&message.context));
    let scope = violations.check("scope", parse::scope(message.scope));
    let erased = match &message.erased_voter {
        None => Some(None),
        Some(voter) => {
            let key = violations.check("erased_voter.key", uuid(&voter.key));
            key.map(|key| {
                Some(ErasedVoter {
                    key: VoterKey(key),
                    identified: voter.identified,
                    own: scope == Some(Scope::User),
                })
            })
        }
    };
    let user = match (scope, &reporter) {
        // What an erased reporter said for itself alone is for nobody any more.
        _ if message.erased_voter.is_some() => Some(None),
        (Some(scope), Some(reporter)) => {
            violations.check("reporter.id", scope_user(scope, reporter.id.as_ref()))
        }
        _ => None,
    };
    let correction = violations.part("correction", parse::correction(message.correction.as_ref()));
    if let (Some(scope), Some(correction)) = (scope, &correction) {
        violations.check("scope", correction.form().check_scope(scope));
    }
    if correction
        .as_ref()
        .is_some_and(|correction| correction.form().kind().is_none())
    {
        violations.add(
            "correction",
            "must teach something: a rating of a search answer has no effect",
        );
    }
    let sender = violations.check("sender_roles", roles(&message.sender_roles));
    let received_at = time(&mut violations, "received_at", message.received_at.as_ref());
    let parsed = (|| {
        Some(Recorded {
            reporter: reporter?,
            caller: caller?,
            query_id: query_id?,
            reason: reason?.unwrap_or_default(),
            context: context?,
            effects: correction?.effects(namespace?, user?.as_ref()),
            sender: sender?,
            received_at: received_at?,
            erased: erased?,
        })
    })();
    // Without a namespace there is no proposal; the event itself reports that the namespace is missing.
    match parsed {
        None if namespace.is_none() => Err(violations),
        parsed => violations.finish(parsed),
    }
}

fn unanswered(message: &pb::QueryUnanswered) -> Result<FeedbackChange, Violations> {
    let mut violations = Violations::new();
    let phrase = violations.check("query_text", NormalizedKey::parse(&message.query_text));
    let display = violations.check("query_text", ResourceValue::parse_display(&message.query_text));
    at_least(
        &mut violations,
        &[
            ("query_count", message.query_count, 1),
            ("session_count", message.session_count, 1),
            ("click_count", message.click_count, 0),
        ],
    );
    let parsed = phrase
        .zip(display)
        .map(|(phrase, display)| FeedbackChange::Unanswered {
            phrase,
            display,
            evidence: in_vain(message.query_count, message.session_count, message.click_count),
        });
    violations.finish(parsed)
}

/// What is said of queries that found nothing.
fn in_vain(queries: i32, sessions: i32, clicks: i32) -> String {
    format!(
        "searched {queries} times in {sessions} sessions and found nothing; in {clicks} of them something else was \
         searched for then, and clicked"
    )
}

fn at_least(violations: &mut Violations, counts: &[(&str, i32, i32)]) {
    for &(field, count, least) in counts {
        if count < least {
            violations.add(field, format!("must be {least} or more, is {count}"));
        }
    }
}

fn mined(message: &pb::CorrectionMined, namespace: Option<&Namespace>) -> Result<FeedbackChange, Violations> {
    let mut violations = Violations::new();
    let correction = violations.part("correction", parse::correction(message.correction.as_ref()));
    let by_votes =
        |kind: Option<Kind>| kind.is_some_and(|kind| matches!(kind.rules().rule, Rule::Votes { .. }));
    if let Some(correction) = &correction
        && !by_votes(correction.form().kind())
    {
        let form = correction.form().name();
        violations.add("correction", format!("must be one that votes decide, is {form}"));
    }
    at_least(&mut violations, &[("session_count", message.session_count, 1)]);
    let reason = match &message.respelling {
        None => format!("what users did in {} sessions", message.session_count),
        Some(respelling) => {
            at_least(
                &mut violations,
                &[
                    ("respelling.query_count", respelling.query_count, 1),
                    ("respelling.click_count", respelling.click_count, 0),
                    (
                        "respelling.clicked_session_count",
                        respelling.clicked_session_count,
                        1,
                    ),
                ],
            );
            format!(
                "{}; it is spelled like a query of which results were clicked in {} sessions",
                in_vain(
                    respelling.query_count,
                    message.session_count,
                    respelling.click_count
                ),
                respelling.clicked_session_count
            )
        }
    };
    let effects = namespace.and_then(|namespace| Some(correction?.effects(namespace, None)));
    // Without a namespace there is no proposal; the event itself reports that the namespace is missing.
    match effects {
        None if namespace.is_none() => Err(violations),
        effects => violations.finish(effects.map(|effects| FeedbackChange::Mined { effects, reason })),
    }
}

fn roles(names: &[String]) -> Result<Roles, Invalid> {
    Roles::parse(names.iter().map(String::as_str))
}

fn uuid(raw: &str) -> Result<uuid::Uuid, Invalid> {
    uuid::Uuid::parse_str(raw).map_err(|_| Invalid::new("must be a UUID"))
}

fn time(
    violations: &mut Violations,
    field: &str,
    message: Option<&prost_types::Timestamp>,
) -> Option<jiff::Timestamp> {
    match message {
        None => {
            violations.add(field, "is required");
            None
        }
        Some(message) => violations.check(field, parse::timestamp(message)),
    }
}

#[cfg(test)]
mod tests {
    use emend_core::correction::Form;
    use emend_proto::{
        common::v1::{self as common, correction::Correction},
        learning::v1 as pb,
    };

    use super::{FeedbackChange, event};

    fn recorded(correction: Correction) -> pb::Event {
        let recorded = pb::FeedbackRecorded {
            reporter: Some(common::Reporter {
                id: "ann".into(),
                ..common::Reporter::default()
            }),
            caller: "backend".into(),
            scope: common::Scope::User.into(),
            correction: Some(common::Correction {
                correction: Some(correction),
            }),
            received_at: Some(prost_types::Timestamp::default()),
            ..pb::FeedbackRecorded::default()
        };
        pb::Event {
            event_id: uuid::Uuid::from_u128(1).to_string(),
            feedback_id: uuid::Uuid::from_u128(2).to_string(),
            namespace: "research".into(),
            accept_order: 1,
            event: Some(pb::event::Event::Recorded(recorded)),
            ..pb::Event::default()
        }
    }

    #[test]
    fn what_is_decided_for_everybody_is_refused_with_scope_user() {
        let rating = Correction::Rating(common::Rating {
            target: "INTERPRET".into(),
            value: "GOOD".into(),
            target_id: "q-1".into(),
            input_text: "in".into(),
            output_text: "out".into(),
            ..common::Rating::default()
        });
        let block = Correction::DomainBlock(common::DomainBlock {
            pattern: "example.org".into(),
            ..common::DomainBlock::default()
        });
        for (correction, form) in [(rating, Form::Rating), (block, Form::DomainBlock)] {
            let refused = event(&recorded(correction)).unwrap_err();
            let message = format!(
                "recorded.scope: must be GLOBAL with {}: it is decided for everybody",
                form.name()
            );
            assert!(refused.to_string().contains(&message), "{refused}");
        }
    }

    #[test]
    fn what_teaches_nothing_is_refused() {
        let value = common::SearchRatingValue::Down.into();
        let mut event = recorded(Correction::SearchRating(common::SearchRating { value }));
        if let Some(pb::event::Event::Recorded(recorded)) = &mut event.event {
            recorded.scope = common::Scope::Global.into();
        }
        let refused = self::event(&event).unwrap_err();
        let message = "recorded.correction: must teach something: a rating of a search answer has no effect";
        assert!(refused.to_string().contains(message), "{refused}");
    }

    #[test]
    fn what_users_did_is_told_with_its_counts_and_what_is_no_count_is_refused() {
        let counts = |query_count, session_count, click_count, clicked_session_count| pb::CorrectionMined {
            correction: Some(common::Correction {
                correction: Some(Correction::Term(common::TermCorrection {
                    term: "lightning".into(),
                    equivalents: vec!["lightening".into()],
                    relation: common::SynonymRelation::OneWay.into(),
                })),
            }),
            session_count,
            respelling: Some(pb::Respelling {
                query_count,
                click_count,
                clicked_session_count,
            }),
        };
        let parsed = |mined| {
            event(&pb::Event {
                feedback_id: String::new(),
                event: Some(pb::event::Event::Mined(mined)),
                ..recorded(Correction::PhraseMapping(common::PhraseMapping::default()))
            })
        };
        let reason = |mined| match parsed(mined).unwrap().change {
            FeedbackChange::Mined { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            reason(counts(7, 4, 0, 12)),
            "searched 7 times in 4 sessions and found nothing; in 0 of them something else was searched for then, and \
             clicked; it is spelled like a query of which results were clicked in 12 sessions"
        );
        let reworded = pb::CorrectionMined {
            respelling: None,
            ..counts(1, 4, 0, 1)
        };
        assert_eq!(reason(reworded), "what users did in 4 sessions");
        for (mined, field) in [
            (
                counts(0, 4, 0, 1),
                "mined.respelling.query_count: must be 1 or more, is 0",
            ),
            (counts(1, 0, 0, 1), "mined.session_count: must be 1 or more, is 0"),
            (
                counts(1, 4, -1, 1),
                "mined.respelling.click_count: must be 0 or more, is -1",
            ),
            (
                counts(1, 4, 0, 0),
                "mined.respelling.clicked_session_count: must be 1 or more, is 0",
            ),
        ] {
            let refused = parsed(mined).unwrap_err().to_string();
            assert!(refused.contains(field), "{refused}");
        }
    }
}
