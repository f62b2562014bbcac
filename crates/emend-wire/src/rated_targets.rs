//! Targets of an application's own as people write them: in commands and forms.

use emend_core::ratings::RatingClass;
use emend_proto::feedback::v1::{RatedTarget, RatedValue};

/// What stands behind a target whose output is a judgement.
const JUDGEMENT: &str = " (judgement)";

/// A target as it is written: `NAME=VALUE:CLASS,…`, and `(judgement)` behind it if its output is one.
pub fn rated_target(text: &str) -> Result<RatedTarget, String> {
    let form = "must be NAME=VALUE:CLASS,… with the classes good, neutral and bad";
    let (text, is_judgement) = match text.trim().strip_suffix(JUDGEMENT) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (name, values) = text.split_once('=').ok_or(form)?;
    let value = |value: &str| {
        let (name, class) = value.rsplit_once(':')?;
        let class = RatingClass::ALL
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(class.trim()))?;
        Some(RatedValue {
            name: name.trim().to_owned(),
            counts_as: class.number(),
        })
    };
    let values: Option<Vec<RatedValue>> = values.split(',').map(value).collect();
    Ok(RatedTarget {
        name: name.trim().to_owned(),
        values: values.ok_or(form)?,
        is_judgement,
    })
}

/// A target in the words of [`rated_target`].
pub fn written(target: &RatedTarget) -> String {
    let value = |value: &RatedValue| {
        let class = RatingClass::from_number(value.counts_as);
        let class = class.map_or_else(|| "?".to_owned(), |class| class.name().to_ascii_lowercase());
        format!("{}:{class}", value.name)
    };
    let values: Vec<String> = target.values.iter().map(value).collect();
    let judgement = if target.is_judgement { JUDGEMENT } else { "" };
    format!("{}={}{judgement}", target.name, values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in [
            "TRIAGE=RIGHT:good,a:b:neutral",
            "CHECK=YES:good,NO:bad (judgement)",
        ] {
            assert_eq!(written(&rated_target(text).unwrap()), text);
        }
        for bad in ["TRIAGE", "TRIAGE=RIGHT", "TRIAGE=RIGHT:fine"] {
            assert!(rated_target(bad).is_err(), "{bad}");
        }
    }
}
