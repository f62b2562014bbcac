//! What a policy means, in words.

use emend_core::{Kind, kinds::Rule};
use emend_proto::{
    common::v1::RiskLevel,
    learning::v1::{EntitledRole, Policy, policy},
};

use crate::text::Language;

/// The role that a number names, for people.
pub(super) fn role(language: Language, number: i32) -> &'static str {
    match EntitledRole::try_from(number).unwrap_or_default() {
        EntitledRole::Reporter => language.t("whoever may submit corrections", "修正を送信できる人"),
        EntitledRole::Operator => language.t("operators", "運用者"),
        EntitledRole::Admin => language.t("administrators", "管理者"),
        EntitledRole::Reviewer | EntitledRole::Unspecified => language.t("reviewers", "レビュー担当者"),
    }
}

/// What it takes beside one person's approval.
pub(super) fn second(language: Language, policy: &Policy) -> &'static str {
    if policy.reviewers_needed > 1 {
        language.t(
            " What people approve takes two reviewers.",
            "人による適用には2人の承認が必要です。",
        )
    } else {
        ""
    }
}

/// What a policy means.
pub(super) fn words(language: Language, kind: Kind, policy: &Policy) -> String {
    let english = language == Language::English;
    match (kind.rules().rule, &policy.rule) {
        (Rule::Votes { .. }, _) => match policy.risk_level() {
            RiskLevel::High if english => "Votes apply nothing: a person decides each.".to_owned(),
            RiskLevel::High => "投票だけでは適用されません。すべて人が判断します。".to_owned(),
            RiskLevel::Low if english => {
                "Applied with the first vote; taken away when it is retracted.".to_owned()
            }
            RiskLevel::Low => "最初の1票で適用され、撤回されると取り消されます。".to_owned(),
            _ if english => format!(
                "Applied once {} more people support it than its strongest rival.",
                policy.threshold
            ),
            _ => format!(
                "最も強い対立候補より {} 人多く支持されると適用されます。",
                policy.threshold
            ),
        },
        (Rule::Ruling(_), rule) => {
            let entitled = match rule {
                Some(policy::Rule::Ruling(ruling)) => ruling.entitled_role,
                _ => 0,
            };
            let who = role(language, entitled);
            if english {
                format!("The newest decision of {who} is in force at once; what others say awaits review.")
            } else {
                format!("{who}の最新の決定がすぐに有効になります。それ以外はレビュー待ちになります。")
            }
        }
        (Rule::Window(_), Some(policy::Rule::Window(window))) if english => format!(
            "The newest {} good and {} bad ratings of a target are its examples; texts are cut after {} characters.",
            window.good, window.bad, window.max_text_chars
        ),
        (Rule::Window(_), Some(policy::Rule::Window(window))) => format!(
            "対象ごとに最新の良い評価 {} 件、悪い評価 {} 件を出力例にします({} 文字まで)。",
            window.good, window.bad, window.max_text_chars
        ),
        (Rule::Review(_), Some(policy::Rule::Review(review))) => {
            let bad = review.min_bad;
            match (english, review.automatic) {
                (true, true) => format!(
                    "After {bad} bad ratings an improvement is proposed by itself; a person approves it."
                ),
                (true, false) => {
                    format!("After {bad} bad ratings an improvement can be asked for; a person approves it.")
                }
                (false, true) => format!("悪い評価が {bad} 件になると改善案が自動で作られ、人が承認します。"),
                (false, false) => format!("悪い評価が {bad} 件になると改善案を作成でき、人が承認します。"),
            }
        }
        _ if english => "The default applies.".to_owned(),
        _ => "既定のポリシーです。".to_owned(),
    }
}
