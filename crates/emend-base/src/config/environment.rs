//! Environment variables that look like ours but are not: a typo would otherwise go unnoticed.

use std::{collections::BTreeSet, fmt};

use super::nearest;

/// The prefix of our variables.
const PREFIX: &str = "EMEND_";
/// Prefixes of variables that tests read.
const FOR_TESTS: [&str; 2] = ["EMEND_TEST_", "EMEND_FAIL_POINT"];

/// The variables of all of Emend's programs, one per line, because several may share one environment. Written by `cargo
/// xtask docs`; a test fails if it is out of date.
pub const KNOWN_ELSEWHERE: &str = include_str!("variables.txt");

/// A variable that nothing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its name.
    pub name: String,
    nearest: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no setting has the environment variable {}", self.name)?;
        self.nearest
            .as_ref()
            .map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
    }
}

/// The `variables` with our prefix that nothing reads; `known` are those of this program.
pub(super) fn unknown<'a>(
    variables: impl Iterator<Item = String>,
    known: impl Iterator<Item = &'a str>,
) -> Vec<Unknown> {
    let known: BTreeSet<&str> = known.chain(KNOWN_ELSEWHERE.lines()).collect();
    let mut unknown: Vec<Unknown> = variables
        .filter(|name| name.starts_with(PREFIX) && !known.contains(name.as_str()))
        .filter(|name| !FOR_TESTS.iter().any(|prefix| name.starts_with(prefix)))
        .map(|name| Unknown {
            nearest: nearest(&name, known.iter().copied()).map(str::to_owned),
            name,
        })
        .collect();
    unknown.sort_by(|one, other| one.name.cmp(&other.name));
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_is_reported_with_the_most_similar_known_one() {
        let set = [
            "EMEND_LISTENS",
            "EMEND_LISTEN",
            "EMEND_LOG",
            "PATH",
            "EMEND_TEST_SEED",
            "EMEND_?",
        ];
        let found = unknown(set.map(str::to_owned).into_iter(), ["EMEND_LISTEN"].into_iter());
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages[1],
            "no setting has the environment variable EMEND_LISTENS; did you mean EMEND_LISTEN?"
        );
        assert_eq!((found.len(), found[0].name.as_str()), (2, "EMEND_?"));
    }
}
