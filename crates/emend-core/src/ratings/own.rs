//! Targets of an application's own: what else can be rated in its namespace, and with which values.

use std::fmt::Write as _;

use super::{
    alias,
    rating::{RatingClass, RatingTarget, TARGETS},
};
use crate::violation::{Invalid, Violations, bounded_text};

/// The most targets that an application may have of its own.
pub const MAX_OWN_TARGETS: usize = 50;
/// The most values of one of them.
pub const MAX_OWN_VALUES: usize = 20;
/// The most characters of the name of a target or a value.
const NAME_CHARS: usize = 64;
/// How many characters of names an error lists.
const LISTED_CHARS: usize = 1_000;

/// A target of an application's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTarget {
    name: String,
    values: Vec<OwnValue>,
    is_judgement: bool,
}

/// One value of such a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnValue {
    name: String,
    class: RatingClass,
}

impl OwnValue {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it counts as.
    pub fn class(&self) -> RatingClass {
        self.class
    }
}

impl OwnTarget {
    /// Parses a target: its name, its values and whether a rating may say what the right judgement is. Names are trimmed and
    /// compared byte for byte.
    pub fn parse<'a>(
        name: &str,
        values: impl IntoIterator<Item = (&'a str, RatingClass)>,
        is_judgement: bool,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let name = violations.check("name", bounded_text(name, 1, NAME_CHARS));
        let mut parsed: Vec<OwnValue> = Vec::new();
        let mut count = 0;
        for (index, (name, class)) in values.into_iter().enumerate() {
            count += 1;
            if count > MAX_OWN_VALUES {
                continue;
            }
            let field = format!("values[{index}].name");
            if let Some(name) = violations.check(&field, bounded_text(name, 1, NAME_CHARS)) {
                if parsed.iter().any(|value| value.name == name) {
                    violations.add(field, format!("{name:?} is there twice"));
                }
                parsed.push(OwnValue { name, class });
            }
        }
        if !(1..=MAX_OWN_VALUES).contains(&count) {
            violations.add(
                "values",
                format!("must have 1 to {MAX_OWN_VALUES} entries, has {count}"),
            );
        }
        let parsed = name.map(|name| Self {
            name,
            values: parsed,
            is_judgement,
        });
        violations.finish(parsed)
    }

    /// Its name; the key of its few-shot set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values that a rating may have.
    pub fn values(&self) -> &[OwnValue] {
        &self.values
    }

    /// Whether a rating may say what the right judgement is.
    pub fn is_judgement(&self) -> bool {
        self.is_judgement
    }
}

/// Checks that an application may have these targets of its own: that they are not too many, that no name is there twice, and
/// that none is a target that every namespace has. Violations name fields of `emend.feedback.v1.Settings`.
pub fn check_own_targets(targets: &[OwnTarget]) -> Result<(), Violations> {
    let mut violations = Violations::new();
    let count = targets.len();
    if count > MAX_OWN_TARGETS {
        violations.add(
            "rated_targets",
            format!("must have at most {MAX_OWN_TARGETS} entries, has {count}"),
        );
    }
    for (index, target) in targets.iter().enumerate() {
        let name = &target.name;
        let wrong = if let Some(known) = alias::target_named(name) {
            Invalid::new(format!(
                "{name:?} is a target that every namespace has: {}",
                known.name
            ))
        } else if targets[..index].iter().any(|other| other.name == *name) {
            Invalid::new(format!("{name:?} is there twice"))
        } else {
            continue;
        };
        violations.check::<()>(&format!("rated_targets[{index}].name"), Err(wrong));
    }
    violations.finish(Some(()))
}

/// A target that can be rated: one that every namespace has, or else one of the application's own.
pub(super) enum Known<'a> {
    Everywhere(&'static RatingTarget),
    Own(&'a OwnTarget),
}

/// The target with this name.
pub(super) fn target<'a>(own: &'a [OwnTarget], name: &str) -> Option<Known<'a>> {
    let everywhere = TARGETS.iter().find(|target| target.name == name);
    let own = || own.iter().find(|target| target.name == name);
    everywhere
        .map(Known::Everywhere)
        .or_else(|| own().map(Known::Own))
}

impl Known<'_> {
    pub(super) fn is_judgement(&self) -> bool {
        match self {
            Self::Everywhere(target) => target.is_judgement,
            Self::Own(target) => target.is_judgement,
        }
    }

    /// The names of its values.
    pub(super) fn values(&self) -> Vec<&str> {
        match self {
            Self::Everywhere(target) => target.values.iter().map(|value| value.name).collect(),
            Self::Own(target) => target.values.iter().map(OwnValue::name).collect(),
        }
    }

    /// What the value with this name counts as.
    pub(super) fn class_of(&self, value: &str) -> Option<RatingClass> {
        match self {
            Self::Everywhere(target) => {
                let known = target.values.iter().find(|known| known.name == value);
                known.map(|known| known.class)
            }
            Self::Own(target) => {
                let known = target.values.iter().find(|known| known.name == value);
                known.map(|known| known.class)
            }
        }
    }
}

/// Names in a list, as many as fit into an error.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    let mut left_out = 0;
    for name in names {
        if list.chars().count() + name.chars().count() > LISTED_CHARS {
            left_out += 1;
            continue;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(name);
    }
    if left_out > 0 {
        // Writing to a String can't fail.
        let _ = write!(list, " and {left_out} more");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: (&str, RatingClass) = ("RIGHT", RatingClass::Good);
    const WRONG: (&str, RatingClass) = ("WRONG", RatingClass::Bad);

    fn fields(violations: Violations) -> Vec<String> {
        let violations = violations.into_vec();
        violations.into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn every_violation_of_a_target_is_named() {
        let long = "é".repeat(NAME_CHARS + 1);
        let refused = |name: &str, values: &[(&'static str, RatingClass)]| {
            fields(OwnTarget::parse(name, values.iter().copied(), false).unwrap_err())
        };
        assert_eq!(refused("", &[]), ["name", "values"]);
        assert_eq!(refused(&long, &[RIGHT, WRONG, RIGHT]), ["name", "values[2].name"]);
        assert_eq!(
            refused("T", &[RIGHT, ("a\u{7}b", RatingClass::Bad)]),
            ["values[1].name"]
        );
        assert_eq!(
            refused("T", &[RIGHT; MAX_OWN_VALUES + 1]).last().unwrap(),
            "values"
        );
        let longest = &long[.."é".len() * NAME_CHARS];
        let parsed = OwnTarget::parse(longest, [(longest, RatingClass::Neutral), RIGHT], true).unwrap();
        assert_eq!(parsed.name(), longest);
        assert_eq!(parsed.values()[0].class(), RatingClass::Neutral);
    }

    #[test]
    fn own_targets_are_bounded_and_take_no_others_name() {
        let target = |name: &str| OwnTarget::parse(name, [RIGHT], false).unwrap();
        let check = |names: &[&str]| {
            let targets: Vec<OwnTarget> = names.iter().map(|name| target(name)).collect();
            check_own_targets(&targets).map_err(fields)
        };
        assert_eq!(
            check(&["TRIAGE", "triage", "interpreting"]),
            Ok(()),
            "three names"
        );
        assert_eq!(
            check(&["TRIAGE", "task-extract", " TRIAGE"]),
            Err(vec![
                "rated_targets[1].name".to_owned(),
                "rated_targets[2].name".to_owned()
            ])
        );
        let names: Vec<String> = (0..=MAX_OWN_TARGETS).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(check(&names), Err(vec!["rated_targets".to_owned()]));
        assert_eq!(check(&names[1..]), Ok(()));
    }

    #[test]
    fn a_target_that_every_namespace_has_cannot_be_hidden() {
        let own = [OwnTarget::parse("INTERPRET", [("GOOD", RatingClass::Bad)], true).unwrap()];
        let known = target(&own, "INTERPRET").unwrap();
        assert_eq!(known.class_of("GOOD"), Some(RatingClass::Good));
        assert!(!known.is_judgement());
    }

    #[test]
    fn an_error_lists_as_many_names_as_fit() {
        let long = "x".repeat(600);
        let list = listed([long.as_str(), "short", long.as_str()]);
        assert_eq!(list, format!("{long}, short and 1 more"));
    }
}
