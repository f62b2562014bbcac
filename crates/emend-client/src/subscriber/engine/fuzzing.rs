//! Streams as a broken or hostile server might send them.

use std::{collections::BTreeMap, mem};

use emend_base::{Entropy, SystemClock};
use emend_core::{Namespace, NormalizedKey};
use emend_proto::{
    frame::Frame,
    wire::{Change, ChangeKind, Message, Resource, SubscribeResponse},
};
use prost::{Message as _, bytes::Bytes};

use super::Engine;
use crate::{
    replica::{Effect, key::KeyParts},
    view::{LearnedView, LookupKey},
};

/// The frames of one stream, in one message.
#[derive(Clone, PartialEq, prost::Message)]
struct Frames {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    frames: Vec<Bytes>,
}

/// Packed key → revision, checksum, value.
type Held = BTreeMap<Vec<u8>, (i64, u64, Vec<u8>)>;

/// Takes in the frames of a stream, and opens another stream whenever a frame breaks the protocol. What the node holds
/// changes only when a snapshot or an update is complete, and then by all of it; the view shows only what is held.
pub fn stream(bytes: &[u8]) {
    let Ok(sent) = Frames::decode(bytes) else {
        return;
    };
    let (publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
    let mut engine = Engine::new(&view, publisher, None);
    engine.replica.open();
    let mut expected = Held::new();
    let mut staged = Staged::Nothing;
    for frame in sent.frames {
        let message = SubscribeResponse::decode(frame.clone()).ok();
        let position = engine.replica.position().cloned();
        let heavy = engine.is_heavy(frame.len());
        match (
            engine.receive(Frame(frame), heavy),
            message.and_then(|message| message.message),
        ) {
            (Err(_), _) => {
                assert_eq!(engine.replica.position(), position.as_ref());
                staged = Staged::Nothing;
                engine.replica.open();
            }
            (Ok(Effect::SnapshotBegun { .. }), _) => staged = Staged::Snapshot(Held::new()),
            (Ok(Effect::Staged), Some(Message::SnapshotChunk(chunk))) => {
                let Staged::Snapshot(held) = &mut staged else {
                    panic!("a chunk outside of a snapshot was taken");
                };
                for resource in chunk.into_resources() {
                    put(held, &resource);
                }
            }
            (Ok(Effect::Staged), Some(Message::Update(part))) => match &mut staged {
                Staged::Update(changes) => changes.extend(part.changes),
                Staged::Nothing => staged = Staged::Update(part.changes),
                Staged::Snapshot(_) => panic!("an update within a snapshot was taken"),
            },
            (Ok(Effect::Installed(_)), _) => {
                let Staged::Snapshot(held) = mem::replace(&mut staged, Staged::Nothing) else {
                    panic!("a snapshot that never began was installed");
                };
                expected = held;
                check_view(&engine, &view);
            }
            (Ok(Effect::Applied(applied)), Some(Message::Update(last))) => {
                let mut changes = match mem::replace(&mut staged, Staged::Nothing) {
                    Staged::Update(changes) => changes,
                    _ => Vec::new(),
                };
                changes.extend(last.changes);
                let known = changes.iter().filter(|change| change.change.is_some());
                assert_eq!(applied.changes.len(), known.count(), "all of it is applied");
                for change in &changes {
                    apply(&mut expected, change);
                }
                check_view(&engine, &view);
            }
            (
                Ok(Effect::Current {
                    revision,
                    digest_check,
                    ..
                }),
                _,
            ) => {
                assert!(
                    position
                        .as_ref()
                        .is_some_and(|before| before.revision <= revision.0)
                );
                if digest_check.differs() {
                    assert_eq!(engine.replica.position(), position.as_ref());
                } else {
                    assert_eq!(engine.replica.revision(), revision);
                }
            }
            (Ok(Effect::OtherInstallation { .. }), _) => {
                staged = Staged::Nothing;
                engine.replica.open();
            }
            (Ok(Effect::Resumed(_) | Effect::Ignored | Effect::Drain { .. }), _) => {}
            (Ok(effect), message) => panic!("{effect:?} of {message:?}"),
        }
        assert_eq!(held(&engine), expected, "what is held is one complete state");
    }
}

enum Staged {
    Nothing,
    Snapshot(Held),
    Update(Vec<Change>),
}

fn put(held: &mut Held, resource: &Resource) {
    let mut packed = Vec::new();
    let key = resource.key.as_ref().expect("it was taken, so it has a key");
    KeyParts::of(key).pack_into(&mut packed);
    let entry = (
        resource.revision,
        resource.value_checksum,
        resource.value.to_vec(),
    );
    held.insert(packed, entry);
}

fn apply(held: &mut Held, change: &Change) {
    match &change.change {
        Some(ChangeKind::Put(resource)) => put(held, resource),
        Some(ChangeKind::Deleted(key)) => {
            let mut packed = Vec::new();
            KeyParts::of(key).pack_into(&mut packed);
            held.remove(&packed);
        }
        None => {}
    }
}

fn held(engine: &Engine) -> Held {
    let envelopes = engine.replica.held().iter();
    envelopes
        .map(|envelope| {
            let entry = (
                envelope.revision(),
                envelope.value_checksum(),
                envelope.value().to_vec(),
            );
            (envelope.packed_key().to_vec(), entry)
        })
        .collect()
}

/// Checks that the node answers what it holds for everybody, unless that is prohibited.
fn check_view(engine: &Engine, view: &LearnedView) {
    let reading = view.read();
    assert_eq!(reading.revision(), engine.replica.revision());
    for fact in engine.replica.facts() {
        if !fact.kind.rules().is_answer || !fact.user_id.is_empty() || !fact.qualifier.is_empty() {
            continue;
        }
        let (Ok(namespace), Ok(phrase)) = (Namespace::parse(fact.namespace), NormalizedKey::parse(fact.key))
        else {
            continue;
        };
        if phrase.as_str() != fact.key {
            continue;
        }
        let key = LookupKey {
            namespace: &namespace,
            phrase: &phrase,
        };
        let found = reading.lookup(key, fact.kind, None);
        let answer = found.found().map(|found| (found.value, found.revision));
        let expected = fact
            .value
            .as_deref()
            .map(|value| (value.learned.maps_to(), fact.revision));
        assert!(
            answer == expected || found.found_prohibited(),
            "{answer:?} instead of {expected:?}"
        );
    }
}
