//! Checks that every metric named in a rule, the dashboard or a document is declared by the services, that is, listed
//! in docs/metrics.md, which is generated from the code.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result};

use super::markdown::Page;
use crate::{dashboard, process::Workspace};

/// The page that lists the services' metrics.
const DECLARED: &str = "docs/metrics.md";
/// Prefixes of the services' metrics.
const PREFIXES: &[&str] = &["emend_", "grpc_server_", "process_"];
/// Suffixes that Prometheus adds for a histogram.
const SERIES: &[&str] = &["_bucket", "_sum", "_count"];
/// Names with such a prefix that are not metrics: the databases' schemas.
const OTHERS: &[&str] = &["emend_feedback", "emend_learning"];
/// Files besides the documents that name metrics.
const FILES: &[&str] = &[
    "deploy/observability/rules/emend.rules.yaml",
    "deploy/observability/rules/emend.rules.test.yaml",
    "deploy/observability/rules/emend.slo.test.yaml",
];

/// Metrics that are named but not declared.
pub(super) fn findings(workspace: &Workspace, pages: &[Page]) -> Result<Vec<String>> {
    let declared = pages.iter().find(|page| page.path.as_os_str() == DECLARED);
    let declared = names(&declared.with_context(|| format!("{DECLARED} is missing"))?.text);
    let mut texts = vec![(
        dashboard::PATH.to_owned(),
        dashboard::queries().collect::<Vec<_>>().join("\n"),
    )];
    for file in FILES {
        let text = fs::read_to_string(workspace.path(file)).context(*file)?;
        texts.push(((*file).to_owned(), text));
    }
    // In documents only code counts: in prose, a crate's name looks the same.
    texts.extend(
        pages
            .iter()
            .map(|page| (page.path.display().to_string(), code(&page.text))),
    );
    let mut findings = BTreeSet::new();
    for (file, text) in texts {
        for name in names(&text) {
            if !is_declared(&name, &declared) {
                findings.insert(format!("{file}: there is no metric {name}"));
            }
        }
    }
    Ok(findings.into_iter().collect())
}

fn is_declared(name: &str, declared: &BTreeSet<String>) -> bool {
    declared.contains(name)
        || SERIES.iter().any(|series| {
            name.strip_suffix(series)
                .is_some_and(|name| declared.contains(name))
        })
}

/// Words that look like a metric's name. Names of recording rules contain colons and do not count.
fn names(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.' | '/');
    text.split(|c| !is_word(c))
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && !OTHERS.contains(word))
        .filter(|word| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
        .map(str::to_owned)
        .collect()
}

/// The code spans and `promql` blocks of a document.
fn code(text: &str) -> String {
    let mut code = super::markdown::blocks(text, "promql").join("\n");
    for line in text.lines() {
        for span in line.split('`').skip(1).step_by(2) {
            code.push('\n');
            code.push_str(span);
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{code, is_declared, names};

    #[test]
    fn metric_names_are_found_in_queries_and_recorded_ones_skipped() {
        let found =
            names("sum(rate(emend_time_to_effect_seconds_bucket{le=\"5\"}[5m])) / a:emend_calls:rate5m > up");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["emend_time_to_effect_seconds_bucket"]
        );
    }

    #[test]
    fn a_histograms_series_are_declared_with_it() {
        let declared = BTreeSet::from(["emend_lag_seconds".to_owned(), "emend_total".to_owned()]);
        assert!(is_declared("emend_lag_seconds_bucket", &declared) && is_declared("emend_total", &declared));
        assert!(!is_declared("emend_lag", &declared) && !is_declared("emend_total_x", &declared));
    }

    #[test]
    fn only_code_in_a_document_is_searched_for_metrics() {
        let text = "the crate emend_core, `emend_a_total` and\n```promql\nemend_b\n```\n";
        let found = names(&code(text));
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["emend_a_total", "emend_b"]
        );
    }
}
