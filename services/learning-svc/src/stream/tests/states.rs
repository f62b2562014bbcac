use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use emend_core::{Epoch, InstallationId, Namespace};
use emend_stream::{
    encode,
    filter::Filter,
    log::{Head, Loaded, LoggedRevision},
    state::{Entry, ReplicaState, Restored},
};
use learning_store::log::testing::{Written, write};
use proptest::prelude::*;
use uuid::Uuid;

use crate::stream::testing::{Client, Held, Key, covered, model};

type Step = Vec<(usize, usize, usize, bool, Option<u8>)>;

/// One revision's changes: namespace, kind, key, whether it is a user's own, value.
fn step() -> impl Strategy<Value = Step> {
    let change = (
        0..2usize,
        0..3usize,
        0..6usize,
        any::<bool>(),
        any::<Option<u8>>(),
    );
    prop::collection::vec(change, 0..5)
}

fn written(step: &Step) -> Vec<Written> {
    let mut keys = BTreeSet::new();
    let changes = step.iter().map(|(namespace, kind, key, own, value)| {
        let value = value.map(|value| format!("value {value}"));
        let written = write(&format!("key {key}"), value.as_deref())
            .of_kind(["a", "b"][*namespace], [1, 3, 99][*kind])
            .qualified(["", "q"][key % 2]);
        if *own { written.of_user("jane") } else { written }
    });
    changes
        .filter(|written| keys.insert(written.contest_id()))
        .collect()
}

/// The log of those steps, and the states before its first revision and after each.
fn history(steps: &[Step]) -> (Vec<LoggedRevision>, Vec<ReplicaState>) {
    let mut states = vec![ReplicaState::empty(epoch(), installation())];
    let mut log = Vec::new();
    for (revision, step) in (1..).zip(steps) {
        let revision = LoggedRevision {
            revision,
            committed_at: revision * 10,
            changes: written(step)
                .iter()
                .map(|written| written.logged(revision, revision * 10))
                .collect(),
        };
        let mut state = states.last().unwrap().clone();
        state.apply(revision.clone());
        states.push(state);
        log.push(revision);
    }
    (log, states)
}

fn installation() -> InstallationId {
    InstallationId(uuid::Uuid::from_u128(2))
}

fn epoch() -> Epoch {
    Epoch(Uuid::from_u128(1))
}

fn filters() -> Vec<Filter> {
    let name = |name: &str| Namespace::parse(name).unwrap();
    let many: Vec<_> = (0..20)
        .map(|n| name(&format!("n{n}")))
        .chain([name("b")])
        .collect();
    vec![
        Filter::new(&[], &[], true),
        Filter::new(&[], &[], false),
        Filter::new(&[name("a")], &[], true),
        Filter::new(&[name("b")], &[1, 99], false),
        Filter::new(&[], &[3], true),
        Filter::new(&many, &[], true),
        Filter::new(&[name("nothing-here")], &[], true),
    ]
}

fn held(log: &[LoggedRevision], revision: usize, filter: &Filter) -> BTreeMap<Key, Held> {
    covered(&model(log[..revision].iter()), filter)
}

/// A client that holds the state at `from`.
fn client_at(log: &[LoggedRevision], from: usize, filter: &Filter) -> Client {
    let cursor = encode::cursor(epoch(), i64::try_from(from).unwrap(), filter.hash());
    Client::at(held(log, from, filter), Some(cursor))
}

/// Sends the client everything from its cursor to `state`, in parts of at most `max_bytes`.
fn bring(client: &mut Client, state: &ReplicaState, filter: &Filter, max_bytes: usize) {
    let (from, mut after) = (client.revision(), None);
    while let Some((part, next)) = encode::update_part(state, filter, from, after.as_ref(), max_bytes) {
        client.apply(&part);
        after = next;
        if after.is_none() {
            return;
        }
    }
}

proptest! {
    #[test]
    fn applying_what_changed_since_a_cursor_gives_the_state(
        steps in prop::collection::vec(step(), 1..14),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        max_bytes in prop::sample::select(vec![1, 150, 100_000]),
    ) {
        let (log, states) = history(&steps);
        let to = to.index(states.len());
        let from = from.index(to + 1);
        for filter in filters() {
            let mut client = client_at(&log, from, &filter);
            bring(&mut client, &states[to], &filter, max_bytes);
            prop_assert_eq!(&client.held, &held(&log, to, &filter));
        }
    }

    #[test]
    fn deletions_above_the_horizon_suffice_for_cursors_at_or_above_it(
        steps in prop::collection::vec(step(), 1..14),
        horizon in any::<prop::sample::Index>(),
    ) {
        let (log, mut states) = history(&steps);
        let mut state = states.pop().unwrap();
        let horizon = horizon.index(log.len() + 1);
        state.raise_horizon(i64::try_from(horizon).unwrap());
        for filter in filters() {
            for from in horizon..=log.len() {
                let mut client = client_at(&log, from, &filter);
                bring(&mut client, &state, &filter, 100_000);
                prop_assert_eq!(&client.held, &held(&log, log.len(), &filter));
            }
        }
        state.raise_horizon(i64::try_from(log.len()).unwrap());
        prop_assert_eq!(state.tombstones(), 0);
    }

    #[test]
    fn a_loaded_state_equals_one_that_followed_the_log(
        steps in prop::collection::vec(step(), 1..14),
        horizon in any::<prop::sample::Index>(),
        order in any::<u64>(),
    ) {
        let (log, mut states) = history(&steps);
        let mut followed = states.pop().unwrap();
        let horizon = i64::try_from(horizon.index(log.len() + 1)).unwrap();
        followed.raise_horizon(horizon);

        let mut newest = BTreeMap::new();
        for change in log.iter().flat_map(|revision| &revision.changes) {
            let key = (change.namespace.clone(), change.kind, change.key.clone(), change.user_id.clone());
            newest.insert(key, change.clone());
        }
        let mut rows: Vec<_> = newest.into_values().collect();
        rows.retain(|row| row.value.is_some() || row.revision > horizon);
        // Rows may come in any order.
        let live = rows.iter().filter_map(|row| Some((row, row.value.as_ref()?)));
        let sizes = live.map(|(row, value)| row.key.len() + row.qualifier.len() + row.user_id.len() + value.len());
        let (count, bytes) = sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size as u64));
        rows.sort_by_key(|row| xxhash_rust::xxh3::xxh3_64_with_seed(row.key.as_bytes(), order));
        let mut loaded = Restored::default();
        let middle = rows.len() / 2;
        loaded.add(rows.split_off(middle));
        loaded.add(rows);
        let loaded = loaded.finish(Loaded {
            head: Head { epoch: epoch(), installation: installation(), revision: followed.revision(), horizon },
            committed_at: followed.committed_at(),
        });
        for filter in filters() {
            prop_assert_eq!(
                encode::update_part(&loaded, &filter, horizon, None, 1_000_000),
                encode::update_part(&followed, &filter, horizon, None, 1_000_000)
            );
            prop_assert_eq!(encode::snapshot_end(&loaded, &filter), encode::snapshot_end(&followed, &filter));
        }
        prop_assert_eq!((loaded.held(), followed.held()), ((count, bytes), (count, bytes)));
        prop_assert_eq!(loaded.tombstones(), followed.tombstones());
        prop_assert_eq!(loaded.committed_at(), followed.committed_at());
    }

    #[test]
    fn a_snapshot_in_parts_of_any_size_is_the_whole_state(
        steps in prop::collection::vec(step(), 1..14),
        max_bytes in prop::sample::select(vec![1, 150, 100_000]),
    ) {
        let (log, states) = history(&steps);
        let state = states.last().unwrap();
        for filter in filters() {
            let mut client = Client::new();
            client.apply(&encode::snapshot_begin(state, &filter, emend_proto::learning::v1::SnapshotReason::NoCursor));
            let mut after = None;
            while let Some((chunk, next)) = encode::snapshot_chunk(state, &filter, after.as_ref(), max_bytes) {
                client.apply(&chunk);
                after = next;
                if after.is_none() {
                    break;
                }
            }
            client.apply(&encode::snapshot_end(state, &filter));
            prop_assert_eq!(client.held, held(&log, log.len(), &filter));
        }
    }
}

#[test]
fn a_state_never_changes() {
    let step = |value| vec![(0, 0, 0, false, value)];
    let (log, states) = history(&[step(Some(1)), step(Some(2)), step(None), step(Some(3))]);
    let everything = Filter::new(&[], &[], true);
    for (revision, state) in states.iter().enumerate() {
        let mut client = client_at(&log, 0, &everything);
        bring(&mut client, state, &everything, 100_000);
        assert_eq!(client.held, held(&log, revision, &everything));
    }
}

#[test]
fn changes_in_other_namespaces_cost_a_filter_nothing() {
    let mut state = ReplicaState::empty(epoch(), installation());
    for revision in 1..=500 {
        let changes = [write(&revision.to_string(), Some("x")).of_kind("busy", 1)];
        state.apply(LoggedRevision {
            revision,
            committed_at: revision,
            changes: changes
                .iter()
                .map(|change| change.logged(revision, revision))
                .collect(),
        });
    }
    let quiet = Filter::new(&[Namespace::parse("quiet").unwrap()], &[], true);
    assert!(state.groups_changed_since(&quiet, 0).is_empty());
    let mut visited = 0;
    state.changes_since(&quiet, 0, None, |_| {
        visited += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(visited, 0);
}

#[test]
fn resources_are_found_by_key_and_listed_by_user() {
    let mut state = ReplicaState::empty(epoch(), installation());
    let changes = [
        write("b", Some("1")),
        write("a", Some("2")),
        write("a", Some("3")).of_user("jane"),
        write("c", Some("4")).of_user("jane"),
        write("b", Some("5")).of_user("joe"),
    ];
    state.apply(LoggedRevision {
        revision: 1,
        committed_at: 1,
        changes: changes.iter().map(|change| change.logged(1, 1)).collect(),
    });
    let value = |entry: Option<&Arc<Entry>>| entry.map(|entry| entry.value.clone().unwrap().to_vec());
    assert_eq!(value(state.get("a", 1, "a", "", "")), Some(b"2".to_vec()));
    assert_eq!(value(state.get("a", 1, "a", "", "jane")), Some(b"3".to_vec()));
    assert_eq!(value(state.get("a", 1, "a", "", "joe")), None);
    assert_eq!(value(state.get("b", 1, "a", "", "")), None);
    let keys = |user, from, included| -> Vec<String> {
        let found = state.of_kind("a", 1, user, (from, ""), included);
        found.map(|entry| entry.key.to_string()).collect()
    };
    assert_eq!(keys("", "", true), ["a", "b"]);
    assert_eq!(keys("", "a", false), ["b"]);
    assert_eq!(keys("jane", "", true), ["a", "c"]);
    assert_eq!(keys("jane", "b", true), ["c"]);
    assert_eq!(state.kinds("a", true), [1]);
    assert!(state.kinds("b", true).is_empty());
}
