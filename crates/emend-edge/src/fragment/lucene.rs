//! Lucene's classic query syntax, as Solr and `query_string` take it.
//!
//! Every text stands between double quotes, where only the quote and the backslash have a meaning; so no operator, wildcard, field,
//! range or local parameter in it is one.

use super::{Operator, Part, Parts, Target};

/// A query that finds nothing.
const NOTHING: &str = "(*:* -*:*)";

/// The text as it was written, counting twice, or what it was expanded to.
pub(super) fn query(parts: &Parts<'_>, target: &Target) -> String {
    if parts.parts.is_empty() {
        return NOTHING.to_owned();
    }
    let written: Vec<String> = parts.as_written().map(|word| anywhere(&[word], target)).collect();
    let written = joined(&written, target.operator);
    if !parts.is_expanded() {
        return written;
    }
    let clauses: Vec<String> = parts
        .parts
        .iter()
        .map(|part| match part {
            Part::Word(word) => anywhere(&[word], target),
            Part::Any { alternatives, .. } => {
                let alternatives: Vec<&str> = alternatives.iter().map(String::as_str).collect();
                anywhere(&alternatives, target)
            }
        })
        .collect();
    format!("({written})^2 OR {}", joined(&clauses, target.operator))
}

fn joined(clauses: &[String], operator: Operator) -> String {
    let operator = match operator {
        Operator::And => " AND ",
        Operator::Or => " OR ",
    };
    format!("({})", clauses.join(operator))
}

/// Any of the texts in any of the fields.
fn anywhere(texts: &[&str], target: &Target) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    if target.fields.is_empty() {
        return format!("({})", quoted.join(" OR "));
    }
    let fields = target.fields.iter().map(|field| {
        let boost = field
            .boost()
            .map_or_else(String::new, |boost| format!("^{boost}"));
        format!("{}:({}){boost}", field.name(), quoted.join(" OR "))
    });
    format!("({})", fields.collect::<Vec<_>>().join(" OR "))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{HOSTILE, expanded},
        *,
    };

    #[test]
    fn the_text_as_written_counts_above_its_expansions() {
        let target = Target {
            fields: vec!["title^3".parse().unwrap(), "body".parse().unwrap()],
            ..Target::default()
        };
        let text = expanded(
            "cheap notebook",
            &[("notebook", &["notebook", "laptop computer"])],
        );
        assert_eq!(
            query(&Parts::of(&text), &target),
            "(((title:(\"cheap\")^3 OR body:(\"cheap\")) AND (title:(\"notebook\")^3 OR body:(\"notebook\"))))^2 OR \
             ((title:(\"cheap\")^3 OR body:(\"cheap\")) AND \
             (title:(\"notebook\" OR \"laptop computer\")^3 OR body:(\"notebook\" OR \"laptop computer\")))"
        );
        let plain = expanded("set up", &[]);
        assert_eq!(
            query(&Parts::of(&plain), &Target::default()),
            r#"(("set") AND ("up"))"#
        );
        let either = Target {
            operator: Operator::Or,
            ..Target::default()
        };
        assert_eq!(query(&Parts::of(&plain), &either), r#"(("set") OR ("up"))"#);
        assert_eq!(query(&Parts::of(&expanded("?", &[])), &either), NOTHING);
    }

    #[test]
    fn nothing_of_a_text_is_outside_its_quotes() {
        for hostile in HOSTILE {
            let text = expanded(&format!("{hostile} term"), &[("term", &["term", hostile])]);
            let query = query(&Parts::of(&text), &Target::default());
            let mut outside = String::new();
            let mut is_quoted = false;
            let mut letters = query.chars();
            while let Some(letter) = letters.next() {
                match letter {
                    '\\' if is_quoted => drop(letters.next()),
                    '"' => is_quoted = !is_quoted,
                    letter if !is_quoted => outside.push(letter),
                    _ => {}
                }
            }
            assert!(!is_quoted, "{query}");
            let rest = outside.replace("AND", "").replace("OR", "").replace("^2", "");
            assert_eq!(
                rest.trim_matches(['(', ')', ' ']).replace(['(', ')', ' '], ""),
                "",
                "{query}"
            );
        }
    }
}
