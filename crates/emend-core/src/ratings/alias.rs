//! Other spellings of the targets that every namespace has.

use super::rating::{RatingTarget, TARGETS};

/// The target that every namespace has and that somebody writes so: its name in any case, with `-` or `_` between the words, and
/// white space around it. `None` of another name.
pub fn target_named(raw: &str) -> Option<&'static RatingTarget> {
    let raw = raw.trim();
    TARGETS.iter().find(|target| {
        target.name.len() == raw.len()
            && target
                .name
                .bytes()
                .zip(raw.bytes())
                .all(|(known, given)| known == given.to_ascii_uppercase() || (known, given) == (b'_', b'-'))
    })
}

/// A target's name as it is kept: that of the target which every namespace has, if it is written so, else the name as it is.
pub fn target_name(raw: &str) -> &str {
    target_named(raw).map_or(raw, |target| target.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_known_in_every_spelling() {
        for (written, name) in [
            ("interpret", "INTERPRET"),
            ("summarize-hourly", "SUMMARIZE_HOURLY"),
            ("Summarize_Daily", "SUMMARIZE_DAILY"),
            (" evaluate ", "EVALUATE"),
            ("TASK-extract", "TASK_EXTRACT"),
            ("task_extract", "TASK_EXTRACT"),
            ("task extract", "task extract"),
            ("interprets", "interprets"),
            ("triage", "triage"),
            ("", ""),
        ] {
            assert_eq!(target_name(written), name, "{written:?}");
        }
    }
}
