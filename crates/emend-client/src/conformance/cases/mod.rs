//! What the vectors ask, group by group.

mod answers;
mod near;
mod stream;
mod texts;

use serde_json::{Value, json};

use super::answers::hex;

/// Its id, what it checks, and the input.
type Case = (&'static str, &'static str, Value);

/// The cases of a group.
pub(super) fn of(group: &str) -> Vec<Case> {
    match group {
        "normalisation" => texts::normalisation(),
        "digests" => digests(),
        "stream" => stream::cases(),
        "reports" => reports(),
        "lookups" => answers::lookups(),
        "near" => near::cases(),
        "expansion" => texts::expansion(),
        "prompts" => texts::prompts(),
        "errors" => answers::errors(),
        other => panic!("no group is called {other}"),
    }
}

fn digests() -> Vec<Case> {
    let everything = hex(&(0..=255).collect::<Vec<u8>>());
    let item =
        |namespace: &str, kind: i32, [key, qualifier, user_id]: [&str; 3], revision: i64, bytes: &str| {
            json!({
                "namespace": namespace, "kind": kind, "key": key, "qualifier": qualifier, "user_id": user_id,
                "revision": revision.to_string(), "value_bytes": bytes,
            })
        };
    let items = [
        item("fund-admin", 1, ["set up a csa", "", ""], 7, "76616c7565"),
        item(
            "fund-admin",
            3,
            ["set up a csa", "create_csa", "jane"],
            8,
            "76616c7565",
        ),
        item(
            "cards",
            1,
            ["相手のリーダーにダメージを与えるカード", "", ""],
            1_234_567_890_123,
            &everything,
        ),
        item("cards", 1, ["", "", ""], 1, ""),
        item("cards", 99, ["x", "y", ""], 2, "0a00"),
        item("cards", i32::MAX, [&"z".repeat(512), "", "j"], i64::MAX, "ff"),
    ];
    let of = |places: &[usize]| -> Value {
        let chosen: Vec<&Value> = places.iter().map(|&place| &items[place]).collect();
        json!({"items": chosen})
    };
    let mut unread = items[4].clone();
    unread.as_object_mut().unwrap().remove("value_bytes");
    unread["value_checksum"] = json!("bbe01a6a523daf15");
    vec![
        ("empty", "an empty group: sixteen zero bytes", of(&[])),
        ("one", "one resource", of(&[0])),
        ("two", "two whose hashes sum up modulo 2^128", of(&[0, 1])),
        ("two-turned", "the same two in another order", of(&[1, 0])),
        ("long", "a value and a key of more than 240 bytes", of(&[2, 5])),
        ("nothing", "an empty key and an empty value", of(&[3])),
        ("unknown-kind", "a kind that no version knows", of(&[4])),
        (
            "by-checksum",
            "the same by the checksum that came with it",
            json!({"items": [unread]}),
        ),
        ("all", "all of them", of(&[0, 1, 2, 3, 4, 5])),
    ]
}

fn reports() -> Vec<Case> {
    let of =
        |state: &str, delays: &[i64]| json!({"state": state, "node_id": "search-1", "delays_ms": delays});
    vec![
        (
            "before-anything",
            "nothing is reported before a state was applied",
            of("nothing", &[]),
        ),
        ("applied", "the cursor of what was applied", of("update", &[])),
        (
            "rejected",
            "what the node cannot use, the newest first, with why",
            of("unusable", &[]),
        ),
        (
            "mended",
            "what was replaced is no longer reported",
            of("unusable-mended", &[]),
        ),
        (
            "differs",
            "what is held is reported though it is not resumed from",
            of("snapshot-differs", &[]),
        ),
        (
            "delays",
            "a delay falls into the first bucket whose bound it does not exceed; below zero it is zero",
            of("three", &[-5, 0, 1, 2, 3, 999, 1000, 1001, 600_000, 600_001]),
        ),
    ]
}
