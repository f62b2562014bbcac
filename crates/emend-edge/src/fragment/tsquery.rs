//! The text of PostgreSQL's `tsquery`, for `to_tsquery`.
//!
//! Every text stands between single quotes, where only the quote and the backslash have a meaning. `to_tsquery` cuts what is in them
//! as it cuts a document, and puts the words one behind another.

use super::{Operator, Part, Parts, Target};

/// What it was expanded to; a tsquery knows no boosts.
pub(super) fn query(parts: &Parts<'_>, target: &Target) -> String {
    let clauses = parts.parts.iter().map(|part| match part {
        Part::Word(word) => quoted(word),
        Part::Any { alternatives, .. } => {
            let alternatives: Vec<String> = alternatives.iter().map(|text| quoted(text)).collect();
            format!("({})", alternatives.join(" | "))
        }
    });
    let operator = match target.operator {
        Operator::And => " & ",
        Operator::Or => " | ",
    };
    clauses.collect::<Vec<_>>().join(operator)
}

fn quoted(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{HOSTILE, expanded},
        *,
    };

    #[test]
    fn alternatives_stand_in_brackets() {
        let text = expanded(
            "ana's notebook",
            &[("notebook", &["notebook", "laptop computer"])],
        );
        assert_eq!(
            query(&Parts::of(&text), &Target::default()),
            "'ana''s' & ('notebook' | 'laptop computer')"
        );
        assert_eq!(query(&Parts::of(&expanded("", &[])), &Target::default()), "");
    }

    #[test]
    fn nothing_of_a_text_is_outside_its_quotes() {
        for hostile in HOSTILE {
            let text = expanded(&format!("{hostile} term"), &[("term", &["term", hostile])]);
            let query = query(&Parts::of(&text), &Target::default());
            let (mut outside, mut is_quoted) = (String::new(), false);
            let mut letters = query.chars().peekable();
            while let Some(letter) = letters.next() {
                match letter {
                    '\\' if is_quoted => drop(letters.next()),
                    '\'' if is_quoted && letters.peek() == Some(&'\'') => drop(letters.next()),
                    '\'' => is_quoted = !is_quoted,
                    letter if !is_quoted => outside.push(letter),
                    letter => assert!(!letter.is_control(), "{query:?}"),
                }
            }
            assert!(!is_quoted, "{query}");
            assert_eq!(outside.replace(['(', ')', '|', '&', ' '], ""), "", "{query}");
            assert_eq!(outside.matches('(').count(), 1, "one group: {query}");
        }
    }
}
