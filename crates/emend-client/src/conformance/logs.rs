//! The logs whose streams the vectors have, in the words of a model of the server.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use emend_core::{
    Example, FeedbackId, FewShotSet, Kind, Language, Learned, NormalizedKey, ProfileEntry, Prompt, Relation,
    ResourceValue, Synonym,
    kinds::{KNOWN_TECHNOLOGIES, Variable},
    ratings::RatedId,
};
use emend_proto::{learning::v1::SnapshotReason, wire::Message};
use prost::Message as _;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server_log::{Key, ServerLog, encoded, response, verb, verb_key};

/// A commit: keys and their values.
pub(super) type Changes = Vec<(Key, Option<Vec<u8>>)>;

pub(super) fn base64(message: Message) -> Value {
    BASE64_STANDARD.encode(response(message).encode_to_vec()).into()
}

pub(super) fn encode(messages: impl IntoIterator<Item = Message>) -> Vec<Value> {
    messages.into_iter().map(base64).collect()
}

/// One stream.
pub(super) fn stream(messages: impl IntoIterator<Item = Message>) -> Value {
    json!({"messages": encode(messages)})
}

/// The streams of a line.
pub(super) fn streams(streams: impl IntoIterator<Item = Value>) -> Value {
    json!({"streams": streams.into_iter().collect::<Vec<_>>()})
}

pub(super) fn everything(log: &ServerLog) -> Vec<Message> {
    log.snapshot(log.head(), SnapshotReason::NoCursor, 3)
}

fn key(kind: Kind, key: &str, qualifier: &str, user: &str) -> Key {
    (
        "fund-admin".into(),
        kind.number(),
        key.into(),
        qualifier.into(),
        user.into(),
    )
}

pub(super) fn forbidden(phrase: &str, choice: &str, user: &str) -> (Key, Option<Vec<u8>>) {
    let value = encoded(phrase, Learned::Forbidden(choice.into()));
    (key(Kind::Prohibition, phrase, choice, user), Some(value))
}

pub(super) fn own_verb(phrase: &str, choice: &str, user: &str) -> (Key, Option<Vec<u8>>) {
    (
        key(Kind::InvocationPhrase, phrase, "", user),
        Some(verb(phrase, choice)),
    )
}

pub(super) fn log(commits: impl IntoIterator<Item = Changes>) -> ServerLog {
    let mut log = ServerLog::new("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20");
    for commit in commits {
        log.commit(commit);
    }
    log
}

/// Three phrases, one commit each.
pub(super) fn three() -> ServerLog {
    log(["a", "b", "c"].map(|phrase| vec![(verb_key(phrase), Some(verb(phrase, "do_it")))]))
}

/// Phrases, entities and prohibitions, of everybody and of users.
pub(super) fn answers() -> ServerLog {
    let entity = encoded("The Fund", Learned::Entity("fund-7".into()));
    log([
        vec![own_verb("set up a csa", "create_csa", "")],
        vec![own_verb("set up a csa", "create_isda", "jane")],
        vec![
            own_verb("close the fund", "close_fund", ""),
            forbidden("close the fund", "close_fund", ""),
        ],
        vec![
            own_verb("book it", "book_trade", ""),
            forbidden("book it", "book_trade", "joe"),
        ],
        vec![
            own_verb("pay", "pay_invoice", "mia"),
            own_verb("pay", "pay_fee", ""),
            forbidden("pay", "pay_invoice", ""),
        ],
        vec![(key(Kind::EntityAlias, "the fund", "", ""), Some(entity))],
        vec![
            forbidden("show nav", "caf\u{e9}", ""),
            forbidden("show nav", "Z", "joe"),
        ],
        vec![own_verb("相手の顔にダメージ", "face_damage", "")],
    ])
}

/// Terms that stand for others.
pub(super) fn terms() -> ServerLog {
    let stands_for = |term: &str, representative: &str, relation: Relation, user: &str| {
        let normal = |text: &str| NormalizedKey::parse(text).unwrap().as_str().to_owned();
        let value = Synonym {
            relation,
            representative: representative.to_owned(),
        };
        let key = key(Kind::Synonym, &normal(term), &normal(representative), user);
        (key, Some(encoded(term, Learned::Synonym(value))))
    };
    log([vec![
        stands_for("フォロー", "フォロワー", Relation::Equivalent, ""),
        stands_for("フォロワ", "フォロワー", Relation::Equivalent, ""),
        stands_for("場", "フィールド", Relation::Equivalent, ""),
        stands_for("ボード", "フィールド", Relation::Equivalent, ""),
        stands_for("poodle", "dog", Relation::OneWay, ""),
        stands_for("hound", "dog", Relation::Equivalent, ""),
        stands_for("dgo", "dog", Relation::Typo, ""),
        stands_for("CSA", "credit support annex", Relation::Equivalent, ""),
        stands_for("my thing", "custody account", Relation::Equivalent, "jane"),
    ]])
}

/// Prompts with variables, examples and a profile.
pub(super) fn prompts() -> ServerLog {
    let version = |target: &str, label: &str, number: u32, text: &str, variables: &[(&str, Option<&str>)]| {
        let variables = variables.iter().map(|(name, default)| Variable {
            name: (*name).into(),
            default: default.map(str::to_owned),
        });
        let mut prompt = Prompt::new(text, variables.collect(), vec![]).unwrap();
        prompt.version = number;
        (
            key(Kind::Prompt, target, label, ""),
            Some(encoded(target, Learned::Prompt(prompt))),
        )
    };
    let example = |last: u8, issues: &[&str], corrected: &str| {
        let id = format!("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f{last:02}");
        Example {
            feedback: FeedbackId::parse(&id).unwrap(),
            rated: RatedId(Uuid::from_u128(u128::from(last))),
            input: format!("input {last}"),
            output: format!("output {last}"),
            corrected: corrected.into(),
            issues: issues.iter().map(|&issue| issue.to_owned()).collect(),
        }
    };
    let set = |target: &str, language: Language| {
        let set = FewShotSet {
            language,
            good: vec![example(10, &[], "")],
            bad: vec![example(11, &["too long", "wrong day"], "shorter")],
        };
        (
            key(Kind::FewShotSet, target, "", ""),
            Some(encoded(target, Learned::FewShotSet(set))),
        )
    };
    let technology = encoded("Rust", Learned::ProfileEntry(ProfileEntry::Text("Rust".into())));
    let variables = [("day", None), ("tone", Some("dry"))];
    log([vec![
        version("PLAIN", "production", 1, "  {{other}}\r\nas it is\t\n\n", &[]),
        version(
            "FILLED",
            "production",
            1,
            "On {{day}}, in a {{ tone }} tone.",
            &variables,
        ),
        version("FILLED", "staging", 2, "Only {{day}}.", &variables[..1]),
        version(
            "SUMMARIZE_DAILY",
            "production",
            3,
            "Summarise {{day}}.",
            &variables[..1],
        ),
        set("SUMMARIZE_DAILY", Language::En),
        version("要約", "production", 1, "要約してください。", &[]),
        set("要約", Language::Ja),
        (
            key(Kind::Profile, KNOWN_TECHNOLOGIES, "rust", "jane"),
            Some(technology),
        ),
    ]])
}

/// The value of a prohibition.
pub(super) fn forbidden_value(phrase: &str, choice: &str) -> Vec<u8> {
    encoded(phrase, Learned::Forbidden(choice.into()))
}

/// A verb's value whose key a version of the normalisation made.
pub(super) fn of_normalisation(version: u32, phrase: &str) -> Vec<u8> {
    let value = ResourceValue {
        normalization_version: version,
        ..ResourceValue::new(phrase, Learned::Verb("x".into()))
    };
    emend_wire::value::encode(&value).to_vec()
}
