//! A tuning as one line, as files and command lines have it: `top_k=20 min_score=0.3 confidence.high=0.8 weight.keyword=0.3
//! namespaces=effects,faq retry=+combined,-0.1,top_k=20 retry=synonyms suggestion=Try fewer words.`
//!
//! What is left out has its default. A step of the plan adds namespaces with `+`, lowers the minimum score with `-`, raises
//! `top_k` and has `synonyms` expanded; `retry=none` is a plan without steps. The suggestion takes the rest of the line.

use std::fmt;

use super::{RetryStep, RetryStepFields, Tuning, TuningFields};
use crate::violation::Invalid;

impl Tuning {
    /// Parses a line; [`Tuning`]'s `Display` writes it.
    pub fn parse(line: &str) -> Result<Self, Invalid> {
        let mut fields = TuningFields::default();
        for (name, value) in settings(line)? {
            set(&mut fields, name, value)?;
        }
        Self::new(fields).map_err(|violations| Invalid::new(violations.to_string()))
    }

    /// This tuning with the settings of a line; what the line does not name stays. A setting without a value (`top_k=`) returns
    /// to its default, a confidence or weight without one is removed.
    pub fn with(&self, line: &str) -> Result<Self, Invalid> {
        let changed = settings(line)?;
        let before = self.to_string();
        let mut fields = TuningFields::default();
        for (name, value) in settings(&before)? {
            if !changed.iter().any(|(changed, _)| *changed == name) {
                set(&mut fields, name, value)?;
            }
        }
        for (name, value) in changed {
            if value.is_empty() {
                // Says whether there is such a setting; what it would be set to does not matter.
                let stand_in = if name == "retry" { "none" } else { "1" };
                set(&mut TuningFields::default(), name, stand_in)?;
            } else {
                set(&mut fields, name, value)?;
            }
        }
        Self::new(fields).map_err(|violations| Invalid::new(violations.to_string()))
    }
}

/// The settings of a line, at least one: their names and values.
fn settings(line: &str) -> Result<Vec<(&str, &str)>, Invalid> {
    let mut rest = line.trim();
    if rest.is_empty() {
        return Err(Invalid::new("is required, for example top_k=20 min_score=0.3"));
    }
    let mut settings = Vec::new();
    while !rest.is_empty() {
        if let Some(suggestion) = rest.strip_prefix("suggestion=") {
            settings.push(("suggestion", suggestion));
            break;
        }
        let (setting, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = after.trim_start();
        let setting = setting
            .split_once('=')
            .ok_or_else(|| Invalid::new(format!("must be settings NAME=VALUE, has {setting:?}")))?;
        settings.push(setting);
    }
    Ok(settings)
}

fn set(fields: &mut TuningFields, name: &str, value: &str) -> Result<(), Invalid> {
    let twice = || Invalid::new(format!("has {name} twice"));
    match name {
        "top_k" => {
            if fields.top_k.replace(number(name, value)?).is_some() {
                return Err(twice());
            }
        }
        "min_score" => {
            if fields.min_score.replace(number(name, value)?).is_some() {
                return Err(twice());
            }
        }
        "namespaces" => {
            if !fields.namespaces.is_empty() {
                return Err(twice());
            }
            fields.namespaces = value.split(',').map(str::to_owned).collect();
        }
        "retry" => {
            let steps = fields.retry.get_or_insert_default();
            if value != "none" {
                steps.push(step(value)?);
            }
        }
        "suggestion" => value.clone_into(&mut fields.suggestion),
        _ => match name.split_once('.') {
            Some(("confidence", key)) => fields.confidences.push((key.to_owned(), number(name, value)?)),
            Some(("weight", key)) => fields.weights.push((key.to_owned(), number(name, value)?)),
            _ => {
                return Err(Invalid::new(format!(
                    "has no setting {name:?}; there are top_k, min_score, confidence.NAME, weight.NAME, namespaces, \
                     retry and suggestion"
                )));
            }
        },
    }
    Ok(())
}

fn step(value: &str) -> Result<RetryStepFields, Invalid> {
    let mut step = RetryStepFields::default();
    for part in value.split(',') {
        if let Some(namespace) = part.strip_prefix('+') {
            step.namespaces.push(namespace.to_owned());
        } else if let Some(lower) = part.strip_prefix('-') {
            step.lower_min_score_by = number("retry", lower)?;
        } else if let Some(top_k) = part.strip_prefix("top_k=") {
            step.top_k = number("retry", top_k)?;
        } else if part == "synonyms" {
            step.expand = true;
        } else {
            return Err(Invalid::new(format!(
                "has a retry with {part:?}; it must be none, or of +NAMESPACE, -SCORE, top_k=NUMBER and synonyms, with commas \
                 between them"
            )));
        }
    }
    Ok(step)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Invalid> {
    value
        .parse()
        .map_err(|_| Invalid::new(format!("must have a number as {name}, has {value:?}")))
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "top_k={} min_score={}", self.top_k(), self.min_score())?;
        for (name, from) in self.confidences() {
            write!(f, " confidence.{name}={from}")?;
        }
        for (name, weight) in self.weights() {
            write!(f, " weight.{name}={weight}")?;
        }
        if !self.namespaces().is_empty() {
            write!(f, " namespaces={}", self.namespaces().join(","))?;
        }
        for step in self.retry() {
            write!(f, " retry={step}")?;
        }
        if self.retry().is_empty() {
            f.write_str(" retry=none")?;
        }
        if !self.suggestion().is_empty() {
            write!(f, " suggestion={}", self.suggestion())?;
        }
        Ok(())
    }
}

impl fmt::Display for RetryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.namespaces.iter().map(|name| format!("+{name}")).collect();
        if self.lower_min_score_by.get() > 0.0 {
            parts.push(format!("-{}", self.lower_min_score_by.get()));
        }
        if self.top_k > 0 {
            parts.push(format!("top_k={}", self.top_k));
        }
        if self.expand {
            parts.push("synonyms".to_owned());
        }
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::clean;

    #[test]
    fn a_line_says_what_differs_from_the_defaults() {
        for (line, whole) in [
            (
                "top_k=20",
                "top_k=20 min_score=0.4 retry=+combined,-0.1,top_k=20 retry=synonyms",
            ),
            (
                " min_score=0.35   namespaces=effects,faq retry=none ",
                "top_k=10 min_score=0.35 namespaces=effects,faq retry=none",
            ),
            (
                "weight.keyword=0.3 weight.embedding=0.7 confidence.low=0.5 confidence.high=0.8 retry=synonyms \
                 suggestion=Try fewer words = more results.",
                "top_k=10 min_score=0.4 confidence.high=0.8 confidence.low=0.5 weight.embedding=0.7 weight.keyword=0.3 \
                 retry=synonyms suggestion=Try fewer words = more results.",
            ),
        ] {
            assert_eq!(Tuning::parse(line).unwrap().to_string(), whole);
        }
        let whole = Tuning::default().to_string();
        assert_eq!(Tuning::parse(&whole).unwrap(), Tuning::default());
    }

    #[test]
    fn a_line_that_cannot_be_read_says_why() {
        for (line, why) in [
            ("", "is required"),
            ("top_k", "NAME=VALUE"),
            ("top_k=many", "a number as top_k"),
            ("top_k=1 top_k=2", "top_k twice"),
            ("top_k=101", "top_k: must be 1 to 100"),
            ("topk=10", "has no setting \"topk\""),
            ("retry=combined", "has a retry with \"combined\""),
            ("weight.=1", "weights[0].name"),
            ("namespaces=a,,b", "namespaces[1]"),
        ] {
            let refused = Tuning::parse(line).unwrap_err();
            assert!(refused.0.contains(why), "{line}: {refused}");
        }
    }

    #[test]
    fn what_a_change_does_not_name_stays() {
        let set = |before: &str, line: &str| {
            Tuning::parse(before)
                .unwrap()
                .with(line)
                .map(|tuning| tuning.to_string())
        };
        let before = "top_k=20 min_score=0.3 confidence.high=0.8 weight.keyword=0.3 namespaces=effects retry=synonyms suggestion=Few words.";
        for (line, after) in [
            ("top_k=30", before.replace("top_k=20", "top_k=30")),
            (
                "confidence.low=0.5",
                before.replace("=0.8", "=0.8 confidence.low=0.5"),
            ),
            ("weight.keyword=0.4", before.replace("keyword=0.3", "keyword=0.4")),
            ("retry=none", before.replace("synonyms", "none")),
            ("namespaces=faq,cards", before.replace("effects", "faq,cards")),
            ("suggestion=Try again.", before.replace("Few words", "Try again")),
            ("suggestion=", before.replace(" suggestion=Few words.", "")),
            (
                "top_k= namespaces=",
                before
                    .replace("top_k=20", "top_k=10")
                    .replace(" namespaces=effects", ""),
            ),
            ("confidence.high=", before.replace(" confidence.high=0.8", "")),
        ] {
            assert_eq!(set(before, line), Ok(after), "{line}");
        }
        for (line, why) in [
            ("", "is required"),
            ("topk=", "has no setting \"topk\""),
            ("top_k=101", "1 to 100"),
        ] {
            assert!(set(before, line).unwrap_err().0.contains(why), "{line}");
        }
    }

    fn a_name() -> impl Strategy<Value = String> {
        "[^\\s\\p{C}\\p{M},=+]{1,8}"
            .prop_map(|name| clean(&name).into_owned())
            .prop_filter("a name", |name| !name.is_empty())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            top_k in 1u32..=100,
            min_score in 0.0f64..=1.0,
            named in proptest::collection::btree_map(a_name(), 0.0f64..=1.0, 0..4),
            namespaces in proptest::collection::btree_set(a_name(), 0..4),
            steps in proptest::collection::vec((proptest::collection::btree_set(a_name(), 1..3), 0.0f64..=1.0, 0u32..=100, any::<bool>()), 0..4),
            suggestion in "([a-z][a-z =]{0,20}[a-z])?",
        ) {
            let named: Vec<(String, f64)> = named.into_iter().collect();
            let steps = steps.into_iter().map(|(namespaces, lower_min_score_by, top_k, expand)| RetryStepFields {
                namespaces: namespaces.into_iter().collect(),
                lower_min_score_by,
                top_k: top_k.into(),
                expand,
            });
            let tuning = Tuning::new(TuningFields {
                top_k: Some(top_k.into()),
                min_score: Some(min_score),
                confidences: named.clone(),
                weights: named,
                namespaces: namespaces.into_iter().collect(),
                retry: Some(steps.collect()),
                suggestion,
            })
            .unwrap();
            prop_assert_eq!(Tuning::parse(&tuning.to_string()).unwrap(), tuning);
        }
    }
}
