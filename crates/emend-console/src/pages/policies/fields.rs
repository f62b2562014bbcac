//! The fields of a policy, each with what it does in words.

use emend_core::{Kind, NearLookup, NearMethod, kinds::Rule};
use emend_proto::{
    common::v1::{Language as PromptLanguage, RiskLevel},
    learning::v1::{Counting, EntitledRole, Policy, policy},
};

use super::words::role;
use crate::{labels, pages::Choice, text::Language, typed};

/// A field of a form, by its path in the policy.
#[derive(Debug)]
pub(crate) struct Field {
    pub path: &'static str,
    pub label: &'static str,
    /// What it does.
    pub effect: &'static str,
    pub input: Input,
}

/// How a field is filled in.
#[derive(Debug)]
pub(crate) enum Input {
    /// By a choice among a few.
    Choices(Vec<Choice>),
    /// By a number.
    Number { value: i64, least: i64, most: i64 },
    /// By a time, for example 90d; may be empty.
    Span(String),
}

/// How phrases of a kind that nobody corrected are answered, as it is now; nothing where no phrase is looked up as one.
pub(super) fn near_fields(language: Language, near: &NearLookup) -> Vec<Field> {
    let t = |english: &'static str, japanese: &'static str| language.t(english, japanese);
    let chosen = NearMethod::ALL
        .into_iter()
        .position(|(method, _)| method == near.method());
    let chosen = chosen.and_then(|at| i32::try_from(at).ok()).unwrap_or_default();
    vec![
        Field {
            path: "near.min_confidence",
            label: label(language, "near.min_confidence"),
            effect: t(
                "0 to 1: phrases that nobody corrected are answered by similar ones that surely.",
                "0–1。未修正のフレーズに、類似フレーズの学習結果で応答する基準です。",
            ),
            input: Input::Span(near.min_confidence().to_string()),
        },
        Field {
            path: "near.method",
            label: label(language, "near.method"),
            effect: t(
                "Nodes answer so only where a backend asks for it.",
                "バックエンドが要求した場合だけ使われます。",
            ),
            input: choices(
                chosen,
                &[
                    (0, NearMethod::ALL[0].1, t("by words", "単語で比較")),
                    (1, NearMethod::ALL[1].1, t("not at all", "使わない")),
                ],
            ),
        },
        Field {
            path: "near.vectors",
            label: label(language, "near.vectors"),
            effect: t(
                "Nodes with another file, or none, compare by words. Empty: no vectors.",
                "異なるファイルのノードは単語だけで比較します。空欄なら使いません。",
            ),
            input: Input::Span(near.vectors().to_owned()),
        },
    ]
}

/// What people call a field.
pub(super) fn label(language: Language, path: &'static str) -> &'static str {
    labels::label(language, path).unwrap_or(path)
}

/// How many people must approve.
pub(super) const REVIEWERS_NEEDED: &str = "reviewers_needed";

type Choices<'c> = &'c [(i32, &'c str, &'c str)];

pub(super) const RISKS: [(i32, &str); 3] = [
    (RiskLevel::Low as i32, "low"),
    (RiskLevel::Medium as i32, "medium"),
    (RiskLevel::High as i32, "high"),
];
pub(super) const COUNTINGS: [(i32, &str); 2] = [
    (Counting::DistinctVoters as i32, "voters"),
    (Counting::Occurrences as i32, "occurrences"),
];
pub(super) const ROLES: [(i32, &str); 4] = [
    (EntitledRole::Reporter as i32, "reporter"),
    (EntitledRole::Reviewer as i32, "reviewer"),
    (EntitledRole::Operator as i32, "operator"),
    (EntitledRole::Admin as i32, "admin"),
];
pub(super) const LANGUAGES: [(i32, &str); 2] = [
    (PromptLanguage::En as i32, "en"),
    (PromptLanguage::Ja as i32, "ja"),
];
pub(super) const REVIEWERS: [(i32, &str); 2] = [(1, "1"), (2, "2")];
pub(super) const SWITCH: [(i32, &str); 2] = [(0, "false"), (1, "true")];

/// The paths of the fields that policies of a kind have here.
pub(super) fn paths(kind: Kind) -> Vec<&'static str> {
    let own: &[&str] = match kind.rules().rule {
        Rule::Votes { .. } => &[
            "risk_level",
            "threshold",
            "counting",
            "half_life",
            "max_derived_voters",
            "max_counted_feedback",
        ],
        Rule::Ruling(_) => &["ruling.entitled_role"],
        Rule::Window(_) => &[
            "window.good",
            "window.bad",
            "window.max_text_chars",
            "window.language",
        ],
        Rule::Review(_) => &["review.min_bad", "review.automatic"],
    };
    own.iter()
        .copied()
        .chain(is_approved(kind).then_some(REVIEWERS_NEEDED))
        .chain(["max_resources", "max_value_bytes"])
        .collect()
}

/// Whether people approve what is learned of a kind.
pub(super) fn is_approved(kind: Kind) -> bool {
    !matches!(kind.rules().rule, Rule::Window(_))
}

/// All of them, as they are now.
pub(super) fn fields(language: Language, kind: Kind, policy: &Policy) -> Vec<Field> {
    paths(kind)
        .into_iter()
        .filter_map(|path| field(language, policy, path))
        .collect()
}

fn choices(chosen: i32, choices: Choices<'_>) -> Input {
    let choice = |(number, value, label): &(i32, &str, &str)| Choice {
        value: (*value).to_owned(),
        label: (*label).to_owned(),
        is_chosen: *number == chosen,
    };
    Input::Choices(choices.iter().map(choice).collect())
}

fn field(language: Language, policy: &Policy, path: &'static str) -> Option<Field> {
    match path.split_once('.') {
        None => of_votes(language, policy, path).or_else(|| of_all(language, policy, path)),
        Some((_, part)) => of_rule(language, policy.rule.as_ref()?, path, part),
    }
}

fn of_votes(language: Language, policy: &Policy, path: &'static str) -> Option<Field> {
    let t = |english: &'static str, japanese: &'static str| language.t(english, japanese);
    let number = |value: i32, least, most| Input::Number {
        value: value.into(),
        least,
        most,
    };
    let (effect, input) = match path {
        "risk_level" => (
            t(
                "Decides how much it takes until nodes answer with it.",
                "適用に必要な条件を決めます。",
            ),
            choices(
                policy.risk_level,
                &[
                    (
                        RISKS[0].0,
                        RISKS[0].1,
                        t("low: the first vote applies it", "低: 1票で適用"),
                    ),
                    (
                        RISKS[1].0,
                        RISKS[1].1,
                        t("medium: at the threshold", "中: しきい値で適用"),
                    ),
                    (
                        RISKS[2].0,
                        RISKS[2].1,
                        t("high: a person decides", "高: 人が判断"),
                    ),
                ],
            ),
        ),
        "threshold" => (
            t(
                "By so many it must lead its strongest rival.",
                "最も強い対立候補をこの数だけ上回ると適用されます。",
            ),
            number(policy.threshold, 1, 1_000),
        ),
        "counting" => (
            t(
                "Whether somebody who says it twice counts twice.",
                "同じ人の繰り返しを数えるかどうかを決めます。",
            ),
            choices(
                policy.counting,
                &[
                    (
                        COUNTINGS[0].0,
                        COUNTINGS[0].1,
                        t("people, each once", "人(1人1票)"),
                    ),
                    (
                        COUNTINGS[1].0,
                        COUNTINGS[1].1,
                        t("every correction", "すべての修正"),
                    ),
                ],
            ),
        ),
        "half_life" => (
            t(
                "Old votes fade, so that newer ones win sooner: 1h to 3650d. Empty: votes never fade.",
                "古い票の重みが減り、新しい票が勝ちやすくなります(1h–3650d)。空欄なら減りません。",
            ),
            Input::Span(typed::span_text(policy.half_life.as_ref())),
        ),
        "max_derived_voters" => (
            t(
                "A client that names no reporters counts as at most so many people in one contest.",
                "報告者を名乗らないクライアントは、1つの競合でこの人数までしか数えません。",
            ),
            number(policy.max_derived_voters, 1, 1_000),
        ),
        "max_counted_feedback" => (
            t(
                "Of one contest; older ones no longer count.",
                "1つの競合について最新のものだけを数えます。",
            ),
            number(policy.max_counted_feedback, 100, 100_000),
        ),
        _ => return None,
    };
    Some(Field {
        path,
        label: label(language, path),
        effect,
        input,
    })
}

fn of_all(language: Language, policy: &Policy, path: &'static str) -> Option<Field> {
    let t = |english: &'static str, japanese: &'static str| language.t(english, japanese);
    let (effect, input) = match path {
        REVIEWERS_NEEDED => (
            t(
                "With two, the first approval waits for another person; callers must be authenticated.",
                "2人の場合、最初の承認はもう1人を待ちます(要認証)。",
            ),
            choices(
                policy.reviewers_needed,
                &[
                    (REVIEWERS[0].0, REVIEWERS[0].1, t("one reviewer", "レビュアー1人")),
                    (
                        REVIEWERS[1].0,
                        REVIEWERS[1].1,
                        t("two reviewers", "レビュアー2人"),
                    ),
                ],
            ),
        ),
        "max_resources" => (
            t(
                "Resources of this kind; what would be one more awaits review.",
                "この種別の件数です。超える分はレビュー待ちになります。",
            ),
            Input::Number {
                value: policy.max_resources,
                least: 1,
                most: 2_000_000,
            },
        ),
        "max_value_bytes" => (
            t(
                "A larger value is refused; of examples the newest that fit are kept.",
                "超える値は拒否されます。出力例は収まる最新のものだけを保持します。",
            ),
            Input::Number {
                value: policy.max_value_bytes.into(),
                least: 1,
                most: 524_288,
            },
        ),
        _ => return None,
    };
    Some(Field {
        path,
        label: label(language, path),
        effect,
        input,
    })
}

fn of_rule(language: Language, rule: &policy::Rule, path: &'static str, part: &str) -> Option<Field> {
    let t = |english: &'static str, japanese: &'static str| language.t(english, japanese);
    let number = |value: i32, least, most| Input::Number {
        value: value.into(),
        least,
        most,
    };
    let (effect, input) = match (rule, part) {
        (policy::Rule::Ruling(ruling), "entitled_role") => {
            let roles = ROLES.map(|(number, name)| (number, name, role(language, number)));
            (
                t(
                    "What others say awaits review. Decisions made before stay.",
                    "それ以外の人の修正はレビュー待ちになります。以前の決定は変わりません。",
                ),
                choices(ruling.entitled_role, &roles),
            )
        }
        (policy::Rule::Window(window), "good") => (
            t(
                "So many of the newest stand in the prompt.",
                "最新のものがこの数だけプロンプトに入ります。",
            ),
            number(window.good, 0, 20),
        ),
        (policy::Rule::Window(window), "bad") => (
            t(
                "So many of the newest stand in the prompt.",
                "最新のものがこの数だけプロンプトに入ります。",
            ),
            number(window.bad, 0, 20),
        ),
        (policy::Rule::Window(window), "max_text_chars") => (
            t(
                "Longer texts of examples are cut.",
                "超える部分は切り詰められます。",
            ),
            number(window.max_text_chars, 100, 10_000),
        ),
        (policy::Rule::Window(window), "language") => (
            t(
                "In which the headings around examples are written.",
                "出力例の前後に付く見出しの言語です。",
            ),
            choices(
                window.language,
                &[
                    (LANGUAGES[0].0, LANGUAGES[0].1, "English"),
                    (LANGUAGES[1].0, LANGUAGES[1].1, "日本語"),
                ],
            ),
        ),
        (policy::Rule::Review(review), "min_bad") => (
            t(
                "Since the newest proposal, before a better prompt can be generated.",
                "前回の提案以降にこの数の悪い評価があると、改善案を作成できます。",
            ),
            number(review.min_bad, 1, 1_000),
        ),
        (policy::Rule::Review(review), "automatic") => (
            t(
                "A person approves each in any case.",
                "いずれの場合も人が承認します。",
            ),
            choices(
                review.automatic.into(),
                &[
                    (SWITCH[0].0, SWITCH[0].1, t("when somebody asks", "依頼時")),
                    (SWITCH[1].0, SWITCH[1].1, t("by themselves", "自動")),
                ],
            ),
        ),
        _ => return None,
    };
    Some(Field {
        path,
        label: label(language, path),
        effect,
        input,
    })
}
