//! Streams: what a node takes from them, and when it leaves them.

use emend_proto::{
    learning::v1::SnapshotReason,
    wire::{ChangeKind, Message},
};
use serde_json::{Value, json};

use super::{
    super::{
        logs::{self, encode, everything, stream, streams},
        taught,
    },
    Case,
};
use crate::server_log::{ServerLog, drain, verb, verb_key};

pub(super) fn cases() -> Vec<Case> {
    let first = logs::three();
    let mut log = first.clone();
    log.commit([(verb_key("a"), None), (verb_key("d"), Some(verb("d", "other")))]);
    log.commit([(verb_key("b"), Some(verb("b", "other")))]);
    let begun = stream(everything(&first));
    let after = |messages: Vec<Message>| streams([begun.clone(), stream(messages)]);
    let resumed = |more: Vec<Message>| {
        let mut messages = vec![first.resumed(3)];
        messages.extend(more);
        after(messages)
    };
    let mut parts = log.update(3, 5, 1);
    let whole = log.update(3, 5, 9);
    let mut other = first.clone();
    other.installation = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11".into();
    let accepting = json!({"accept": other.installation, "messages": encode(everything(&other))});
    let mut cases = vec![
        (
            "nothing",
            "a stream that says nothing leaves a node empty",
            streams([stream([])]),
        ),
        (
            "three",
            "a snapshot replaces all that is held",
            streams([begun.clone()]),
        ),
        (
            "empty-snapshot",
            "an empty snapshot is a state",
            streams([stream(everything(&ServerLog::new("e")))]),
        ),
        (
            "unfinished-snapshot",
            "a snapshot that does not end changes nothing",
            after(everything(&log)[..2].to_vec()),
        ),
        (
            "resumed",
            "a stream resumes from the cursor that was sent",
            resumed(vec![]),
        ),
        ("update", "an update puts and deletes", resumed(whole.clone())),
        (
            "parts",
            "parts of an update are applied with the last one",
            resumed(parts.clone()),
        ),
        (
            "bookmark",
            "a bookmark moves the cursor",
            resumed(vec![Message::clone(&bookmark_at(&first, 9))]),
        ),
        (
            "drain",
            "the server ends the stream",
            resumed(vec![drain(), whole[0].clone()]),
        ),
    ];
    parts.pop();
    cases.push((
        "unfinished-parts",
        "parts without the last one change nothing",
        resumed(parts.clone()),
    ));
    parts.push(first.bookmark(3));
    cases.push((
        "bookmark-between-parts",
        "no bookmark may come between parts",
        resumed(parts),
    ));
    cases.extend(violations(&first, &log, &resumed));
    cases.extend(mismatches(&first, &log, &resumed));
    cases.extend([
        (
            "other-installation",
            "a node that holds something takes nothing from another installation",
            after(everything(&other)),
        ),
        (
            "other-installation-resumed",
            "nor does it resume there",
            after(vec![other.resumed(3)]),
        ),
        (
            "accepted-installation",
            "one that the node was told to accept replaces what is held",
            streams([begun.clone(), accepting]),
        ),
        (
            "any-installation",
            "a node that holds nothing takes any installation",
            streams([
                stream(everything(&ServerLog::new("e"))),
                stream(everything(&other)),
            ]),
        ),
        (
            "unusable",
            "what a node cannot use counts in digests, and the rest is used",
            streams([stream(everything(&unusable()))]),
        ),
        (
            "unusable-mended",
            "what a node could not use is replaced",
            unusable_mended(),
        ),
        (
            "answers",
            "phrases, entities and prohibitions, of everybody and of users",
            state(&logs::answers()),
        ),
        (
            "near",
            "enough phrases for a model of near answers",
            state(&taught::in_order()),
        ),
        (
            "near-by-another-way",
            "the same for everybody, by another way",
            near_by_another_way(),
        ),
        (
            "terms",
            "synonyms, of everybody and of a user",
            state(&logs::terms()),
        ),
        (
            "prompts",
            "prompts, examples and an entry of a profile",
            state(&logs::prompts()),
        ),
    ]);
    cases
}

/// A snapshot of the beginning, then all changes since.
fn near_by_another_way() -> Value {
    let log = taught::by_another_way();
    let mut first = log.snapshot(1, SnapshotReason::NoCursor, 3);
    first.extend(log.update(1, log.head(), 100));
    streams([stream(first)])
}

fn state(log: &ServerLog) -> Value {
    streams([stream(everything(log))])
}

/// A bookmark of what is held now, at a later revision.
fn bookmark_at(log: &ServerLog, revision: i64) -> Message {
    changed(log.bookmark(log.head()), |message| {
        let Message::Bookmark(bookmark) = message else {
            unreachable!("a bookmark was made")
        };
        bookmark.cursor = Some(log.cursor(revision));
    })
}

/// A message with some of its parts changed.
fn changed(mut message: Message, change: impl FnOnce(&mut Message)) -> Message {
    change(&mut message);
    message
}

/// What the protocol forbids: nothing of it is applied.
fn violations(first: &ServerLog, log: &ServerLog, resumed: &dyn Fn(Vec<Message>) -> Value) -> Vec<Case> {
    let altered = |change: fn(&mut emend_proto::wire::Update)| {
        resumed(vec![changed(log.update(3, 5, 9).remove(0), |message| {
            let Message::Update(update) = message else {
                unreachable!("an update was made")
            };
            change(update);
        })])
    };
    let mut foreign = log.clone();
    foreign.epoch = "another".into();
    let counted = |count: i64| {
        let mut messages = everything(first);
        let Message::SnapshotBegin(begin) = &mut messages[0] else {
            unreachable!("it begins so")
        };
        begin.resource_count = count;
        streams([stream(messages)])
    };
    let twice = {
        let mut messages = everything(first);
        messages.insert(1, messages[1].clone());
        streams([stream(messages)])
    };
    vec![
        (
            "gap",
            "an update that begins after what is held",
            resumed(log.update(4, 5, 9)),
        ),
        (
            "overlap",
            "an update that begins earlier is fine if it ends later",
            altered(|update| update.from_revision = 1),
        ),
        (
            "not-new",
            "an update that ends at what is held",
            resumed(log.update(2, 3, 9)),
        ),
        (
            "no-cursor",
            "an update whose last part has no cursor",
            altered(|update| update.cursor = None),
        ),
        (
            "out-of-order",
            "changes that are not in order",
            altered(|update| update.changes.reverse()),
        ),
        (
            "old-change",
            "a change that is not newer than what is held",
            altered(|update| update.changes[0].revision = 3),
        ),
        (
            "other-revision",
            "a resource whose revision is not its change's",
            altered(|update| {
                if let Some(ChangeKind::Put(put)) = &mut update.changes[1].change {
                    put.revision = 1;
                }
                if let Some(ChangeKind::Put(put)) = &mut update.changes[2].change {
                    put.revision = 1;
                }
            }),
        ),
        (
            "foreign-epoch",
            "an update of another epoch",
            resumed(foreign.update(3, 5, 9)),
        ),
        (
            "back",
            "a bookmark behind what is held",
            resumed(vec![first.bookmark(2)]),
        ),
        (
            "update-first",
            "an update before the stream has said how it continues",
            streams([stream(everything(first)), stream(log.update(3, 5, 9))]),
        ),
        (
            "resumed-elsewhere",
            "a stream that resumes from another cursor",
            streams([stream(everything(first)), stream([first.resumed(2)])]),
        ),
        (
            "resumed-from-nothing",
            "a stream that resumes though no cursor was sent",
            streams([stream([first.resumed(3)])]),
        ),
        (
            "too-few",
            "a snapshot with fewer resources than it announced",
            counted(4),
        ),
        (
            "too-many",
            "a snapshot with more resources than it announced",
            counted(2),
        ),
        ("twice", "a snapshot that repeats a key", twice),
    ]
}

/// Digests that differ: the state is used, and the next stream begins with a snapshot.
fn mismatches(first: &ServerLog, log: &ServerLog, resumed: &dyn Fn(Vec<Message>) -> Value) -> Vec<Case> {
    let mut poorer = first.clone();
    poorer.commit([(verb_key("c"), None)]);
    let digests = poorer.digests(4);
    let of_snapshot = {
        let mut messages = everything(first);
        let Some(Message::SnapshotEnd(end)) = messages.last_mut() else {
            unreachable!("it ends so")
        };
        end.digests.clone_from(&digests);
        streams([stream(messages)])
    };
    let of_update = changed(log.update(3, 5, 9).remove(0), |message| {
        let Message::Update(update) = message else {
            unreachable!("an update was made")
        };
        update.digests.clone_from(&digests);
    });
    let of_bookmark = changed(bookmark_at(first, 4), |message| {
        let Message::Bookmark(bookmark) = message else {
            unreachable!("a bookmark was made")
        };
        bookmark.digests.clear();
    });
    let short = changed(first.bookmark(3), |message| {
        let Message::Bookmark(bookmark) = message else {
            unreachable!("a bookmark was made")
        };
        bookmark.digests[0].hash = vec![1, 2, 3].into();
    });
    let silent = changed(log.update(3, 5, 9).remove(0), |message| {
        let Message::Update(update) = message else {
            unreachable!("an update was made")
        };
        update.digests.clear();
    });
    vec![
        (
            "snapshot-differs",
            "a snapshot whose digests differ is used, and not resumed from",
            of_snapshot,
        ),
        (
            "update-differs",
            "an update whose digests differ is used, and not resumed from",
            resumed(vec![of_update, log.bookmark(5)]),
        ),
        (
            "update-lists-some",
            "an update has digests of the groups that it changed; others are not compared",
            resumed(vec![silent]),
        ),
        (
            "bookmark-differs",
            "a group that a bookmark does not list must be empty; the cursor stays",
            resumed(vec![of_bookmark]),
        ),
        (
            "short-hash",
            "a digest's hash has sixteen bytes",
            resumed(vec![short]),
        ),
    ]
}

/// A log with values that a node cannot use.
fn unusable() -> ServerLog {
    let mut log = logs::three();
    let key = |kind: i32, key: &str, qualifier: &str| {
        (
            "fund-admin".into(),
            kind,
            key.into(),
            qualifier.into(),
            String::new(),
        )
    };
    log.commit([
        (key(99, "new", ""), Some(verb("new", "x"))),
        (key(2, "the fund", ""), Some(verb("the fund", "x"))),
        (
            key(3, "a", "other"),
            Some(logs::forbidden_value("a", "create_csa")),
        ),
        (key(1, "version", ""), Some(logs::of_normalisation(2, "version"))),
    ]);
    log
}

fn unusable_mended() -> Value {
    let mut log = unusable();
    let begun = everything(&log);
    let mended: crate::server_log::Key = (
        "fund-admin".into(),
        1,
        "version".into(),
        String::new(),
        String::new(),
    );
    log.commit([(mended, Some(verb("version", "show_version")))]);
    let mut messages = vec![log.resumed(4)];
    messages.extend(log.update(4, 5, 9));
    streams([stream(begun), stream(messages)])
}
