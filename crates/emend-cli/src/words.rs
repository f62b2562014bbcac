//! The names that command lines and tables use for the enum numbers of the wire contract.

use std::{sync::LazyLock, time::Duration};

use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use emend_core::ratings::target_name;
use emend_proto::{
    common::v1::{self as common, ResourceKind, RiskLevel, Scope},
    feedback::v1::{DeliveryState, Wait},
    learning::v1::{CandidateStatus, Counting, ImportAs, ImportMode},
};

/// A kind of resource, by any of the names in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub emend_core::Kind);

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Kind; emend_core::Kind::ALL.len()] = {
            let mut all = [Kind(emend_core::Kind::ALL[0]); emend_core::Kind::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = Kind(emend_core::Kind::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let aliases = self.0.names().filter(|name| *name != self.0.name());
        Some(
            PossibleValue::new(self.0.name())
                .aliases(aliases)
                .help(self.0.rules().summary),
        )
    }
}

impl Kind {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        self.0.number()
    }
}

/// A kind that phrases are resolved to, or the one that says what is never an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerKind(pub Kind);

impl ValueEnum for AnswerKind {
    fn value_variants<'a>() -> &'a [Self] {
        static ANSWERS: LazyLock<Vec<AnswerKind>> = LazyLock::new(|| {
            let answers = Kind::value_variants()
                .iter()
                .filter(|kind| kind.0.rules().is_answer || kind.0 == emend_core::Kind::Prohibition);
            answers.map(|kind| AnswerKind(*kind)).collect()
        });
        &ANSWERS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        self.0.to_possible_value()
    }
}

/// How a term is related to the one that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Relation {
    /// Each finds what the other finds
    Equivalent,
    /// Who searches for the term also finds the representative, but not the other way round
    #[value(name = "one_way", alias = "one-way")]
    OneWay,
    /// The term is a misspelling
    Typo,
}

impl From<Relation> for emend_core::Relation {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::Equivalent => Self::Equivalent,
            Relation::OneWay => Self::OneWay,
            Relation::Typo => Self::Typo,
        }
    }
}

/// The numbers of several kinds.
pub fn kind_numbers(kinds: &[Kind]) -> Vec<i32> {
    kinds.iter().map(|kind| kind.number()).collect()
}

/// The status of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Status {
    /// Gathering votes
    Pending,
    /// A person has to decide
    #[value(name = "awaiting_review", aliases = ["awaiting-review", "review"])]
    AwaitingReview,
    /// Its value is what nodes answer with
    #[value(aliases = ["approved", "accepted"])]
    Applied,
    /// A person rejected it
    Rejected,
    /// Another value replaced it
    Superseded,
    /// It lost its supporters, or its resource was deleted
    Withdrawn,
}

impl From<Status> for CandidateStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::AwaitingReview => Self::AwaitingReview,
            Status::Applied => Self::Applied,
            Status::Rejected => Self::Rejected,
            Status::Superseded => Self::Superseded,
            Status::Withdrawn => Self::Withdrawn,
        }
    }
}

/// The status of what only people decide about: a version of a prompt, a suggested entry of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reviewed {
    /// Gathering votes, as other candidates do: there are none
    #[value(hide = true)]
    Pending,
    /// A person has to decide
    #[value(name = "awaiting_review", aliases = ["awaiting-review", "review"])]
    AwaitingReview,
    /// A person approved or wrote it, and it is current
    #[value(aliases = ["approved", "accepted"])]
    Applied,
    /// A person rejected it
    Rejected,
    /// Another one took its place
    Superseded,
    /// It was taken away
    Withdrawn,
}

impl From<Reviewed> for CandidateStatus {
    fn from(status: Reviewed) -> Self {
        match status {
            Reviewed::Pending => Self::Pending,
            Reviewed::AwaitingReview => Self::AwaitingReview,
            Reviewed::Applied => Self::Applied,
            Reviewed::Rejected => Self::Rejected,
            Reviewed::Superseded => Self::Superseded,
            Reviewed::Withdrawn => Self::Withdrawn,
        }
    }
}

impl Reviewed {
    /// What an empty list says further of the statuses that were asked for: what a person has to decide is often called pending.
    pub fn none_gathers_votes(asked_for: &[Self]) -> &'static str {
        if asked_for.contains(&Self::Pending) && !asked_for.contains(&Self::AwaitingReview) {
            "\nNone of these gathers votes; what a person has to decide: --status awaiting_review"
        } else {
            ""
        }
    }
}

/// How much harm a wrong promotion would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Risk {
    /// The first vote applies it
    Low,
    /// The threshold of net confirmations applies it
    Medium,
    /// Only a person applies it
    High,
}

impl From<Risk> for RiskLevel {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Low => Self::Low,
            Risk::Medium => Self::Medium,
            Risk::High => Self::High,
        }
    }
}

/// A language of headings and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InLanguage {
    /// English
    En,
    /// Japanese
    Ja,
}

impl InLanguage {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        match self {
            Self::En => common::Language::En.into(),
            Self::Ja => common::Language::Ja.into(),
        }
    }
}

/// What to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Count {
    /// Each voter counts once
    #[value(name = "distinct_voters", alias = "distinct-voters")]
    DistinctVoters,
    /// Each correction counts
    Occurrences,
}

impl From<Count> for Counting {
    fn from(count: Count) -> Self {
        match count {
            Count::DistinctVoters => Self::DistinctVoters,
            Count::Occurrences => Self::Occurrences,
        }
    }
}

/// What an import does with bad rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BadRows {
    /// A single bad row, and nothing is written
    AllOrNothing,
    /// Good rows are written, bad ones reported
    SkipInvalid,
}

impl From<BadRows> for ImportMode {
    fn from(mode: BadRows) -> Self {
        match mode {
            BadRows::AllOrNothing => Self::AllOrNothing,
            BadRows::SkipInvalid => Self::SkipInvalid,
        }
    }
}

/// What imported rows count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CountAs {
    /// A person's decision: applied and pinned
    Decision,
    /// One vote each, by the caller
    Votes,
}

impl From<CountAs> for ImportAs {
    fn from(count_as: CountAs) -> Self {
        match count_as {
            CountAs::Decision => Self::Decision,
            CountAs::Votes => Self::Votes,
        }
    }
}

/// The state of an event's delivery to learning-svc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Delivery {
    /// In the outbox
    Pending,
    /// Delivered and evaluated
    Delivered,
    /// Permanently refused
    #[value(name = "dead_letter", aliases = ["dead-letter", "dead"])]
    DeadLetter,
}

impl From<Delivery> for DeliveryState {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Pending => Self::Pending,
            Delivery::Delivered => Self::Delivered,
            Delivery::DeadLetter => Self::DeadLetter,
        }
    }
}

/// When a submission answers.
pub fn wait(evaluated: bool) -> Wait {
    if evaluated {
        Wait::Evaluated
    } else {
        Wait::Recorded
    }
}

/// The scope of what is learned: one user, or everybody.
pub fn scope(user: bool) -> Scope {
    if user { Scope::User } else { Scope::Global }
}

/// The short name of an enum's value: in lower case and without the enum's prefix. Numbers unknown to this version are
/// shown as numbers.
pub fn short(name: Option<&str>, prefix: &str, number: i32) -> String {
    name.map_or_else(
        || number.to_string(),
        |name| name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase(),
    )
}

/// The short name of a kind.
pub fn kind_name(number: i32) -> String {
    short(
        ResourceKind::try_from(number).ok().map(|kind| kind.as_str_name()),
        "RESOURCE_KIND_",
        number,
    )
}

/// The short name of a candidate's status.
pub fn status_name(number: i32) -> String {
    short(
        CandidateStatus::try_from(number)
            .ok()
            .map(|status| status.as_str_name()),
        "CANDIDATE_STATUS_",
        number,
    )
}

/// The short name of a cause.
pub fn cause_name(number: i32) -> String {
    short(
        common::Cause::try_from(number)
            .ok()
            .map(|cause| cause.as_str_name()),
        "CAUSE_",
        number,
    )
}

/// The short name of a risk level.
pub fn risk_name(number: i32) -> String {
    short(
        RiskLevel::try_from(number).ok().map(|risk| risk.as_str_name()),
        "RISK_LEVEL_",
        number,
    )
}

/// The short name of an outcome's state.
pub fn outcome_name(number: i32) -> String {
    short(
        common::OutcomeState::try_from(number)
            .ok()
            .map(|state| state.as_str_name()),
        "OUTCOME_STATE_",
        number,
    )
}

/// The short name of a scope.
pub fn scope_name(number: i32) -> String {
    short(
        Scope::try_from(number).ok().map(|scope| scope.as_str_name()),
        "SCOPE_",
        number,
    )
}

pub use emend_base::config::units::duration;

/// Takes one of these values by its name.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = values.iter().map(|value| name(*value));
    PossibleValuesParser::new(names).try_map(move |given| {
        let found = values.iter().find(|value| name(**value) == given);
        found.copied().ok_or("is not one of these")
    })
}

/// Parses a point in time: RFC 3339, or a date, which begins at midnight UTC.
pub fn instant(text: &str) -> Result<prost_types::Timestamp, String> {
    let date = text
        .parse::<jiff::civil::Date>()
        .ok()
        .filter(|_| !text.contains(['T', 't', ' ']));
    let at = match date {
        Some(date) => date.to_zoned(jiff::tz::TimeZone::UTC).map(|at| at.timestamp()),
        None => text.parse::<jiff::Timestamp>(),
    };
    let at = at.map_err(|_| "expected a time such as 2026-01-31T09:00:00Z, or a date such as 2026-01-31")?;
    let (mut seconds, mut nanos) = (at.as_second(), at.subsec_nanosecond());
    if nanos < 0 {
        (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000);
    }
    Ok(prost_types::Timestamp { seconds, nanos })
}

/// A span of time, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanOrNone(pub Option<Duration>);

/// Parses a span of time, or `none`.
pub fn span_or_none(text: &str) -> Result<SpanOrNone, String> {
    if text == "none" {
        Ok(SpanOrNone(None))
    } else {
        duration(text).map(|span| SpanOrNone(Some(span)))
    }
}

/// Parses `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

/// Parses what an AI is asked for: any spelling of a target that every namespace has is that target.
#[expect(clippy::unnecessary_wraps, reason = "clap's form of a parser")]
pub(crate) fn target(text: &str) -> Result<String, String> {
    Ok(target_name(text.trim()).to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_context_entry_is_a_key_and_a_value() {
        assert_eq!(key_value("topic=a=b"), Ok(("topic".into(), "a=b".into())));
        assert!(key_value("topic").is_err());
        assert!(key_value("=x").is_err());
    }

    #[test]
    fn only_kinds_that_phrases_are_resolved_to_are_offered_for_them() {
        let names: Vec<_> = AnswerKind::value_variants()
            .iter()
            .map(|kind| kind.0.0.name())
            .collect();
        assert_eq!(names, ["invocation_phrase", "entity_alias", "prohibition"]);
    }

    #[test]
    fn a_time_is_in_rfc_3339_or_a_date() {
        let seconds = |text| instant(text).map(|at| (at.seconds, at.nanos));
        assert_eq!(seconds("2026-01-01"), Ok((1_767_225_600, 0)));
        assert_eq!(
            seconds("2026-01-01T01:00:00.5+01:00"),
            Ok((1_767_225_600, 500_000_000))
        );
        assert_eq!(seconds("1969-12-31T23:59:59.5Z"), Ok((-1, 500_000_000)));
        // As tables show it.
        assert_eq!(seconds("2026-01-01T00:00Z"), Ok((1_767_225_600, 0)));
        for wrong in ["", "yesterday", "2026-13-01", "2026-01-01T09:00"] {
            assert!(instant(wrong).unwrap_err().contains("2026-01-31"), "{wrong}");
        }
    }

    #[test]
    fn a_word_for_a_status_means_the_same_wherever_it_is_taken() {
        /// Every word that is taken, also those that help does not show, with what it means.
        fn words<T: ValueEnum + Copy + Into<CandidateStatus>>() -> BTreeMap<String, CandidateStatus> {
            let mut words = BTreeMap::new();
            for status in T::value_variants() {
                let taken = status.to_possible_value().unwrap();
                words.extend(
                    taken
                        .get_name_and_aliases()
                        .map(|word| (word.to_owned(), (*status).into())),
                );
            }
            words
        }
        let candidates = words::<Status>();
        assert_eq!(candidates, words::<Reviewed>());
        for (word, status) in [
            ("approved", CandidateStatus::Applied),
            ("pending", CandidateStatus::Pending),
        ] {
            assert_eq!(candidates.get(word), Some(&status), "{word}");
        }
    }

    #[test]
    fn what_waits_for_a_person_is_found_by_who_asks_for_what_is_pending() {
        let further = Reviewed::none_gathers_votes;
        assert!(further(&[Reviewed::Pending, Reviewed::Rejected]).contains("--status awaiting_review"));
        assert_eq!(further(&[Reviewed::Pending, Reviewed::AwaitingReview]), "");
        assert_eq!(further(&[Reviewed::Applied]), "");
    }

    #[test]
    fn enum_numbers_are_shown_by_name_and_unknown_ones_as_numbers() {
        assert_eq!(kind_name(1), "invocation_phrase");
        assert_eq!(kind_name(99), "99");
        assert_eq!(status_name(2), "awaiting_review");
        assert_eq!(cause_name(5), "revert");
        assert_eq!(risk_name(3), "high");
        assert_eq!(outcome_name(2), "applied");
    }
}
