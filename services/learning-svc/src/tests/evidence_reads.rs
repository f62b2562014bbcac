//! What was done to the evidence graph, and what reviews came to.

use emend_core::{CandidateId, Correction, DomainRule, EdgeRelation, Key, Kind, evidence::EvidenceId};
use emend_proto::{
    common::v1::OutcomeState,
    learning::v1::{self as pb, export_materials_response::Line as PbLine},
};
use futures::TryStreamExt as _;
use learning_store::evidence::{
    EventFilter, EventPosition, EventRecord, EvidenceAction, Period, ReviewFilter,
};

use crate::{
    capabilities::Capabilities,
    decisions::review::Verdict,
    evidence::{grpc::reads, stats::ReviewStats},
    export_slots::ExportSlots,
    ingest::event::{FeedbackChange, IngestEvent},
    resources::write::Put,
    tests::{
        erasure::assert_audited,
        evidence::{correction, support, upsert},
        on_both_databases,
        votes::state,
        world::{World, approval, assert_sound, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    every_action_leaves_an_event_also_where_it_had_no_effect,
    what_is_done_to_a_correction_carries_its_task,
    events_are_found_by_target_task_caller_and_time_in_pages,
    samples_and_figures_follow_the_rulings_in_force,
    of_two_rulings_that_say_the_same_the_newer_one_is_in_force,
    erased_reasons_and_reporters_are_returned_nowhere,
);

fn all_events() -> EventFilter {
    EventFilter {
        namespace: namespace(),
        target: None,
        element: None,
        task: None,
        caller: None,
        period: Period::default(),
    }
}

/// All events, the newest first, read in pages of two.
async fn events(app: &Capabilities, filter: &EventFilter) -> Vec<EventRecord> {
    let mut all = Vec::new();
    let mut before: Option<EventPosition> = None;
    loop {
        let (page, more) = app.evidence.events(filter, before, 2).await.unwrap();
        before = page.last().map(|(position, _)| *position).or(before);
        all.extend(page.into_iter().map(|(_, event)| event));
        if !more {
            return all;
        }
    }
}

/// What events say, the oldest first: action, before, after, proposed.
fn told(events: &[EventRecord]) -> Vec<(EvidenceAction, &str, &str, &str)> {
    let told = events.iter().rev();
    told.map(|event| (event.action, &*event.before, &*event.after, &*event.proposed))
        .collect()
}

pub(super) fn all_reviews() -> ReviewFilter {
    ReviewFilter {
        namespace: namespace(),
        task: None,
        predicted: None,
        correct: Vec::new(),
        period: Period::default(),
    }
}

async fn stats(app: &Capabilities) -> ReviewStats {
    app.evidence.review_stats(&all_reviews()).await.unwrap()
}

async fn samples(app: &Capabilities, filter: ReviewFilter) -> Vec<pb::CorrectionSample> {
    let slot = ExportSlots::default().take().unwrap();
    let export = app.evidence.export_corrections(filter, slot).await.unwrap();
    let pages: Vec<Vec<_>> = export.pages().try_collect().await.unwrap();
    let rendered = pages.into_iter().flatten();
    rendered
        .filter_map(|sample| reads::sample(sample, 20)?.sample)
        .collect()
}

pub(super) async fn materials(app: &Capabilities, task: &str) -> Vec<PbLine> {
    let slot = ExportSlots::default().take().unwrap();
    let task = EvidenceId::parse(task).unwrap();
    let export = app
        .evidence
        .export_materials(&namespace(), &task, false, slot)
        .await
        .unwrap();
    let pages: Vec<Vec<_>> = export.pages().try_collect().await.unwrap();
    assert!(
        pages.iter().all(|page| page.len() <= 64),
        "a page is bounded, however large the task is"
    );
    let lines = pages.into_iter().flatten();
    lines.filter_map(|line| reads::line(line).line).collect()
}

/// An event whose effects belong to a task.
fn in_task(mut event: IngestEvent, task: &str) -> IngestEvent {
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    for effect in &mut recorded.effects {
        effect.task = Some(task.to_owned());
    }
    event
}

/// The same by somebody who is not entitled.
fn by_a_reporter(mut event: IngestEvent) -> IngestEvent {
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    recorded.sender = emend_core::Roles::parse(["reporter"].into_iter()).unwrap();
    event
}

pub(super) fn edge_is(world: &World, edge: &str, relation: EdgeRelation) -> IngestEvent {
    correction(world, &Correction::parse_edge(edge, Ok(relation), "").unwrap())
}

fn domain(world: &World, rule: DomainRule, pattern: &str) -> IngestEvent {
    correction(world, &Correction::parse_domain(pattern, Ok(rule), "").unwrap())
}

fn candidate_of(outcome: &emend_proto::common::v1::Outcome) -> CandidateId {
    CandidateId::parse(&outcome.candidate_id).unwrap()
}

async fn every_action_leaves_an_event_also_where_it_had_no_effect(world: &World) {
    use EvidenceAction::{Corrected, Rejected, Retracted, Set};
    let app = world.instance().await;
    let clear = domain(world, DomainRule::Clear, "a.example");
    assert_eq!(state(&one(&app, &clear).await), OutcomeState::NoEffect);
    let block = domain(world, DomainRule::Block, "a.example");
    one(&app, &block).await;
    let waits = by_a_reporter(domain(world, DomainRule::Unblock(None), "a.example"));
    let outcome = one(&app, &waits).await;
    assert_eq!(state(&outcome), OutcomeState::AwaitingReview);
    review(&app, candidate_of(&outcome), None, rejection())
        .await
        .unwrap();
    // Superseded: what it said is in force no more.
    one(&app, &domain(world, DomainRule::Block, "a.example")).await;
    one(&app, &world.retraction_by_reviewer(&block)).await;
    let put = Put {
        key: emend_core::ResourceKey::parse("fund-admin", Some(Kind::DomainRule), "a.example", "human", "")
            .unwrap(),
        value: emend_core::ResourceValue::new(
            "low",
            emend_core::Learned::DomainRule(emend_core::evidence::DomainRuleValue {
                rule: DomainRule::parse("low").unwrap(),
                cause: None,
            }),
        ),
        etag: None,
        reason: Some("policy".to_owned()),
        actor: operator(),
    };
    app.resources.put(&put).await.unwrap();
    let all = events(&app, &all_events()).await;
    assert_eq!(
        told(&all),
        [
            (Corrected, "", "", "clear"),
            (Corrected, "", "block", "block"),
            (Corrected, "block", "block", "unblock"),
            (Rejected, "block", "block", ""),
            (Corrected, "block", "block", "block"),
            (Retracted, "block", "block", ""),
            (Set, "block", "low", "low"),
        ]
    );
    let newest = &all[0];
    assert_eq!((newest.reason.as_str(), newest.feedback.as_str()), ("policy", ""));
    assert_eq!(newest.actor, operator());
    assert_eq!(all[6].reason, "because", "what the reporter said");
    assert_eq!(all[1].reason, "", "of a retraction nobody said why");
    assert_eq!(all[6].revision.0, 0, "nothing changed");
    assert!(all[5].revision.0 > 0);
}

async fn what_is_done_to_a_correction_carries_its_task(world: &World) {
    use EvidenceAction::{Approved, Arrived, Corrected, Rejected, Retracted};
    let app = world.instance().await;
    let early = in_task(edge_is(world, "e1", EdgeRelation::Refutes), "t7");
    one(&app, &early).await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    one(&app, &world.retraction_by_reviewer(&early)).await;
    let waits = |relation| by_a_reporter(in_task(edge_is(world, "e1", relation), "t7"));
    let approved = one(&app, &waits(EdgeRelation::Neutral)).await;
    review(&app, candidate_of(&approved), None, approval())
        .await
        .unwrap();
    let edited = one(&app, &waits(EdgeRelation::Supports)).await;
    let verdict = Verdict::Approve {
        edited: Some(emend_core::ResourceValue::new(
            "refutes",
            emend_core::Learned::EdgeLabel(Some(emend_core::kinds::EdgeLabel::parse("refutes").unwrap())),
        )),
        reason: None,
        accept_redacted: false,
    };
    review(&app, candidate_of(&edited), None, verdict).await.unwrap();
    let rejected = one(&app, &waits(EdgeRelation::Neutral)).await;
    review(&app, candidate_of(&rejected), None, rejection())
        .await
        .unwrap();
    // Recorded and retracted in one transaction.
    let both = in_task(edge_is(world, "e1", EdgeRelation::Neutral), "t8");
    for result in app
        .ingest
        .apply(&[both.clone(), world.retraction_by_reviewer(&both)])
        .await
    {
        result.unwrap();
    }
    let all = events(&app, &all_events()).await;
    let found: Vec<_> = all
        .iter()
        .rev()
        .map(|event| (event.action, event.task.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (Corrected, "t7"),
            (Arrived, "t7"),
            (Retracted, "t7"),
            (Corrected, "t7"),
            (Approved, "t7"),
            (Corrected, "t7"),
            (Approved, "t7"),
            (Corrected, "t7"),
            (Rejected, "t7"),
            (Corrected, "t8"),
            (Retracted, "t8"),
        ]
    );
    assert!(all.iter().all(|event| !event.candidate.is_empty()), "{all:#?}");
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn events_are_found_by_target_task_caller_and_time_in_pages(world: &World) {
    let app = world.instance().await;
    let start = emend_base::Clock::now(&world.clock);
    for (number, pattern) in ["a.example", "b.example", "a.example", "*.a.example", "a.example"]
        .into_iter()
        .enumerate()
    {
        world.clock.advance(jiff::SignedDuration::from_mins(1));
        let block = domain(world, DomainRule::Block, pattern);
        one(&app, &in_task(block, if number < 3 { "t1" } else { "t2" })).await;
    }
    let count = async |filter: EventFilter| {
        let found = events(&app, &filter).await;
        assert!(
            found.windows(2).all(|pair| pair[0].event > pair[1].event),
            "the newest first, none twice"
        );
        found.len()
    };
    let all = all_events;
    let target = |kind: Kind, key: &str| Some((kind, Key::parse(kind.rules().key, key).unwrap()));
    let at = |minutes: i64| Some(start + jiff::SignedDuration::from_mins(minutes));
    let period = |from, to| Period { from, to };
    let task = |task| Some(EvidenceId::parse(task).unwrap());
    let caller = |caller| Some(emend_core::Caller::parse(caller).unwrap());
    for (filter, expected) in [
        (all(), 5),
        (
            EventFilter {
                target: target(Kind::DomainRule, "A.Example."),
                ..all()
            },
            3,
        ),
        (
            EventFilter {
                target: target(Kind::ClaimState, "a.example"),
                ..all()
            },
            0,
        ),
        (
            EventFilter {
                task: task("t1"),
                ..all()
            },
            3,
        ),
        (
            EventFilter {
                task: task("t1"),
                target: target(Kind::DomainRule, "a.example"),
                ..all()
            },
            2,
        ),
        (
            EventFilter {
                caller: caller("backend"),
                ..all()
            },
            5,
        ),
        (
            EventFilter {
                caller: caller("console"),
                ..all()
            },
            0,
        ),
        (
            EventFilter {
                period: period(at(2), at(4)),
                ..all()
            },
            2,
        ),
        (
            EventFilter {
                period: period(at(2), None),
                caller: caller("backend"),
                ..all()
            },
            4,
        ),
        (
            EventFilter {
                period: period(None, at(3)),
                target: target(Kind::DomainRule, "a.example"),
                ..all()
            },
            1,
        ),
    ] {
        let what = format!("{filter:?}");
        assert_eq!(count(filter).await, expected, "{what}");
    }
}

async fn samples_and_figures_follow_the_rulings_in_force(world: &World) {
    let app = world.instance().await;
    let with = |label| {
        let mut request = support(1, "blog.example.org", "c1", 1, 0.9);
        request.edges[0].nli_label = label;
        request
    };
    upsert(&app, &with(1)).await;
    let figures = |stats: &ReviewStats| (stats.reviewed, stats.corrected);
    let all = || samples(&app, all_reviews());
    assert_eq!(figures(&stats(&app).await), (0, 0));

    // To the same: reviewed, and no sample.
    let same = edge_is(world, "e1", EdgeRelation::Supports);
    one(&app, &same).await;
    assert_eq!(figures(&stats(&app).await), (1, 0));
    assert!(all().await.is_empty());

    // To another: one sample, with the model's own label and confidence.
    let refutes = edge_is(world, "e1", EdgeRelation::Refutes);
    one(&app, &refutes).await;
    let [sample] = &all().await[..] else {
        panic!("one sample")
    };
    assert_eq!(
        (sample.sample_id.as_str(), sample.edge_id.as_str()),
        (refutes.feedback.to_string().as_str(), "e1")
    );
    assert_eq!((sample.predicted_label, sample.correct_label), (1, 2));
    assert_eq!(sample.predicted_confidence, Some(0.9));
    assert_eq!(
        (sample.premise.as_str(), sample.hypothesis.as_str()),
        ("fragment 1", "the claim")
    );
    assert_eq!(
        (
            sample.reason.as_str(),
            sample.reporter.as_str(),
            sample.task_id.as_str()
        ),
        ("because", "ann", "t1")
    );
    assert!(sample.corrected_at.is_some());
    assert_eq!(figures(&stats(&app).await), (1, 1));
    assert!((stats(&app).await.error_rate() - 1.0).abs() < f64::EPSILON);

    // Twice: still one, and still what the model said.
    let neutral = edge_is(world, "e1", EdgeRelation::Neutral);
    one(&app, &neutral).await;
    let found = all().await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].predicted_label, found[0].correct_label), (1, 3));

    // Back to the model's: none. Retracted: as before.
    let back = edge_is(world, "e1", EdgeRelation::Supports);
    one(&app, &back).await;
    assert!(all().await.is_empty());
    one(&app, &world.retraction_by_reviewer(&back)).await;
    assert_eq!(all().await, found);

    // The model is asked again: a person's label stays.
    upsert(&app, &with(2)).await;
    let found = all().await;
    assert_eq!((found[0].predicted_label, found[0].correct_label), (2, 3));

    upsert(&app, &support(2, "blog.example.org", "c1", 1, 0.9)).await;
    one(&app, &edge_is(world, "e2", EdgeRelation::Supports)).await;
    let now = stats(&app).await;
    assert_eq!(figures(&now), (2, 1));
    let pairs: Vec<_> = now
        .pairs
        .iter()
        .map(|pair| (pair.predicted.number(), pair.correct.number(), pair.edges))
        .collect();
    assert_eq!(pairs, [(1, 1, 1), (2, 3, 1)]);
    let of = async |filter: ReviewFilter| {
        let stats = app.evidence.review_stats(&filter).await.unwrap();
        (stats.reviewed, samples(&app, filter).await.len())
    };
    let review_at = jiff::Timestamp::from_microsecond(
        found[0]
            .corrected_at
            .as_ref()
            .map_or(0, |at| at.seconds * 1_000_000 + i64::from(at.nanos) / 1_000),
    )
    .unwrap();
    let later = review_at + jiff::SignedDuration::from_micros(1);
    for (filter, expected) in [
        (
            ReviewFilter {
                task: Some(EvidenceId::parse("t1").unwrap()),
                ..all_reviews()
            },
            (2, 1),
        ),
        (
            ReviewFilter {
                task: Some(EvidenceId::parse("t9").unwrap()),
                ..all_reviews()
            },
            (0, 0),
        ),
        (
            ReviewFilter {
                predicted: Some(EdgeRelation::Supports),
                ..all_reviews()
            },
            (1, 0),
        ),
        (
            ReviewFilter {
                correct: vec![EdgeRelation::Neutral],
                ..all_reviews()
            },
            (1, 1),
        ),
        (
            ReviewFilter {
                period: Period {
                    from: Some(review_at),
                    to: Some(later),
                },
                ..all_reviews()
            },
            (1, 1),
        ),
        (
            ReviewFilter {
                period: Period {
                    from: Some(later),
                    to: None,
                },
                ..all_reviews()
            },
            (1, 0),
        ),
    ] {
        let what = format!("{filter:?}");
        assert_eq!(of(filter).await, expected, "{what}");
    }
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn of_two_rulings_that_say_the_same_the_newer_one_is_in_force(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let [first, second] = [(); 2].map(|()| edge_is(world, "e1", EdgeRelation::Refutes));
    one(&app, &first).await;
    one(&app, &second).await;
    let in_force = async || {
        let found = samples(&app, all_reviews()).await;
        assert_eq!(found.len(), 1);
        found[0].sample_id.clone()
    };
    assert_eq!(in_force().await, second.feedback.to_string());
    assert_audited(world).await;
    one(&app, &world.retraction_by_reviewer(&second)).await;
    assert_eq!(in_force().await, first.feedback.to_string());
    assert_audited(world).await;
}

async fn erased_reasons_and_reporters_are_returned_nowhere(world: &World) {
    let app = world.instance().await;
    upsert(&app, &support(1, "blog.example.org", "c1", 1, 0.9)).await;
    let refutes = edge_is(world, "e1", EdgeRelation::Refutes);
    one(&app, &refutes).await;
    let event = events(&app, &all_events()).await.remove(0);
    assert_eq!(
        (event.actor.caller.as_str(), event.reporter.as_str()),
        ("backend", "ann")
    );
    one(&app, &world.redaction(&refutes)).await;
    let found = samples(&app, all_reviews()).await;
    assert_eq!(
        (found.len(), found[0].reason.as_str(), found[0].reporter.as_str()),
        (1, "", "")
    );
    let event = events(&app, &all_events()).await.remove(0);
    assert_eq!((event.reason.as_str(), event.reporter.as_str()), ("", ""));
    for line in materials(&app, "t1").await {
        if let PbLine::Edge(edge) = line {
            assert!(edge.corrected && edge.review_reason.is_empty());
        }
    }
}
