//! Checks the monitoring: the rules are valid and tested, each alert has a runbook and is tested both firing and
//! silent, Prometheus understands every query in the dashboard and the documents, and every metric they name exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    dashboard,
    docs::markdown,
    process::{self, Workspace},
    prometheus,
    steps::{Outcome, Steps},
};

/// The same rules for the Prometheus operator, which `cargo xtask docs` writes.
pub(crate) const PROMETHEUS_RULE: &str = "deploy/k8s/components/pod-monitor/rules.yaml";
const RULES: &str = "deploy/observability/rules/emend.rules.yaml";
const RULE_TESTS: &[&str] = &[
    "deploy/observability/rules/emend.rules.test.yaml",
    "deploy/observability/rules/emend.slo.test.yaml",
];
const RUNBOOKS: &str = "docs/runbooks";

/// Runs all checks as steps.
pub(crate) fn check(workspace: &Workspace, may_install: bool, steps: &mut Steps) {
    steps.run("alerts and runbooks", || {
        told(&alert_findings(workspace)?)?;
        Ok(Outcome::Done)
    });
    steps.run("alert rules", || {
        let promtool = match prometheus::promtool(workspace, may_install) {
            Ok(promtool) => promtool,
            Err(error) if !may_install && !process::in_ci() => {
                return Ok(Outcome::NotRun(format!("{error:#}")));
            }
            Err(error) => return Err(error),
        };
        let queries = workspace.target("tools/queries.rules.yaml");
        fs::create_dir_all(workspace.target("tools"))?;
        fs::write(&queries, as_rules(&all_queries(workspace)?)?)?;
        let promtool = || workspace.command(&promtool);
        process::run(promtool().args(["check", "rules", RULES]))?;
        process::run(promtool().args(["test", "rules"]).args(RULE_TESTS))?;
        process::run(promtool().args(["check", "rules"]).arg(&queries))
            .context("a query of the dashboard or of a document is not valid")?;
        Ok(Outcome::Done)
    });
}

/// The rules as a `PrometheusRule`: their groups are its `spec`.
pub(crate) fn prometheus_rule(workspace: &Workspace) -> Result<String> {
    let rules = fs::read_to_string(workspace.path(RULES)).context(RULES)?;
    as_prometheus_rule(&rules).context(RULES)
}

fn as_prometheus_rule(rules: &str) -> Result<String> {
    let at = rules.find("\ngroups:\n").context("there are no groups")?;
    let mut text = format!(
        "# Written by `cargo xtask docs` from {RULES}. Change that, not this.\n\
         apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: emend\nspec:\n"
    );
    for line in rules[at..].trim_matches('\n').lines() {
        let indent = if line.is_empty() { "" } else { "  " };
        writeln!(text, "{indent}{line}")?;
    }
    Ok(text)
}

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RuleTests {
    tests: Vec<RuleTest>,
}

#[derive(Deserialize)]
struct RuleTest {
    #[serde(default)]
    alert_rule_test: Vec<AlertTest>,
}

#[derive(Deserialize)]
struct AlertTest {
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    exp_labels: BTreeMap<String, String>,
    #[serde(rename = "exp_annotations")]
    _annotations: IgnoredAny,
}

/// An alert and its severity.
type Alert = (String, String);

/// Inconsistencies between the rules, their tests and the runbooks.
fn alert_findings(workspace: &Workspace) -> Result<Vec<String>> {
    let rules: Rules = yaml(workspace, RULES)?;
    let mut tests = Vec::new();
    for file in RULE_TESTS {
        let read: RuleTests = yaml(workspace, file)?;
        tests.extend(read.tests);
    }
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(workspace.path(RUNBOOKS)).context(RUNBOOKS)? {
        pages.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    pages.remove("README.md");
    let index = fs::read_to_string(workspace.path(RUNBOOKS).join("README.md"))?;
    let mut findings = page_findings(&rules, &pages, &index);
    findings.extend(test_findings(&rules, &tests));
    Ok(findings)
}

fn alerts(rules: &Rules) -> impl Iterator<Item = (&str, &Rule)> {
    let rules = rules.groups.iter().flat_map(|group| &group.rules);
    rules.filter_map(|rule| Some((rule.alert.as_deref()?, rule)))
}

/// Alerts without a page, pages without an alert, and pages missing from the index.
fn page_findings(rules: &Rules, pages: &BTreeSet<String>, index: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (alert, rule) in alerts(rules) {
        let page = format!("{RUNBOOKS}/{alert}.md");
        if rule.annotations.get("runbook_url").is_none_or(|url| *url != page) {
            findings.push(format!("{alert}: runbook_url has to be {page}"));
        }
        for wanted in ["summary", "description"] {
            if !rule.annotations.contains_key(wanted) {
                findings.push(format!("{alert} has no {wanted}"));
            }
        }
        if rule
            .labels
            .get("severity")
            .is_none_or(|severity| !["warning", "critical"].contains(&severity.as_str()))
        {
            findings.push(format!("{alert}: severity has to be warning or critical"));
        }
    }
    let wanted: BTreeSet<String> = alerts(rules).map(|(alert, _)| format!("{alert}.md")).collect();
    findings.extend(
        wanted
            .difference(pages)
            .map(|page| format!("{RUNBOOKS}/{page} is missing")),
    );
    findings.extend(
        pages
            .difference(&wanted)
            .map(|page| format!("{RUNBOOKS}/{page} is no alert's")),
    );
    let listed = wanted
        .iter()
        .filter(|page| !index.contains(&format!("]({page})")));
    findings.extend(listed.map(|page| format!("{RUNBOOKS}/README.md does not list {page}")));
    findings
}

/// Alerts that no test sees firing at one of their severities, or that no test sees silent.
fn test_findings(rules: &Rules, tests: &[RuleTest]) -> Vec<String> {
    let (mut fired, mut silent) = (BTreeSet::<Alert>::new(), BTreeSet::new());
    for test in tests.iter().flat_map(|test| &test.alert_rule_test) {
        if test.exp_alerts.is_empty() {
            silent.insert(test.alertname.as_str());
        }
        for expected in &test.exp_alerts {
            let severity = expected.exp_labels.get("severity").cloned().unwrap_or_default();
            fired.insert((test.alertname.clone(), severity));
        }
    }
    let mut findings = BTreeSet::new();
    for (alert, rule) in alerts(rules) {
        let severity = rule.labels.get("severity").cloned().unwrap_or_default();
        if !silent.contains(alert) {
            findings.insert(format!("no test sees that {alert} is silent"));
        }
        if !fired.contains(&(alert.to_owned(), severity.clone())) {
            findings.insert(format!("no test sees {alert} fire as {severity}"));
        }
    }
    findings.into_iter().collect()
}

/// The queries of the dashboard and of the documents.
fn all_queries(workspace: &Workspace) -> Result<Vec<String>> {
    let mut queries: Vec<String> = dashboard::queries().collect();
    for page in markdown::pages(workspace)? {
        queries.extend(markdown::blocks(&page.text, "promql"));
    }
    Ok(queries)
}

/// A rule file that records each query: promtool checks only rules, so this makes it check queries.
fn as_rules(queries: &[String]) -> Result<String> {
    let mut text = "groups:\n- name: queries\n  rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        // A JSON string is also a YAML string.
        writeln!(
            text,
            "  - record: query_{number}\n    expr: {}",
            serde_json::to_string(query)?
        )?;
    }
    Ok(text)
}

fn yaml<T: for<'de> Deserialize<'de>>(workspace: &Workspace, path: impl AsRef<Path>) -> Result<T> {
    let path = path.as_ref();
    let text = fs::read_to_string(workspace.path(path)).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// Fails with all findings, if there are any.
pub(crate) fn told(findings: &[String]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{}", findings.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{RuleTests, Rules, as_prometheus_rule, as_rules, page_findings, test_findings};

    fn rules() -> Rules {
        serde_saphyr::from_str(
            "
groups:
  - name: all
    rules:
      - record: a:b
        expr: vector(1)
      - alert: Good
        expr: vector(1)
        labels: { severity: warning }
        annotations: &good { summary: a, description: b, runbook_url: docs/runbooks/Good.md }
      - alert: Good
        expr: vector(2)
        labels: { severity: critical }
        annotations: *good
      - alert: Bad
        expr: vector(1)
        labels: { severity: page }
        annotations: { summary: a, runbook_url: docs/runbooks/Good.md }
",
        )
        .unwrap()
    }

    #[test]
    fn every_alert_has_a_page_and_every_page_an_alert() {
        let pages = BTreeSet::from(["Good.md".to_owned(), "Gone.md".to_owned()]);
        let findings = page_findings(&rules(), &pages, "| [Good](Good.md) |");
        assert_eq!(
            findings,
            [
                "Bad: runbook_url has to be docs/runbooks/Bad.md",
                "Bad has no description",
                "Bad: severity has to be warning or critical",
                "docs/runbooks/Bad.md is missing",
                "docs/runbooks/Gone.md is no alert's",
                "docs/runbooks/README.md does not list Bad.md",
            ]
        );
    }

    #[test]
    fn every_alert_is_seen_to_fire_in_each_severity_and_to_be_silent() {
        let tests: RuleTests = serde_saphyr::from_str(
            "
tests:
  - alert_rule_test:
      - alertname: Good
        exp_alerts: []
      - alertname: Good
        exp_alerts:
          - exp_labels: { severity: warning }
            exp_annotations: { summary: a }
      - alertname: Bad
  - promql_expr_test: []
",
        )
        .unwrap();
        assert_eq!(
            test_findings(&rules(), &tests.tests),
            [
                "no test sees Bad fire as page",
                "no test sees Good fire as critical"
            ]
        );
    }

    #[test]
    fn queries_with_quotes_and_lines_become_rules() {
        let text = as_rules(&["a{b=\"c\"}\n+ 1".to_owned()]).unwrap();
        let rules: Rules = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(rules.groups[0].rules.len(), 1);
        assert!(text.contains(r#""a{b=\"c\"}\n+ 1""#), "{text}");
    }

    #[test]
    fn rules_for_the_operator_are_those_for_prometheus() {
        let rules = "# Head.\n\ngroups:\n  # Calls.\n  - name: all\n\n    rules:\n      - record: a:b\n        expr: >\n          c\n";
        let written = as_prometheus_rule(rules).unwrap();
        let [plain, wrapped] =
            [rules, &written].map(|text| serde_saphyr::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(wrapped["spec"], plain);
        assert_eq!(wrapped["kind"], "PrometheusRule");
        assert!(written.contains("    # Calls.\n"), "{written}");
    }
}
