//! Measures of ranked results against judged queries.

pub mod chart;
pub mod report;
pub mod runs;

use std::{collections::BTreeMap, fmt};

use emend_core::search::Judged;
use serde::Deserialize;

/// A query, and what is relevant to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Its text; empty if the file does not say: then its id is its text.
    pub text: String,
    /// Its type; empty if the file does not say.
    pub query_type: String,
    /// What is relevant.
    pub judged: Judged,
}

impl Query {
    /// What to search for.
    pub fn text<'q>(&'q self, id: &'q str) -> &'q str {
        if self.text.is_empty() { id } else { &self.text }
    }
}

/// Judged queries by id.
pub type Queries = BTreeMap<String, Query>;

/// A line that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// Lines with content, by number.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
}

/// The columns of a line, which must be as many.
pub fn columns<const N: usize>(line: usize, text: &str) -> Result<[&str; N], BadLine> {
    let columns: Vec<&str> = text.split_whitespace().collect();
    let count = columns.len();
    columns
        .try_into()
        .map_err(|_| bad(line, format!("must have {N} columns, has {count}")))
}

/// A number.
pub fn number<T: std::str::FromStr>(line: usize, what: &str, text: &str) -> Result<T, BadLine> {
    text.parse()
        .map_err(|_| bad(line, format!("the {what} must be a number, is {text:?}")))
}

/// A JSON object.
pub fn json<'t, T: Deserialize<'t>>(line: usize, text: &'t str) -> Result<T, BadLine> {
    serde_json::from_str(text).map_err(|error| bad(line, error.to_string()))
}

/// A line that is wrong.
pub fn bad(line: usize, why: String) -> BadLine {
    BadLine { line, why }
}
