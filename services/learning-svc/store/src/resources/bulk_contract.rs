//! How many statements many new resources take.

use std::collections::HashMap;

use emend_core::{
    Caller, Candidate, ContestState, Event, Kind, Learned, Origin, Policy, ResourceKey, ResourceValue,
    Revision, decide,
};
use jiff::Timestamp;

use crate::testing::{TestDatabase, on_both};
use crate::work::Work;
use crate::{
    actor::Actor,
    contests::{KeptCandidate, TransitionWrite},
    log::LogStore as _,
    resources::{BulkRepository as _, FreshKind, FreshRow},
};

fn row(number: usize) -> FreshRow {
    let phrase = format!("phrase {number}");
    let key = ResourceKey::parse("default", Some(Kind::InvocationPhrase), &phrase, "", "").unwrap();
    let value = ResourceValue::new(phrase, Learned::Verb("v".to_owned()));
    let contest = key.contest_id();
    FreshRow {
        contest,
        candidate: value.candidate_id(contest),
        value: emend_wire::value::encode(&value),
        key,
    }
}

fn decided(first: &FreshRow) -> FreshKind {
    let value = emend_wire::value::decode(&first.value).unwrap();
    let event = Event::Put {
        value,
        origin: Origin::Import,
        reason: None,
    };
    let state = ContestState::new(first.key.clone());
    let policy = Policy::default_for(first.key.kind);
    let decision = decide(state, &event, &policy, Timestamp::UNIX_EPOCH).unwrap();
    let candidate: Candidate = decision.after.candidates[0].clone();
    let actor = Actor::caller(Caller::anonymous());
    let transitions = decision
        .transitions
        .iter()
        .zip(0..)
        .map(|(transition, sequence)| TransitionWrite {
            candidate: candidate.id,
            sequence,
            from: transition.from,
            to: transition.to,
            cause: decision.cause,
            reason: String::new(),
            actor: actor.clone(),
            at: Timestamp::UNIX_EPOCH,
            revision: Revision::default(),
            policy_version: 0,
        });
    FreshKind {
        transitions: transitions.collect(),
        candidate,
        kept: KeptCandidate {
            decided_by: actor,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            transitions: 2,
            version: 1,
        },
    }
}

async fn a_thousand_new_resources_take_few_statements(database: TestDatabase) {
    let Some((store, _database)) = database.open().await else {
        return;
    };
    let epoch = emend_core::Epoch(uuid::Uuid::from_u128(1));
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store.create_head(epoch, installation).await.unwrap();
    let mut statements = Vec::new();
    for thousands in [1, 3] {
        let numbers = thousands * 10_000..thousands * 11_000;
        let mut rows: Vec<FreshRow> = numbers.map(row).collect();
        rows.sort_by_key(|row| row.contest);
        let kinds = HashMap::from([(Kind::InvocationPhrase, decided(&rows[0]))]);
        let ids: Vec<_> = rows.iter().map(|row| row.contest).collect();
        let mut work = Work::begin(&store).await.unwrap();
        assert!(work.known(&ids).await.unwrap().is_empty());
        let now = work.now().await.unwrap();
        work.create(&rows, &kinds, now, now).await.unwrap();
        let first = Revision(i64::try_from(thousands * 100).unwrap());
        work.save(&rows, &kinds, first, 7).await.unwrap();
        assert_eq!(work.known(&ids).await.unwrap().len(), rows.len());
        statements.push(work.executed);
    }
    // For each thousand: which are known (asked twice), contests, candidates, changes and their kind; and once what applies
    // and both transitions.
    assert_eq!(statements, [6 + 3, 3 * 6 + 3]);
}

on_both! {
    a_thousand_new_resources_take_few_statements,
}
