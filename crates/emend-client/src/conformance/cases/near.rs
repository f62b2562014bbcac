//! Phrases that nobody corrected.

use serde_json::{Value, json};

use super::{super::taught, Case};

pub(super) fn cases() -> Vec<Case> {
    let ask = |phrase: &str, more: Value| {
        let mut input = json!({"state": "near", "namespace": "fund-admin", "kind": 1, "phrase": phrase});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        input
    };
    let learned = json!({"learned": taught::phrases(), "prohibited": taught::PROHIBITED});
    let other = json!({"state": "near-by-another-way"});
    vec![
        (
            "similar",
            "what similar phrases mean; `learned` and `prohibited` are all that the state has",
            ask("i think i lost my card", learned),
        ),
        (
            "similar-by-another-way",
            "the same, byte for byte, of equal resources that came by another way",
            ask("i think i lost my card", other.clone()),
        ),
        (
            "spelling",
            "in any spelling",
            ask(" I  THINK i ｌｏｓｔ my card", json!({})),
        ),
        (
            "other-words",
            "another verb",
            ask("how much money is left in my account", json!({})),
        ),
        (
            "other-words-by-another-way",
            "the same, by another way",
            ask("how much money is left in my account", other),
        ),
        (
            "exact",
            "a phrase that was learned itself has no near answer",
            ask("close my account", json!({})),
        ),
        (
            "out-of-scope",
            "nothing is said where nothing is similar",
            ask("will it rain tomorrow in kyoto", json!({})),
        ),
        (
            "prohibited",
            "a prohibited choice is never answered",
            ask("the card that i lost", json!({})),
        ),
        (
            "prohibited-for-one",
            "nor is one that the user prohibited",
            ask("tell me what my balance is", json!({"user": "joe"})),
        ),
        (
            "not-prohibited-for-all",
            "which all others are answered",
            ask("tell me what my balance is", json!({"user": "mia"})),
        ),
        (
            "other-kind",
            "another kind learned nothing",
            ask("i think i lost my card", json!({"kind": 2})),
        ),
        (
            "other-namespace",
            "nor did another application",
            ask("i think i lost my card", json!({"namespace": "other"})),
        ),
    ]
}
