//! What is asked of a backend, and what of it is valid.

use std::{ops::RangeInclusive, sync::Arc};

use emend_client::{
    ExpandMode, ExpandedText, NormalizedKey, OrGroup, Tuning, UserId, Violations,
    proto::{common::v1::SearchTuningValue, search::v1::TermGroup},
    tuning_to_try,
};

/// The type of queries that have none.
pub const QUERY_TYPE: &str = "HYBRID";
/// The most characters of a query.
const QUERY_CHARS: usize = 1_000;
/// The most characters of a query's type.
const TYPE_CHARS: usize = 64;
/// The most characters of a session's id.
const SESSION_CHARS: usize = 128;
/// The most groups of an expansion, and alternatives of one.
const GROUPS: usize = 100;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What the user typed, 1 to 1,000 characters.
    pub query: String,
    /// By which tuning it is searched, at most 64 characters; empty: [`QUERY_TYPE`].
    pub query_type: String,
    /// The user, at most 128 characters; empty: nobody in particular.
    pub user_id: String,
    /// The user's session, at most 128 characters; empty: none.
    pub session_id: String,
    /// What else to search for where terms stand in the query, in place of what was learned, to try it out; not recorded.
    pub expansion: Option<Vec<TermGroup>>,
    /// As if nothing had been learned, to compare with; not recorded.
    pub without_learning: bool,
    /// How to search, in place of what was learned for its type, to try it out; not recorded.
    pub tuning: Option<SearchTuningValue>,
    /// Nobody searches: it is not recorded.
    pub unrecorded: bool,
}

/// A question that is valid.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) text: &'a str,
    pub(crate) query_type: &'a str,
    pub(crate) user: Option<UserId>,
    pub(crate) session_id: &'a str,
    /// By keyword.
    pub(crate) expansion: Option<ExpandedText>,
    pub(crate) without_learning: bool,
    pub(crate) tuning: Option<Arc<Tuning>>,
    /// Whether somebody searches, so that it is recorded.
    pub(crate) is_recorded: bool,
}

impl<'a> Question<'a> {
    /// Checks what is asked; the violations name all fields that are wrong, as the wire contract calls them.
    pub(crate) fn parse(asked: &'a Asked) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        check_text(&mut violations, "query", &asked.query, 1..=QUERY_CHARS);
        check_text(&mut violations, "query_type", &asked.query_type, 0..=TYPE_CHARS);
        let user = (!asked.user_id.is_empty()).then(|| UserId::parse(&asked.user_id));
        let user = user.and_then(|user| violations.check("user_id", user));
        check_text(
            &mut violations,
            "session_id",
            &asked.session_id,
            0..=SESSION_CHARS,
        );
        let expansion = asked
            .expansion
            .as_deref()
            .map(|groups| parse_groups(&mut violations, &asked.query, groups));
        let tuning = asked.tuning.as_ref().map(tuning_to_try);
        let tuning = tuning.and_then(|tuning| violations.part("tuning", tuning));
        let is_tried_out = expansion.is_some() || tuning.is_some() || asked.without_learning;
        violations.finish(Some(Self {
            text: &asked.query,
            query_type: match &*asked.query_type {
                "" => QUERY_TYPE,
                named => named,
            },
            user,
            session_id: &asked.session_id,
            expansion: expansion.map(|groups| ExpandedText {
                original: asked.query.clone(),
                mode: ExpandMode::Keyword,
                groups,
            }),
            without_learning: asked.without_learning,
            tuning,
            is_recorded: !asked.unrecorded && !is_tried_out,
        }))
    }
}

/// Checks that a text has so many characters, white space around it included, and no control characters but white space.
pub(crate) fn check_text(
    violations: &mut Violations,
    field: &str,
    text: &str,
    bounds: RangeInclusive<usize>,
) {
    let count = text.chars().count();
    let (least, most) = (bounds.start(), bounds.end());
    if *least > 0 && text.trim().is_empty() {
        violations.add(field, format!("is required: {least} to {most} characters"));
    } else if !bounds.contains(&count) {
        violations.add(
            field,
            format!("must be {least} to {most} characters, has {count}"),
        );
    }
    let is_bad = |c: &char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    if let Some(control) = text.chars().find(is_bad) {
        let code = u32::from(control);
        violations.add(
            field,
            format!("must not contain control characters, has U+{code:04X}"),
        );
    }
}

/// The groups that can be used.
fn parse_groups(violations: &mut Violations, text: &str, groups: &[TermGroup]) -> Vec<OrGroup> {
    check_count(violations, "expansion.groups", 0, groups.len());
    let mut parsed = Vec::new();
    let mut from = 0;
    for (place, group) in groups.iter().enumerate().take(GROUPS) {
        let path = format!("expansion.groups[{place}]");
        let start = parse_byte(violations, &format!("{path}.start"), text, group.start, from);
        let end = parse_byte(
            violations,
            &format!("{path}.end"),
            text,
            group.end,
            start.unwrap_or(from) + 1,
        );
        let alternatives = format!("{path}.alternatives");
        check_count(violations, &alternatives, 1, group.alternatives.len());
        for (place, alternative) in group.alternatives.iter().enumerate().take(GROUPS) {
            violations.check(
                &format!("{alternatives}[{place}]"),
                NormalizedKey::parse(alternative),
            );
        }
        if let (Some(start), Some(end)) = (start, end) {
            from = end;
            parsed.push(OrGroup {
                span: start..end,
                alternatives: group.alternatives.clone(),
            });
        }
    }
    parsed
}

fn check_count(violations: &mut Violations, field: &str, least: usize, count: usize) {
    if !(least..=GROUPS).contains(&count) {
        violations.add(
            field,
            format!("must have {least} to {GROUPS} entries, has {count}"),
        );
    }
}

/// A place between two characters of the text, by its byte.
fn parse_byte(
    violations: &mut Violations,
    field: &str,
    text: &str,
    byte: i32,
    least: usize,
) -> Option<usize> {
    let most = text.len();
    let place = usize::try_from(byte)
        .ok()
        .filter(|place| (least..=most).contains(place));
    let Some(place) = place else {
        let why = if least > most {
            format!("must be behind the group before it and in the query of {most} bytes, is {byte}")
        } else {
            format!("must be {least} to {most}, is {byte}")
        };
        violations.add(field, why);
        return None;
    };
    if !text.is_char_boundary(place) {
        violations.add(field, format!("must be between two characters, is {byte}"));
        return None;
    }
    Some(place)
}

/// The text with what an expansion by keyword stands for, as it is embedded: the first alternative of each group, which is its
/// representative, unless the text has that already.
pub(crate) fn for_embedding(by_keyword: &ExpandedText) -> String {
    let key = |text: &str| NormalizedKey::parse(text).ok();
    let groups = by_keyword.groups.iter().filter_map(|group| {
        let representative = group.alternatives.first()?;
        let is_another = key(representative) != key(&by_keyword.original[group.span.clone()]);
        is_another.then(|| OrGroup {
            span: group.span.clone(),
            alternatives: vec![representative.clone()],
        })
    });
    let expanded = ExpandedText {
        original: by_keyword.original.clone(),
        mode: ExpandMode::Embedding,
        groups: groups.collect(),
    };
    expanded.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(start: i32, end: i32, alternatives: &[&str]) -> TermGroup {
        TermGroup {
            start,
            end,
            alternatives: alternatives.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    fn violations(asked: &Asked) -> Vec<String> {
        let refused = Question::parse(asked).unwrap_err().into_vec();
        refused.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_asked_may_be_as_long_as_the_contract_says() {
        let asked = Asked {
            query: "場".repeat(1_000),
            query_type: "x".repeat(64),
            user_id: "x".repeat(128),
            session_id: "x".repeat(128),
            expansion: Some(vec![group(0, 3, &["場"; 100]), group(3, 3_000, &["盤面"])]),
            without_learning: true,
            ..Asked::default()
        };
        let question = Question::parse(&asked).unwrap();
        assert_eq!(question.query_type.len(), 64);
        assert_eq!(question.expansion.unwrap().groups[1].span, 3..3_000);
        let short = Asked {
            query: "場".to_owned(),
            ..Asked::default()
        };
        assert_eq!(Question::parse(&short).unwrap().query_type, QUERY_TYPE);
    }

    #[test]
    fn every_violated_field_is_named_with_its_bound() {
        let asked = Asked {
            query: "x".repeat(1_001),
            query_type: "x".repeat(65),
            user_id: "x".repeat(129),
            session_id: "a\u{7}".repeat(70),
            tuning: Some(SearchTuningValue {
                top_k: Some(101),
                ..SearchTuningValue::default()
            }),
            ..Asked::default()
        };
        assert_eq!(
            violations(&asked),
            [
                "query: must be 1 to 1000 characters, has 1001",
                "query_type: must be 0 to 64 characters, has 65",
                "user_id: must be 1 to 128 characters, has 129",
                "session_id: must be 0 to 128 characters, has 140",
                "session_id: must not contain control characters, has U+0007",
                "tuning.top_k: must be 1 to 100, is 101",
            ]
        );
    }

    #[test]
    fn white_space_around_a_text_counts() {
        let asked = Asked {
            query: format!("場{}", " ".repeat(1_000)),
            query_type: format!("x{}", " ".repeat(64)),
            session_id: format!("{}x", "\n".repeat(128)),
            ..Asked::default()
        };
        assert_eq!(
            violations(&asked),
            [
                "query: must be 1 to 1000 characters, has 1001",
                "query_type: must be 0 to 64 characters, has 65",
                "session_id: must be 0 to 128 characters, has 129",
            ]
        );
        let blank = Asked {
            query: " ".repeat(2_000),
            ..Asked::default()
        };
        assert_eq!(violations(&blank), ["query: is required: 1 to 1000 characters"]);
    }

    #[test]
    fn every_violated_part_of_an_expansion_is_named() {
        let asked = Asked {
            query: " ".to_owned(),
            expansion: Some(vec![TermGroup::default(); 101]),
            ..Asked::default()
        };
        let all = violations(&asked);
        assert_eq!(all[0], "query: is required: 1 to 1000 characters");
        assert_eq!(all[1], "expansion.groups: must have 0 to 100 entries, has 101");
        assert_eq!(all[2], "expansion.groups[0].end: must be 1 to 1, is 0");
        let asked = Asked {
            query: "場と盤面".to_owned(),
            expansion: Some(vec![
                group(-1, 1, &["場"]),
                group(0, 3, &["", "場"]),
                group(0, 13, &[]),
                group(6, 6, &["盤面"; 101]),
            ]),
            ..Asked::default()
        };
        assert_eq!(
            violations(&asked),
            [
                "expansion.groups[0].start: must be 0 to 12, is -1",
                "expansion.groups[0].end: must be between two characters, is 1",
                "expansion.groups[1].alternatives[0]: is required: 1 to 512 characters",
                "expansion.groups[2].start: must be 3 to 12, is 0",
                "expansion.groups[2].end: must be 4 to 12, is 13",
                "expansion.groups[2].alternatives: must have 1 to 100 entries, has 0",
                "expansion.groups[3].end: must be 7 to 12, is 6",
                "expansion.groups[3].alternatives: must have 1 to 100 entries, has 101",
            ]
        );
    }

    #[test]
    fn what_is_tried_out_is_embedded_with_its_representatives() {
        let asked = Asked {
            query: "場とﾘｰﾀﾞｰ".to_owned(),
            expansion: Some(vec![
                group(0, 3, &["フィールド", "場", "盤面"]),
                group(6, 21, &["リーダー", "顔"]),
            ]),
            ..Asked::default()
        };
        let expansion = Question::parse(&asked).unwrap().expansion.unwrap();
        assert_eq!(for_embedding(&expansion), "場とﾘｰﾀﾞｰ フィールド");
    }
}
