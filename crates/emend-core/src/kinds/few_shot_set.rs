//! The examples with which an AI is asked for an output: what people found good, and what to avoid. Decided by a window of
//! ratings: the newest outputs of each class, by their live ratings, are the set, which changes as a whole.

use std::borrow::Cow;

use super::{Field, Form, KindRules, Learned, Rule, WindowRules};
use crate::{
    ratings::{Example, FewShotSet, OutputTally, Rated, RatedId, RatingClass, WindowPolicy, set_of},
    violation::Invalid,
};

pub(super) const RULES: KindRules = KindRules {
    name: "few_shot_set",
    number: 6,
    summary: "The newest rated examples for a target",
    short_name: "few_shot",
    aliases: &["few-shot-set", "few-shot"],
    key: Form::Target,
    qualifier: None,
    rule: Rule::Window(WindowRules {
        value,
        shows,
        without,
        nothing,
    }),
    parse: |_| {
        Err(Invalid::new(
            "must be empty: a set of examples is made of ratings, no single choice says it",
        ))
    },
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⇐',
};

pub(super) fn fields(set: &FewShotSet) -> Vec<Field<'_>> {
    let example = |name, text| Field {
        name,
        text: Cow::Owned(text),
        distinguishes: true,
    };
    let mut fields = vec![Field::distinguishing("language", set.language.name())];
    fields.extend(set.good.iter().map(|good| example("good", line(good))));
    fields.extend(set.bad.iter().map(|bad| example("bad", line(bad))));
    fields
}

/// An example in one line.
fn line(example: &Example) -> String {
    let Example {
        input,
        output,
        corrected,
        issues,
        ..
    } = example;
    let mut line = format!("{input} → {output}");
    if !corrected.is_empty() {
        line += ", better ";
        line += corrected;
    }
    if !issues.is_empty() {
        line += ", because ";
        line += &issues.join("; ");
    }
    line
}

pub(super) fn maps_to(_: &FewShotSet) -> &'static str {
    "examples"
}

pub(super) fn describe(target: &str, set: &FewShotSet) -> String {
    let (good, bad) = (set.good.len(), set.bad.len());
    format!("“{target}” has {good} good examples and {bad} to avoid")
}

fn value(
    outputs: &[OutputTally],
    ratings: &[Rated],
    window: &WindowPolicy,
    max_bytes: usize,
) -> Option<Learned> {
    let set = set_of(outputs, ratings, window, max_bytes);
    (!set.is_empty()).then_some(Learned::FewShotSet(set))
}

fn shows(learned: &Learned, rated: RatedId, class: RatingClass) -> bool {
    let Learned::FewShotSet(set) = learned else {
        return false;
    };
    let block = match class {
        RatingClass::Good => &set.good,
        RatingClass::Bad => &set.bad,
        RatingClass::Neutral => return false,
    };
    block.iter().any(|example| example.rated == rated)
}

fn without(learned: &Learned, rated: RatedId, class: RatingClass) -> Option<Learned> {
    let Learned::FewShotSet(set) = learned else {
        return None;
    };
    let mut set = set.clone();
    match class {
        RatingClass::Good => set.good.retain(|example| example.rated != rated),
        RatingClass::Bad => set.bad.retain(|example| example.rated != rated),
        RatingClass::Neutral => {}
    }
    (!set.is_empty()).then_some(Learned::FewShotSet(set))
}

fn nothing() -> Learned {
    Learned::FewShotSet(FewShotSet::default())
}
