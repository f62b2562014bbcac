//! The rating dialogs: what each asks for.

use emend_core::{
    RatingClass,
    ratings::{RatingTarget, TARGETS, target_named},
};
use emend_proto::feedback::v1::RatedTarget;

use crate::text::Language;

/// The dialogs of every namespace, with the targets that each rates.
pub(super) const DIALOGS: [(&str, &[&str]); 4] = [
    ("interpret", &["INTERPRET"]),
    ("summarize", &["SUMMARIZE_HOURLY", "SUMMARIZE_DAILY"]),
    ("evaluate", &["EVALUATE"]),
    ("task", &["TASK_EXTRACT"]),
];

/// A dialog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dialog {
    /// Its part of the path.
    pub path: String,
    /// The targets among which a person chooses; mostly one.
    pub targets: Vec<String>,
    /// The values; none where they are not known here.
    pub values: Vec<Value>,
    /// What it asks for when the output is not good.
    pub asks: Asks,
}

/// A value of a rating.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub name: String,
    pub label: String,
    /// What it counts as: good, neutral or bad.
    pub class: &'static str,
}

/// What a dialog asks for when the output is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// The problems and the corrected text.
    Correction,
    /// The right judgement.
    Judgement,
    /// Why it is rejected.
    Rejection,
}

/// What people call a dialog, or a target of the application's own.
pub(super) fn label(language: Language, path: &str) -> String {
    let (english, japanese) = match path {
        "interpret" => ("Interpretation", "AI 解釈"),
        "summarize" => ("Summary", "要約"),
        "evaluate" => ("Evaluation", "ハルシネーション評価"),
        "task" => ("Task", "タスク抽出"),
        own => return own.to_owned(),
    };
    language.t(english, japanese).to_owned()
}

fn class(class: Option<RatingClass>) -> &'static str {
    match class {
        Some(RatingClass::Good) => "good",
        Some(RatingClass::Bad) => "bad",
        Some(RatingClass::Neutral) | None => "neutral",
    }
}

fn asks(target: &RatingTarget) -> Asks {
    match target.name {
        "TASK_EXTRACT" => Asks::Rejection,
        _ if target.is_judgement => Asks::Judgement,
        _ => Asks::Correction,
    }
}

impl Dialog {
    /// The dialog of that name: one of every namespace, or that of a target.
    pub(super) fn of(name: &str, own: &[RatedTarget], language: Language) -> Self {
        let known = DIALOGS.into_iter().find(|(path, _)| *path == name);
        let targets: Vec<String> = match (known, target_named(name)) {
            (Some((_, targets)), _) => targets.iter().map(|&target| target.to_owned()).collect(),
            (None, Some(target)) => vec![target.name.to_owned()],
            (None, None) => vec![name.to_owned()],
        };
        let first = targets.first();
        let built_in = TARGETS
            .iter()
            .find(|target| first.is_some_and(|first| first == target.name));
        let (values, asks) = if let Some(target) = built_in {
            let values = target.values.iter();
            let values = values.map(|value| (value.name.to_owned(), Some(value.class)));
            (values.collect(), asks(target))
        } else {
            let own = own.iter().find(|target| target.name == name);
            let values = own.map_or(&[][..], |target| &target.values).iter();
            let asks = if own.is_some_and(|target| target.is_judgement) {
                Asks::Judgement
            } else {
                Asks::Correction
            };
            let values: Vec<(String, Option<RatingClass>)> = values
                .map(|value| (value.name.clone(), RatingClass::from_number(value.counts_as)))
                .collect();
            (values, asks)
        };
        Self {
            path: name.to_owned(),
            targets,
            values: values
                .into_iter()
                .map(|(name, counts_as)| Value {
                    label: language.rating(&name),
                    class: class(counts_as),
                    name,
                })
                .collect(),
            asks,
        }
    }

    /// Whether a rating with this value says that the output is good, so that nothing is wrong with it.
    pub(super) fn is_good(&self, value: &str) -> bool {
        let known = self.values.iter().find(|known| known.name == value);
        known.is_some_and(|known| known.class == "good")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialog_has_the_values_of_its_targets() {
        for (name, values, asks) in [
            ("interpret", &["GOOD", "BAD"][..], Asks::Correction),
            ("summarize", &["GOOD", "NEUTRAL", "BAD"], Asks::Correction),
            ("summarize-daily", &["GOOD", "NEUTRAL", "BAD"], Asks::Correction),
            (
                "evaluate",
                &["CORRECT", "FALSE_POSITIVE", "MISSED"],
                Asks::Judgement,
            ),
            ("task", &["APPROVED", "REJECTED"], Asks::Rejection),
            ("TASK_EXTRACT", &["APPROVED", "REJECTED"], Asks::Rejection),
            ("TRIAGE", &[], Asks::Correction),
        ] {
            let dialog = Dialog::of(name, &[], Language::English);
            let names: Vec<_> = dialog.values.iter().map(|value| &*value.name).collect();
            assert_eq!((names, dialog.asks), (values.to_vec(), asks), "{name}");
        }
    }

    #[test]
    fn only_what_counts_as_good_has_nothing_wrong_with_it() {
        let dialog = Dialog::of("evaluate", &[], Language::English);
        assert!(dialog.is_good("CORRECT"));
        assert!(!dialog.is_good("MISSED"));
        assert!(!dialog.is_good("?"));
    }
}
