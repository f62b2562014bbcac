//! How queries of one type are searched. Decided by rulings of whoever sets values: the newest one in force applies. Where none
//! is, the defaults do.

#![expect(clippy::ref_option, reason = "the same signatures for all kinds")]

use std::{borrow::Cow, sync::Arc};

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{roles::Role, search::Tuning};

/// A tuning that somebody set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchTuning {
    tuning: Arc<Tuning>,
    /// As one line.
    line: Arc<str>,
}

impl SearchTuning {
    /// What is set.
    pub const fn tuning(&self) -> &Arc<Tuning> {
        &self.tuning
    }
}

impl From<Tuning> for SearchTuning {
    fn from(tuning: Tuning) -> Self {
        Self {
            line: tuning.to_string().into(),
            tuning: Arc::new(tuning),
        }
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "search_tuning",
    number: 11,
    summary: "How queries of one type are searched",
    short_name: "tuning",
    aliases: &["search-tuning", "tunings"],
    key: Form::Exact,
    qualifier: None,
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk: |_| false,
        needs_target: false,
        entitled: Role::Operator,
        by_corrections: true,
    }),
    parse: |line| Tuning::parse(&line).map(|tuning| Learned::SearchTuning(Some(tuning.into()))),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(set: &Option<SearchTuning>) -> Vec<Field<'_>> {
    let field = |name, text: String| Field {
        name,
        text: Cow::Owned(text),
        distinguishes: true,
    };
    let Some(SearchTuning { tuning, .. }) = set else {
        return vec![field("cleared", "true".to_owned())];
    };
    let mut fields = vec![
        field("top_k", tuning.top_k().to_string()),
        field("min_score", tuning.min_score().to_string()),
    ];
    // As the line has them, so that no two texts are equal that mean something else.
    let pair = |setting, (name, number): (&str, f64)| format!("{setting}.{name}={number}");
    let confidences = tuning.confidences();
    fields.extend(confidences.map(|threshold| field("confidences", pair("confidence", threshold))));
    let weights = tuning.weights();
    fields.extend(weights.map(|weight| field("weights", pair("weight", weight))));
    let namespaces = tuning.namespaces().iter();
    fields.extend(namespaces.map(|namespace| field("namespaces", namespace.clone())));
    let steps = tuning.retry().iter();
    fields.extend(steps.map(|step| field("retry", format!("retry={step}"))));
    fields.push(field("suggestion", tuning.suggestion().to_owned()));
    fields
}

pub(super) fn maps_to(set: &Option<SearchTuning>) -> &str {
    set.as_ref().map_or("cleared", |set| &set.line)
}

pub(super) fn describe(query_type: &str, set: &Option<SearchTuning>) -> String {
    match set {
        Some(set) => format!("queries of type “{query_type}” are searched with {}", set.line),
        None => format!("queries of type “{query_type}” are searched with the defaults"),
    }
}

fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    newest(newest_first, &nothing())
}

fn nothing() -> Learned {
    Learned::SearchTuning(None)
}

#[cfg(test)]
mod tests {
    use super::{super::Kind, *};

    #[test]
    fn the_newest_tuning_applies_and_a_cleared_one_leaves_the_defaults() {
        let [few, many] =
            ["top_k=5", "top_k=50"].map(|line| Learned::of(Kind::SearchTuning, line.to_owned()).unwrap());
        assert_eq!(in_force(&[&many, &few]), Some(many.clone()));
        assert_eq!(in_force(&[&nothing(), &few]), None);
        // The defaults, set by somebody, are a resource.
        let defaults = Learned::SearchTuning(Some(Tuning::default().into()));
        assert_eq!(in_force(&[&defaults, &few]), Some(defaults));
    }

    #[test]
    fn what_differs_in_any_setting_is_another_ruling() {
        let canonical = |line: &str| {
            Learned::of(Kind::SearchTuning, line.to_owned())
                .unwrap()
                .canonical()
        };
        let lines = [
            "top_k=11",
            "min_score=0.41",
            "confidence.high=0.8",
            "weight.high=0.8",
            "namespaces=a",
            "namespaces=a,b",
            "namespaces=b,a",
            "retry=none",
            "retry=synonyms",
            "suggestion=Try fewer words.",
        ];
        let distinct: std::collections::HashSet<_> = lines.iter().map(|line| canonical(line)).collect();
        assert_eq!(distinct.len(), lines.len());
        assert_eq!(canonical("top_k=10"), canonical("min_score=0.4"));
    }
}
