//! Decisions about domains: the newest effective ruling is in force, whatever arrived when.

use emend_base::Error;
use emend_core::{
    AcceptOrder, CandidateId, Correction, DomainRule, Key, Kind, Learned, ResourceKey, ResourceValue, Roles,
    Status, contest::MAX_CANDIDATES, kinds::HUMAN, resource::ruling_of,
};
use emend_proto::{
    common::v1::{Outcome, OutcomeState},
    learning::v1 as pb,
};
use emend_serve::auth::Access;
use emend_wire::render;
use learning_store::{
    contests::{CandidateFilter, CandidateRecord},
    log::RevisionFilter,
};

use crate::{
    capabilities::Capabilities,
    ingest::event::{FeedbackChange, IngestEvent},
    log::revert::Revert,
    resources::{
        grpc,
        import::{ImportAs, Mode, Row},
        write::{Delete, Put},
    },
    tests::{
        on_both_databases,
        policies::set as set_policy,
        votes::state,
        world::{World, apply, approval, assert_sound, head, namespace, one, operator, review, still},
    },
};

on_both_databases!(
    the_newest_decision_is_in_force_and_a_retraction_brings_back_the_one_before,
    approving_an_older_ruling_leaves_the_newer_one_in_force_and_says_so,
    a_reporter_cannot_take_back_what_a_reviewer_approved,
    a_correction_just_after_an_operators_write_wins,
    a_retraction_counts_with_the_most_right_that_anybody_took_back_with,
    reverting_what_brought_a_ruling_into_force_takes_it_back,
    reverting_another_revision_rules_anew,
    what_waited_while_frozen_is_decided_once_released,
    a_redelivered_ruling_is_one_ruling,
    the_log_says_why_a_ruling_was_made_until_that_is_erased,
    what_is_imported_stays_when_somebody_elses_equal_ruling_is_taken_back,
    however_many_ask_an_entitled_decision_is_never_refused,
    people_do_not_write_to_the_layers_of_the_system,
);

pub(super) const REVIEWER: &str = "reporter,reviewer";
pub(super) const REPORTER: &str = "reporter";

pub(super) fn roles(names: &str) -> Roles {
    Roles::parse(names.split(',')).unwrap()
}

pub(super) fn correction(pattern: &str, rule: &str) -> Correction {
    Correction::parse_domain(pattern, DomainRule::parse(rule), "").unwrap()
}

/// A row of an import.
fn row(pattern: &str, what: &str) -> Row {
    Row {
        line: 1,
        proposal: correction(pattern, what).effects(&namespace(), None).remove(0),
    }
}

/// A decision in one what, by a sender with these roles.
pub(super) fn decision(world: &World, pattern: &str, what: &str, sender: &str) -> IngestEvent {
    let correction = correction(pattern, what);
    let mut event = world.phrase("ann", "replaced below", "x");
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    recorded.effects = correction.effects(&namespace(), None);
    recorded.sender = roles(sender);
    event
}

pub(super) fn retraction(world: &World, recorded: &IngestEvent, by: &str) -> IngestEvent {
    let mut event = world.retraction(recorded);
    let FeedbackChange::Retracted { sender, .. } = &mut event.change else {
        unreachable!("it was retracted")
    };
    *sender = roles(by);
    event
}

fn key(pattern: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::DomainRule), pattern, HUMAN, "").unwrap()
}

fn value(pattern: &str, what: &str) -> ResourceValue {
    ResourceValue::new(pattern, Learned::of(Kind::DomainRule, what.to_owned()).unwrap())
}

fn put(pattern: &str, what: &str) -> Put {
    Put {
        key: key(pattern),
        value: value(pattern, what),
        etag: None,
        reason: None,
        actor: operator(),
    }
}

/// What is in force, as one what.
async fn in_force(app: &Capabilities, pattern: &str) -> Option<String> {
    let contest = key(pattern).contest_id();
    let contents = app.store.contents().await.unwrap();
    let found = contents.resources.iter().find(|(id, ..)| *id == contest);
    found.map(|(_, _, value)| {
        emend_wire::value::decode(value)
            .unwrap()
            .learned
            .maps_to()
            .to_owned()
    })
}

pub(super) fn ruling(event: &IngestEvent) -> CandidateId {
    let FeedbackChange::Recorded(recorded) = &event.change else {
        unreachable!("it was recorded")
    };
    ruling_of(recorded.effects[0].key.contest_id(), event.feedback)
}

async fn record(app: &Capabilities, event: &IngestEvent) -> CandidateRecord {
    app.decisions
        .candidate(&namespace(), ruling(event))
        .await
        .unwrap()
}

/// The rulings on a pattern.
async fn rulings(app: &Capabilities, pattern: &str) -> Vec<CandidateRecord> {
    let filter = CandidateFilter {
        reviewed: learning_store::contests::Involvement::default(),
        user: None,
        namespace: namespace(),
        kinds: vec![Kind::DomainRule],
        statuses: Vec::new(),
        keys: vec![Key::parse(Kind::DomainRule.rules().key, pattern).unwrap()],
    };
    app.contests.list_candidates(&filter, None, 500).await.unwrap().0
}

fn said(outcome: &Outcome) -> (OutcomeState, &str) {
    (state(outcome), outcome.reason.as_str())
}

async fn the_newest_decision_is_in_force_and_a_retraction_brings_back_the_one_before(world: &World) {
    let app = world.instance().await;
    let older = decision(world, "Example.ORG.", "academic", REVIEWER);
    let newer = decision(world, "example.org", "block", REVIEWER);
    let blocked = one(&app, &newer).await;
    assert_eq!(
        (said(&blocked), blocked.revision),
        ((OutcomeState::Applied, ""), 1)
    );
    let late = one(&app, &older).await;
    assert_eq!(said(&late), (OutcomeState::NoEffect, "NEWER_RULING"));
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("block"));
    let taken_back = one(&app, &retraction(world, &newer, REVIEWER)).await;
    assert_eq!(
        (state(&taken_back), taken_back.revision),
        (OutcomeState::Withdrawn, 2)
    );
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("academic"));
    let cleared = one(&app, &decision(world, "example.org", "clear", REVIEWER)).await;
    assert_eq!(state(&cleared), OutcomeState::Applied);
    assert_eq!(in_force(&app, "example.org").await, None);
    assert_sound(&app).await;
}

async fn approving_an_older_ruling_leaves_the_newer_one_in_force_and_says_so(world: &World) {
    let app = world.instance().await;
    let older = decision(world, "example.org", "block", REPORTER);
    let waits = one(&app, &older).await;
    assert_eq!(said(&waits), (OutcomeState::AwaitingReview, "NOT_ENTITLED"));
    one(&app, &decision(world, "example.org", "academic", REVIEWER)).await;
    let reviewed = review(&app, ruling(&older), None, approval()).await.unwrap();
    let candidate = &reviewed.candidate.candidate;
    assert_eq!(
        (
            candidate.status,
            candidate.reason.map(emend_core::Reason::name),
            reviewed.revision.0
        ),
        (Status::Superseded, Some("NEWER_RULING"), 0)
    );
    assert!(candidate.is_effective());
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("academic"));
    let again = review(&app, ruling(&older), None, approval()).await.unwrap_err();
    assert_eq!(again.reason(), "ALREADY_APPLIED");
    assert_sound(&app).await;
}

async fn a_reporter_cannot_take_back_what_a_reviewer_approved(world: &World) {
    let app = world.instance().await;
    let approved = decision(world, "example.org", "block", REPORTER);
    one(&app, &approved).await;
    review(&app, ruling(&approved), None, approval()).await.unwrap();
    let refused = one(&app, &retraction(world, &approved, REPORTER)).await;
    assert_eq!(said(&refused), (OutcomeState::NoEffect, "NOT_ENTITLED"));
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("block"));
    // What waits it may take back, before and after it arrives.
    let waits = decision(world, "example.org", "low", REPORTER);
    one(&app, &retraction(world, &waits, REPORTER)).await;
    one(&app, &waits).await;
    assert_eq!(record(&app, &waits).await.candidate.status, Status::Withdrawn);
    // A mark of somebody not entitled does not take back what an entitled sender decided.
    let decided = decision(world, "example.org", "primary", REVIEWER);
    one(&app, &retraction(world, &decided, REPORTER)).await;
    one(&app, &decided).await;
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("primary"));
    assert_sound(&app).await;
}

async fn a_retraction_counts_with_the_most_right_that_anybody_took_back_with(world: &World) {
    let app = world.instance().await;
    let events = |decided: &IngestEvent| {
        [
            decided.clone(),
            retraction(world, decided, REPORTER),
            retraction(world, decided, REVIEWER),
            retraction(world, decided, REPORTER),
        ]
    };
    for (number, order) in [
        [0, 1, 2, 3],
        [1, 2, 3, 0],
        [2, 1, 3, 0],
        [1, 0, 2, 3],
        [2, 0, 1, 3],
    ]
    .into_iter()
    .enumerate()
    {
        for together in [false, true] {
            let pattern = format!("{together}{number}.example.org");
            let decided = decision(world, &pattern, "primary", REVIEWER);
            let events = events(&decided);
            let arriving = order.map(|place: usize| events[place].clone());
            for group in arriving.chunks(if together { arriving.len() } else { 1 }) {
                apply(&app, group).await;
            }
            assert_eq!(in_force(&app, &pattern).await, None, "{order:?} {together}");
        }
    }
    let decided = decision(world, "example.org", "primary", REVIEWER);
    apply(&app, &[decided.clone(), retraction(world, &decided, REPORTER)]).await;
    let outcome = one(&app, &retraction(world, &decided, REVIEWER)).await;
    assert_eq!(outcome.state(), OutcomeState::Withdrawn);
    assert_sound(&app).await;
}

async fn a_correction_just_after_an_operators_write_wins(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("example.org", "block")).await.unwrap();
    let written = rulings(&app, "example.org").await.remove(0);
    let order = written.candidate.ruling.unwrap().accept_order;
    let mut after = decision(world, "example.org", "low", REVIEWER);
    after.accept_order = AcceptOrder(order.0 + 1_000);
    one(&app, &after).await;
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("low"));
    let mut before = decision(world, "example.org", "academic", REVIEWER);
    before.accept_order = AcceptOrder(order.0 - 1_000);
    one(&app, &before).await;
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("low"));
    assert_sound(&app).await;
}

fn reverting(revision: i64) -> Revert {
    Revert {
        namespace: namespace(),
        revision: emend_core::Revision(revision),
        reason: "wrong".to_owned(),
        actor: operator(),
    }
}

pub(super) async fn revert(app: &Capabilities, revision: i64) {
    let open = emend_serve::auth::Access::open();
    app.log.revert(&reverting(revision), &open).await.unwrap();
}

async fn reverting_what_brought_a_ruling_into_force_takes_it_back(world: &World) {
    let app = world.instance().await;
    let events: Vec<_> = ["low", "academic", "block"]
        .map(|what| decision(world, "example.org", what, REVIEWER))
        .into();
    for place in [0, 2, 1] {
        one(&app, &events[place]).await;
    }
    assert_eq!(head(&app).await, 2);
    revert(&app, 2).await;
    // What was decided before the block applies, though it arrived after it.
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("academic"));
    let taken_back = record(&app, &events[2]).await.candidate;
    assert_eq!(
        (taken_back.status, taken_back.reason.map(emend_core::Reason::name)),
        (Status::Withdrawn, Some("REVERTED"))
    );
    assert_sound(&app).await;
}

async fn reverting_another_revision_rules_anew(world: &World) {
    let app = world.instance().await;
    app.resources.put(&put("example.org", "low")).await.unwrap();
    let deleted = Delete {
        key: key("example.org"),
        etag: None,
        reason: None,
        actor: operator(),
    };
    app.resources.delete(&deleted).await.unwrap();
    assert_eq!(in_force(&app, "example.org").await, None);
    let block = decision(world, "example.org", "block", REVIEWER);
    one(&app, &block).await;
    assert_eq!(
        in_force(&app, "example.org").await,
        None,
        "it was said before the deletion"
    );
    revert(&app, 2).await;
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("low"));
    revert(&app, 3).await;
    assert_eq!(in_force(&app, "example.org").await, None);
    assert_sound(&app).await;
}

async fn what_waited_while_frozen_is_decided_once_released(world: &World) {
    let app = world.instance().await;
    set_policy(&app, Kind::DomainRule, |policy| policy.frozen = true).await;
    let waits = one(&app, &decision(world, "example.org", "block", REVIEWER)).await;
    assert_eq!(said(&waits), (OutcomeState::Pending, "FROZEN"));
    app.resources.put(&put("other.example", "low")).await.unwrap();
    assert_eq!(
        in_force(&app, "other.example").await.as_deref(),
        Some("low"),
        "a person may"
    );
    set_policy(&app, Kind::DomainRule, |policy| policy.frozen = false).await;
    while app.contests.reevaluate_once(None).await.unwrap().evaluated > 0 {}
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("block"));
    assert_sound(&app).await;
}

async fn a_redelivered_ruling_is_one_ruling(world: &World) {
    let app = world.instance().await;
    let event = decision(world, "example.org", "block", REVIEWER);
    let first = one(&app, &event).await;
    assert_eq!(one(&app, &event).await, first);
    assert_eq!(
        (rulings(&app, "example.org").await.len(), head(&app).await),
        (1, 1)
    );
}

async fn the_log_says_why_a_ruling_was_made_until_that_is_erased(world: &World) {
    let app = world.instance().await;
    let event = decision(world, "example.org", "block", REVIEWER);
    one(&app, &event).await;
    app.resources.put(&put("example.org", "low")).await.unwrap();
    let filter = RevisionFilter {
        namespace: namespace(),
        kind: None,
        keys: Vec::new(),
        operation: None,
    };
    let said = async || {
        let (revisions, _) = app.log.list(&filter, None, 10).await.unwrap();
        let said = revisions
            .into_iter()
            .map(|revision| (revision.reason, revision.actor.on_behalf_of));
        said.collect::<Vec<_>>()
    };
    let [put, ruling] = &said().await[..] else {
        panic!("two revisions");
    };
    assert_eq!((&*put.0, &*ruling.0), ("", "because"));
    assert!(!ruling.1.is_empty(), "its reporter");
    one(&app, &world.redaction(&event)).await;
    let erased = said().await;
    assert_eq!((&*erased[1].0, &*erased[1].1), ("", ""));
}

async fn what_is_imported_stays_when_somebody_elses_equal_ruling_is_taken_back(world: &World) {
    let app = world.instance().await;
    let block = decision(world, "example.org", "block", REVIEWER);
    one(&app, &block).await;
    let import = super::imports::import(Mode::AllOrNothing, ImportAs::Decision);
    let row = || row("example.org", "block");
    let imported = app.imports.import(&import, vec![row()], &still).await.unwrap();
    assert_eq!((imported.applied, imported.unchanged), (1, 0));
    let again = app.imports.import(&import, vec![row()], &still).await.unwrap();
    assert_eq!((again.applied, again.unchanged), (0, 1));
    one(&app, &retraction(world, &block, REVIEWER)).await;
    assert_eq!(in_force(&app, "example.org").await.as_deref(), Some("block"));
    assert_sound(&app).await;
}

async fn however_many_ask_an_entitled_decision_is_never_refused(world: &World) {
    let app = world.instance().await;
    let asked: Vec<_> = (0..=MAX_CANDIDATES)
        .map(|_| decision(world, "example.org", "low", REPORTER))
        .collect();
    let mut refused = 0;
    for group in asked.chunks(64) {
        for result in app.ingest.apply(group).await {
            refused += usize::from(state(&result.unwrap()) == OutcomeState::Refused);
        }
    }
    assert_eq!(refused, 1, "as many as fit wait");
    let decided = one(&app, &decision(world, "example.org", "block", REVIEWER)).await;
    assert_eq!(state(&decided), OutcomeState::Applied);
}

async fn people_do_not_write_to_the_layers_of_the_system(world: &World) {
    let app = world.instance().await;
    let key = ResourceKey::parse("fund-admin", Some(Kind::DomainRule), "go.jp", "file", "").unwrap();
    let value = ResourceValue::new(
        "go.jp",
        Learned::of(Kind::DomainRule, "government".to_owned()).unwrap(),
    );
    let by_hand = pb::PutResourceRequest {
        key: Some(render::resource_key(&key)),
        value: Some(render::stored_value(&value)),
        ..pb::PutResourceRequest::default()
    };
    let delete = pb::DeleteResourceRequest {
        key: by_hand.key.clone(),
        ..pb::DeleteResourceRequest::default()
    };
    let caller = operator().caller;
    let refused = [
        grpc::put(&caller, &by_hand).unwrap_err(),
        grpc::delete(&caller, &delete).unwrap_err(),
    ];
    for violations in refused {
        assert_eq!(
            violations.to_string(),
            "key.qualifier: must be human: only the system writes the layer file"
        );
    }
    let put = Put {
        key: key.clone(),
        value,
        etag: None,
        reason: None,
        actor: operator(),
    };
    let revision = app.resources.put(&put).await.unwrap().revision;
    let revert = Revert {
        namespace: namespace(),
        revision,
        reason: "a mistake".to_owned(),
        actor: operator(),
    };
    let Error::FailedPrecondition { reason, .. } =
        app.log.revert(&revert, &Access::open()).await.unwrap_err()
    else {
        panic!("a failed precondition")
    };
    assert_eq!(reason, "SYSTEM_LAYER");
    assert_sound(&app).await;
}
