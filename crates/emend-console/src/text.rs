//! Words for people: the two languages, names of kinds, statuses and causes, times, values, and small charts.

use std::fmt::Write as _;

use emend_core::{Kind, Learned, ProfileEntry, Relation};
use emend_proto::{
    common::v1::{
        Actor, Cause, ClaimDecision, ClaimStateValue, DomainDecision, DomainRuleValue, EdgeRelation,
        ResourceKey, ResourceValue, RiskLevel, TrustLevel, resource_value::Value,
    },
    learning::v1::CandidateStatus,
};
use jiff::Timestamp;

/// A language of the pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Language {
    /// English.
    #[default]
    English,
    /// Japanese.
    Japanese,
}

impl Language {
    /// As pages and cookies have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    /// The one of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "en" => Some(Self::English),
            "ja" => Some(Self::Japanese),
            _ => None,
        }
    }

    /// Of a text in both languages, the one in this.
    pub(crate) fn t<'t>(self, english: &'t str, japanese: &'t str) -> &'t str {
        match self {
            Self::English => english,
            Self::Japanese => japanese,
        }
    }

    /// What people call a kind.
    pub(crate) fn kind(self, number: i32) -> String {
        let Some(kind) = Kind::from_number(number) else {
            return format!("{} {number}", self.t("kind", "種別"));
        };
        let (english, japanese) = match kind {
            Kind::InvocationPhrase => ("Phrase", "フレーズ"),
            Kind::EntityAlias => ("Entity", "エンティティ"),
            Kind::Prohibition => ("Prohibition", "禁止"),
            Kind::Synonym => ("Synonym", "同義語"),
            Kind::DomainRule => ("Domain", "ドメイン"),
            Kind::FewShotSet => ("Examples", "出力例"),
            Kind::ClaimState => ("Claim", "主張"),
            Kind::EdgeLabel => ("Edge", "エッジ"),
            Kind::Prompt => ("Prompt", "プロンプト"),
            Kind::Profile => ("Profile", "プロフィール"),
            Kind::SearchTuning => ("Search tuning", "検索設定"),
            Kind::NearLookup => ("Near look-ups", "類似検索"),
        };
        self.t(english, japanese).to_owned()
    }

    /// What people call a candidate's status.
    pub(crate) fn status(self, number: i32) -> &'static str {
        match CandidateStatus::try_from(number).unwrap_or_default() {
            CandidateStatus::Unspecified => self.t("unknown", "不明"),
            CandidateStatus::Pending => self.t("pending", "投票中"),
            CandidateStatus::AwaitingReview => self.t("awaiting review", "レビュー待ち"),
            CandidateStatus::Applied => self.t("applied", "適用済み"),
            CandidateStatus::Rejected => self.t("rejected", "却下"),
            CandidateStatus::Superseded => self.t("superseded", "置き換え済み"),
            CandidateStatus::Withdrawn => self.t("withdrawn", "取り下げ"),
        }
    }

    /// Why a candidate has its status, by the service's name of the reason; that name where a newer service has another.
    pub(crate) fn reason(self, name: &str) -> String {
        let text = match name {
            "BELOW_THRESHOLD" => self.t("too few people said so", "賛同者が不足しています"),
            "RIVALS" => self.t("others say otherwise", "対立する意見があります"),
            "PERSON_DECIDES" => self.t("a person decides this", "人が判断します"),
            "SECOND_REVIEWER" => self.t(
                "another reviewer has to approve it, too",
                "もう1人の承認が必要です",
            ),
            "PINNED" => self.t(
                "a person set what is in force: votes alone do not change it",
                "人が設定した値が有効なため、投票だけでは変わりません",
            ),
            "HIGH_RISK" => self.t(
                "the risk is high: only a person applies it",
                "高リスクのため、人の承認が必要です",
            ),
            "REVERTED" => self.t(
                "it was reverted: votes alone do not bring it back",
                "差し戻されたため、投票だけでは復活しません",
            ),
            "DELETED" => self.t(
                "it was deleted by hand: votes alone do not bring it back",
                "手動で削除されたため、投票だけでは復活しません",
            ),
            "PERSONAL_DATA" => self.t(
                "it may hold personal data",
                "個人情報が含まれている可能性があります",
            ),
            "RESOURCE_LIMIT" => self.t("a limit is reached", "上限に達しています"),
            "FROZEN" => self.t("the policy is frozen", "ポリシーが凍結されています"),
            "RETRACTED" => self.t("it was retracted", "撤回されました"),
            "ERASED" => self.t("whose own it was has been erased", "本人のデータが消去されました"),
            "NOT_ENTITLED" => self.t(
                "whoever sent it is not entitled to decide",
                "送信者に決定する権限がありません",
            ),
            "NEWER_RULING" => self.t("a newer decision is in force", "より新しい決定が有効です"),
            "NOTHING_TO_CLEAR" => self.t("there was nothing to clear", "取り消す対象がありません"),
            "TARGET_NOT_FOUND" => self.t(
                "what it is about is not known yet",
                "対象がまだ登録されていません",
            ),
            "NOT_CORRECTABLE" => self.t("it can't be corrected", "修正できない対象です"),
            "BASE_CHANGED" => self.t(
                "another version is current by now",
                "適用中のバージョンが変わりました",
            ),
            "EDITED" => self.t("it was applied in another wording", "修正版が適用されました"),
            "UNDONE" => self.t("the decision was undone", "判断が取り消されました"),
            other => other,
        };
        text.to_owned()
    }

    /// What is wrong with a node, by the name that it reports; that name where a newer node has another.
    pub(crate) fn problem(self, name: &str) -> String {
        let text = match name {
            "DIGEST_MISMATCH" => self.t(
                "it held something else than the services",
                "サービスと内容が一致しません",
            ),
            "INSTALLATION_MISMATCH" => self.t(
                "another installation answered it",
                "別のインストールが応答しました",
            ),
            "AWAY" => self.t("what it writes to can't be reached", "書き込み先に接続できません"),
            "REFUSED" => self.t(
                "what it writes is refused: the log of its edge says why",
                "書き込みが拒否されています(理由はエッジのログにあります)",
            ),
            "DRIFT" => self.t(
                "somebody else changed what it wrote, and it is left so",
                "書き込んだ内容が他者に変更され、そのまま残されています",
            ),
            other => other,
        };
        text.to_owned()
    }

    /// Why a resource changed.
    pub(crate) fn cause(self, number: i32) -> &'static str {
        match Cause::try_from(number).unwrap_or_default() {
            Cause::Unspecified => self.t("unknown", "不明"),
            Cause::Votes => self.t("votes", "投票"),
            Cause::Review => self.t("review", "レビュー"),
            Cause::Operator => self.t("operator", "運用者"),
            Cause::Import => self.t("import", "インポート"),
            Cause::Revert => self.t("revert", "差し戻し"),
            Cause::Retraction => self.t("retraction", "撤回"),
            Cause::Policy => self.t("policy", "ポリシー"),
            Cause::Erasure => self.t("erasure", "消去"),
            Cause::Ruling => self.t("ruling", "裁定"),
            Cause::Rating => self.t("rating", "評価"),
            Cause::Undo => self.t("undone", "取り消し"),
        }
    }

    /// Who did something: `mia (portal)`. Where clients are not told apart, the person alone.
    pub(crate) fn actor(self, actor: Option<&Actor>) -> String {
        actor.map_or_else(String::new, |actor| {
            self.person(&actor.on_behalf_of, &actor.caller)
        })
    }

    /// A person and the client that spoke for them, either of which may be unknown.
    pub(crate) fn person(self, person: &str, caller: &str) -> String {
        match (person, caller) {
            ("", "" | "anonymous") => self.t("anonymous", "匿名").to_owned(),
            ("", "system") => self.t("the system", "システム").to_owned(),
            ("", caller) => caller.to_owned(),
            (person, caller) if person == caller => person.to_owned(),
            (person, "" | "anonymous") => person.to_owned(),
            (person, caller) => format!("{person} ({caller})"),
        }
    }

    /// How far a source is trusted; empty if there is none.
    pub(crate) fn level(self, number: i32) -> &'static str {
        match TrustLevel::try_from(number).unwrap_or_default() {
            TrustLevel::Unspecified => "",
            TrustLevel::Primary => self.t("primary", "一次情報"),
            TrustLevel::Government => self.t("government", "政府機関"),
            TrustLevel::Academic => self.t("academic", "学術機関"),
            TrustLevel::Trusted => self.t("trusted", "信頼"),
            TrustLevel::Low => self.t("low", "低"),
            TrustLevel::Unverified => self.t("unverified", "未検証"),
            TrustLevel::Blocked => self.t("blocked", "ブロック"),
        }
    }

    /// What was decided about a domain.
    pub(crate) fn rule(self, rule: &DomainRuleValue) -> String {
        let level = self.level(rule.level);
        match rule.decision() {
            DomainDecision::Unspecified => String::new(),
            DomainDecision::Block => self.t("blocked", "ブロック").to_owned(),
            DomainDecision::Unblock if level.is_empty() => self.t("not blocked", "ブロック解除").to_owned(),
            DomainDecision::Unblock => format!("{} ({level})", self.t("not blocked", "ブロック解除")),
            DomainDecision::SetTrust => format!("{} {level}", self.t("trust:", "信頼レベル:")),
            DomainDecision::Clear => self.t("taken back", "取り消し").to_owned(),
        }
    }

    /// What a word of a decision says; the word itself where it is none of the kind.
    pub(crate) fn decision(self, kind: Kind, word: &str) -> String {
        match Learned::of(kind, word.to_owned()) {
            Ok(learned) if !word.is_empty() => {
                let value = ResourceValue {
                    value: Some(emend_wire::kinds::value(&learned)),
                    ..ResourceValue::default()
                };
                value_line(self, Some(&value))
            }
            _ => word.to_owned(),
        }
    }

    /// How an edge speaks of its claim.
    pub(crate) fn relation(self, number: i32) -> &'static str {
        match EdgeRelation::try_from(number).unwrap_or_default() {
            EdgeRelation::Unspecified => "–",
            EdgeRelation::Supports => self.t("supports", "支持"),
            EdgeRelation::Refutes => self.t("refutes", "反論"),
            EdgeRelation::Neutral => self.t("neutral", "中立"),
            EdgeRelation::Cites => self.t("cites", "引用"),
        }
    }

    /// What was decided about a claim.
    fn claim_state(self, state: &ClaimStateValue) -> String {
        let decision = match state.decision() {
            ClaimDecision::Unspecified => "",
            ClaimDecision::Rejected => self.t("rejected", "却下"),
            ClaimDecision::Restored => self.t("restored", "復元"),
            ClaimDecision::Cleared => self.t("taken back", "取り消し"),
        };
        match &*state.reason_code {
            "" => decision.to_owned(),
            code => format!("{decision} ({code})"),
        }
    }

    /// How a term and what it stands for belong together.
    pub(crate) fn synonymy(self, relation: Relation) -> &'static str {
        match relation {
            Relation::Equivalent => self.t("equivalent", "双方向"),
            Relation::OneWay => self.t("one way", "一方向"),
            Relation::Typo => self.t("typo", "誤記"),
        }
    }

    /// What people call a value of a rating; that of an application's own target is its name.
    pub(crate) fn rating(self, name: &str) -> String {
        let (english, japanese) = match name {
            "GOOD" => ("Good", "良い"),
            "NEUTRAL" => ("Neutral", "普通"),
            "BAD" => ("Bad", "悪い"),
            "CORRECT" => ("Right", "正しい"),
            "FALSE_POSITIVE" => ("False alarm", "誤検知"),
            "MISSED" => ("Missed", "見逃し"),
            "APPROVED" => ("Approve", "承認"),
            "REJECTED" => ("Reject", "却下"),
            own => return own.to_owned(),
        };
        self.t(english, japanese).to_owned()
    }

    /// How much harm a wrong promotion does.
    pub(crate) fn risk(self, number: i32) -> &'static str {
        match RiskLevel::try_from(number).unwrap_or_default() {
            RiskLevel::Unspecified => "",
            RiskLevel::Low => self.t("low risk", "低リスク"),
            RiskLevel::Medium => self.t("medium risk", "中リスク"),
            RiskLevel::High => self.t("high risk", "高リスク"),
        }
    }
}

/// A number as the RPCs give it, in groups of three digits.
pub(crate) fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time: for machines, from which a browser makes the reader's own, and in UTC for everybody else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// RFC 3339; empty if there is none.
    pub iso: String,
    /// Date, hour and minute, UTC.
    pub text: String,
}

/// A time of a message.
pub(crate) fn moment(at: Option<&prost_types::Timestamp>) -> Moment {
    let Some(at) = at.and_then(|at| Timestamp::new(at.seconds, at.nanos).ok()) else {
        return Moment::default();
    };
    let iso = at.to_string();
    let text = iso.get(..16).unwrap_or(&iso).replace('T', " ");
    Moment {
        text: format!("{text} UTC"),
        iso,
    }
}

/// What a value says was learned; `None` if this version does not know the value.
pub(crate) fn learned(value: Option<&ResourceValue>) -> Option<Learned> {
    emend_wire::kinds::learned(value?.value.as_ref()?).ok()
}

/// The key as people write it.
pub(crate) fn display(key: Option<&ResourceKey>, value: Option<&ResourceValue>) -> String {
    let display = value.map(|value| value.display.as_str()).unwrap_or_default();
    if display.is_empty() {
        key.map(|key| key.key.clone()).unwrap_or_default()
    } else {
        display.to_owned()
    }
}

/// What was learned, in one line.
pub(crate) fn value_line(language: Language, value: Option<&ResourceValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::DomainRule(rule)) => return language.rule(rule),
        Some(Value::EdgeLabel(label)) if !label.cleared => {
            return language.relation(label.relation).to_owned();
        }
        Some(Value::ClaimState(state)) => return language.claim_state(state),
        _ => {}
    }
    let Some(learned) = learned(value) else {
        return String::new();
    };
    match &learned {
        Learned::FewShotSet(set) => match language {
            Language::English => format!("{} good, {} to avoid", set.good.len(), set.bad.len()),
            Language::Japanese => format!("良い例 {}、避ける例 {}", set.good.len(), set.bad.len()),
        },
        Learned::Prompt(prompt) => format!("v{}: {}", prompt.version, learned.maps_to()),
        Learned::ProfileEntry(ProfileEntry::Years(years)) => match language {
            Language::English => format!("{years} years"),
            Language::Japanese => format!("{years} 年"),
        },
        Learned::ProfileEntry(ProfileEntry::Text(entry)) => entry.clone(),
        Learned::Synonym(synonym) => format!(
            "{} ({})",
            synonym.representative,
            language.synonymy(synonym.relation)
        ),
        _ => learned.maps_to().to_owned(),
    }
}

/// The whole text of a value, of which [`value_line`] shows the beginning.
pub(crate) fn whole(value: Option<&ResourceValue>) -> String {
    match learned(value) {
        Some(Learned::Prompt(prompt)) => prompt.text().to_owned(),
        Some(learned) => learned.maps_to().to_owned(),
        None => String::new(),
    }
}

/// The sign between a key and what was learned for it.
pub(crate) fn arrow(value: Option<&ResourceValue>) -> String {
    learned(value).map_or_else(|| "→".to_owned(), |learned| learned.arrow().to_string())
}

/// The beginning of a long text.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// A line of values as the points of an SVG polyline, in a box of that width and height.
pub(crate) fn sparkline(values: &[i64], width: u32, height: u32) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let steps = u32::try_from(values.len().saturating_sub(1)).unwrap_or(1).max(1);
    let mut points = String::new();
    for (at, value) in (0_u32..).zip(values) {
        let x = f64::from(at * width) / f64::from(steps);
        #[expect(clippy::cast_precision_loss, reason = "a chart some pixels high")]
        let y = f64::from(height) - 1.0 - (*value as f64 / most as f64) * f64::from(height.saturating_sub(2));
        let _ = write!(points, "{x:.1},{y:.1} ");
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (-1_000, "-1,000"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn values_are_in_the_readers_language() {
        for (kind, word, english, japanese) in [
            (Kind::DomainRule, "block", "blocked", "ブロック"),
            (Kind::DomainRule, "low", "trust: low", "信頼レベル: 低"),
            (Kind::EdgeLabel, "refutes", "refutes", "反論"),
            (
                Kind::ClaimState,
                "rejected:SPAM",
                "rejected (SPAM)",
                "却下 (SPAM)",
            ),
        ] {
            for (language, text) in [(Language::English, english), (Language::Japanese, japanese)] {
                assert_eq!(language.decision(kind, word), text, "{word}");
            }
        }
        for word in ["", "of another release"] {
            assert_eq!(Language::Japanese.decision(Kind::EdgeLabel, word), word);
        }
        assert_eq!(Language::Japanese.synonymy(Relation::OneWay), "一方向");
    }

    #[test]
    fn problems_of_nodes_are_in_the_readers_language() {
        for name in [
            "DIGEST_MISMATCH",
            "INSTALLATION_MISMATCH",
            "AWAY",
            "REFUSED",
            "DRIFT",
        ] {
            let [english, japanese] =
                [Language::English, Language::Japanese].map(|language| language.problem(name));
            assert!(
                english != name && japanese != name && english != japanese,
                "{name}"
            );
        }
        assert_eq!(
            Language::English.problem("OF_ANOTHER_RELEASE"),
            "OF_ANOTHER_RELEASE"
        );
    }

    #[test]
    fn a_time_is_given_for_machines_and_people() {
        let at = prost_types::Timestamp {
            seconds: 1_764_390_000,
            nanos: 500_000_000,
        };
        let moment = moment(Some(&at));
        assert_eq!(moment.iso, "2025-11-29T04:20:00.5Z");
        assert_eq!(moment.text, "2025-11-29 04:20 UTC");
    }

    #[test]
    fn a_chart_fits_its_box() {
        assert_eq!(sparkline(&[0, 5, 10], 100, 20), "0.0,19.0 50.0,10.0 100.0,1.0 ");
        assert_eq!(sparkline(&[], 100, 20), "");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("あいう", 2), "あい…");
        assert_eq!(shortened("あいう", 3), "あいう");
    }
}
