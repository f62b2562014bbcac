//! Whatever happens to a stream, a node holds and answers from a state that the server once had.

use std::collections::BTreeSet;

use bytes::Bytes;
use emend_base::{Entropy, SystemClock};
use emend_core::{Kind, Learned, Namespace, NormalizedKey, Relation, Synonym, UserId};
use emend_proto::{learning::v1::SnapshotReason, wire::Message};
use proptest::prelude::*;

use super::*;
use crate::{
    server_log::{Key, ServerLog, State, encoded, response},
    view::LookupKey,
};

const PHRASES: [&str; 3] = ["a", "b", "c"];
const USERS: [&str; 2] = ["", "jane"];
const CHOICES: [&str; 3] = ["x", "y", "z"];

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<(usize, u8)>),
    /// An update up to the head, in parts of this many changes.
    Update(usize),
    /// The same, but the stream breaks before the last part.
    BrokenUpdate(usize),
    /// An update sent before.
    Again,
    /// An update that skips a revision.
    Gap,
    Bookmark,
    Snapshot(usize),
    BrokenSnapshot(usize),
    Reconnect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let commit = proptest::collection::vec((0usize..30, 0u8..5), 1..5).prop_map(Step::Commit);
    let step = prop_oneof![
        6 => commit,
        4 => (1usize..4).prop_map(Step::Update),
        1 => (1usize..3).prop_map(Step::BrokenUpdate),
        1 => Just(Step::Again),
        1 => Just(Step::Gap),
        1 => Just(Step::Bookmark),
        1 => (1usize..4).prop_map(Step::Snapshot),
        1 => (1usize..4).prop_map(Step::BrokenSnapshot),
        1 => Just(Step::Reconnect),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Every kind, scope and choice, including some that no node can use.
fn change(id: usize, value: u8) -> (Key, Option<Vec<u8>>) {
    let (phrase, user, form) = (PHRASES[id % 3], USERS[id / 3 % 2], id / 6);
    let choice = CHOICES[usize::from(value) % 3];
    let (kind, qualifier, learned) = match form {
        0 => (1, "", Learned::Verb(choice.into())),
        1 => (2, "", Learned::Entity(choice.into())),
        2 => (3, choice, Learned::Forbidden(choice.into())),
        3 => {
            let relation = Relation::ALL[usize::from(value) % 3];
            let representative = "Z".into();
            (
                4,
                "z",
                Learned::Synonym(Synonym {
                    relation,
                    representative,
                }),
            )
        }
        _ => (77, "", Learned::Verb(choice.into())),
    };
    let key = (
        "fund-admin".into(),
        kind,
        phrase.into(),
        qualifier.into(),
        user.into(),
    );
    let bytes = match value {
        0 => None,
        1 if form < 2 => Some(vec![0xff]),
        _ => Some(encoded(phrase, learned)),
    };
    (key, bytes)
}

struct Node {
    engine: Engine,
    view: LearnedView,
    log: ServerLog,
    /// The revision that the server has sent completely, and so what the node must hold.
    at: Option<i64>,
}

impl Node {
    fn new() -> Self {
        let (publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
        let engine = Engine::new(&view, publisher, None);
        let mut node = Self {
            engine,
            view,
            log: ServerLog::new("epoch"),
            at: None,
        };
        node.connect();
        node
    }

    fn send(&mut self, message: Message) -> Result<Effect, ProtocolViolation> {
        self.engine
            .receive(Frame(Bytes::from(response(message).encode_to_vec())), true)
    }

    fn send_all(&mut self, messages: Vec<Message>) {
        for message in messages {
            let effect = self.send(message).unwrap();
            let digest_check = match &effect {
                Effect::Applied(applied) => Some(&applied.digest_check),
                Effect::Installed(installed) => Some(&installed.digest_check),
                Effect::Current { digest_check, .. } => Some(digest_check),
                _ => None,
            };
            assert!(
                !digest_check.is_some_and(crate::replica::DigestCheck::differs),
                "{effect:?}"
            );
        }
    }

    /// Answers a new stream as a server does.
    fn connect(&mut self) {
        let cursor = self.engine.replica.open();
        assert_eq!(cursor, self.at.map(|at| self.log.cursor(at)));
        if let Some(at) = self.at {
            self.send_all(vec![self.log.resumed(at)]);
        } else {
            let head = self.log.head();
            self.send_all(self.log.snapshot(head, SnapshotReason::NoCursor, 2));
            self.at = Some(head);
        }
    }

    fn step(&mut self, step: Step) {
        let (at, head) = (self.at.unwrap(), self.log.head());
        match step {
            Step::Commit(changes) => {
                let ids: BTreeSet<_> = changes.iter().map(|(id, _)| id).collect();
                let changes: Vec<_> = changes.iter().map(|(id, value)| change(*id, *value)).collect();
                let distinct: BTreeSet<_> = changes.iter().map(|(key, _)| key).collect();
                if ids.len() == changes.len() && distinct.len() == changes.len() {
                    self.log.commit(changes);
                }
            }
            Step::Update(part) if head > at => {
                self.send_all(self.log.update(at, head, part));
                self.at = Some(head);
            }
            Step::BrokenUpdate(part) if head > at => {
                let mut parts = self.log.update(at, head, part);
                parts.pop();
                self.send_all(parts);
                self.connect();
            }
            Step::Again if at > 0 => {
                let mut parts = self.log.update(at - 1, at, 1);
                assert!(self.send(parts.remove(0)).is_err());
                self.connect();
            }
            Step::Gap if head > at + 1 => {
                let mut parts = self.log.update(at + 1, head, 1);
                assert!(self.send(parts.remove(0)).is_err());
                self.connect();
            }
            Step::Bookmark => self.send_all(vec![self.log.bookmark(at)]),
            Step::Snapshot(chunk) => {
                self.send_all(self.log.snapshot(head, SnapshotReason::FilterChanged, chunk));
                self.at = Some(head);
            }
            Step::BrokenSnapshot(chunk) => {
                let mut messages = self.log.snapshot(head, SnapshotReason::FilterChanged, chunk);
                messages.pop();
                self.send_all(messages);
                self.connect();
            }
            Step::Reconnect => self.connect(),
            Step::Update(_) | Step::BrokenUpdate(_) | Step::Again | Step::Gap => {}
        }
    }

    fn check(&self) {
        let at = self.at.unwrap();
        let state = self.log.state(at);
        assert_eq!(self.engine.replica.len(), state.len());
        let reading = self.view.read();
        assert_eq!(reading.revision().0, at);
        let namespace = Namespace::parse("fund-admin").unwrap();
        for phrase in PHRASES {
            for user_id in USERS {
                let key = NormalizedKey::parse(phrase).unwrap();
                let user = UserId::parse(user_id).ok();
                for kind in [Kind::InvocationPhrase, Kind::EntityAlias] {
                    let key = LookupKey {
                        namespace: &namespace,
                        phrase: &key,
                    };
                    let found = reading.lookup(key, kind, user.as_ref());
                    let (answer, prohibited) = expected(state, phrase, user_id, kind);
                    let shown = found
                        .found()
                        .map(|found| (found.value.to_owned(), found.revision.0));
                    assert_eq!(shown, answer, "{phrase} {user_id} {kind}");
                    let shown: BTreeSet<_> = found.prohibited().map(str::to_owned).collect();
                    assert_eq!(shown, prohibited, "{phrase} {user_id}");
                }
            }
        }
    }
}

/// The rules of look-ups, in the simplest form.
fn expected(
    state: &State,
    phrase: &str,
    user: &str,
    kind: Kind,
) -> (Option<(String, i64)>, BTreeSet<String>) {
    let facts = |user: &str, kind: i32| {
        let entries = state
            .iter()
            .filter(move |((_, other, key, _, owner), _)| *other == kind && key == phrase && owner == user);
        entries
            .filter_map(|(_, (revision, value))| {
                let value = emend_wire::value::decode(value).ok()?;
                Some((value.learned.maps_to().to_owned(), *revision))
            })
            .collect::<Vec<_>>()
    };
    let scopes: BTreeSet<&str> = [user, ""].into();
    let prohibited: BTreeSet<String> = scopes
        .iter()
        .flat_map(|scope| facts(scope, 3))
        .map(|(choice, _)| choice)
        .collect();
    // In descending order, so that the user's own comes before the global one.
    let answer = scopes
        .iter()
        .rev()
        .flat_map(|scope| facts(scope, kind.number()))
        .find(|(choice, _)| !prohibited.contains(choice));
    (answer, prohibited)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_node_always_shows_a_complete_state_of_the_server(steps in steps()) {
        let mut node = Node::new();
        for step in steps {
            node.step(step);
            node.check();
        }
    }

    #[test]
    fn receiving_any_bytes_does_not_panic(frames in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..40), 1..10,
    )) {
        let mut node = Node::new();
        for frame in frames {
            let _ = node.engine.receive(Frame(frame.into()), true);
        }
    }
}
