//! What users read above the results of a query. Decided by rulings: the newest one in force applies.

#![expect(clippy::ref_option, reason = "the same signatures for all kinds")]

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{normalize::parse_choice, roles::Role};

/// What files call that nothing is shown.
const CLEARED: &str = "cleared";

pub(super) const RULES: KindRules = KindRules {
    name: "notice",
    number: 12,
    summary: "What users read above the results of a query",
    short_name: "notice",
    aliases: &["notices"],
    key: Form::Phrase,
    qualifier: None,
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk: |_| false,
        needs_target: false,
        entitled: Role::Reviewer,
    }),
    parse: |text| parse_choice(&text).map(|text| Learned::Notice(Some(text))),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(notice: &Option<String>) -> Vec<Field<'_>> {
    match notice {
        Some(text) => vec![Field::distinguishing("text", text)],
        None => vec![Field::distinguishing("cleared", "true")],
    }
}

pub(super) fn maps_to(notice: &Option<String>) -> &str {
    notice.as_deref().unwrap_or(CLEARED)
}

pub(super) fn describe(query: &str, notice: &Option<String>) -> String {
    match notice {
        Some(text) => format!("above the results of “{query}” stands: {text}"),
        None => format!("nothing stands above the results of “{query}”"),
    }
}

fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    newest(newest_first, &nothing())
}

fn nothing() -> Learned {
    Learned::Notice(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_notice_stands_and_a_cleared_one_leaves_none() {
        let [old, new] = ["Moved.", "Here."].map(|text| Learned::Notice(Some(text.to_owned())));
        assert_eq!(in_force(&[&new, &old]), Some(new.clone()));
        assert_eq!(in_force(&[&nothing(), &old]), None);
        assert_ne!(
            Learned::Notice(Some(CLEARED.to_owned())).canonical(),
            nothing().canonical()
        );
    }
}
