//! OpenMetrics' text as Prometheus' older text format, for scrapers that accept nothing else.

use std::collections::HashSet;

/// The content type of Prometheus' text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The same metrics. The older format names counters as their samples are named, and has neither units, exemplars nor an end.
pub fn of(open_metrics: &str) -> String {
    let types = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: HashSet<&str> = types.filter_map(|line| line.strip_suffix(" counter")).collect();
    let mut plain = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let about = ["# HELP ", "# TYPE "]
            .iter()
            .find_map(|keyword| Some((keyword, line.strip_prefix(keyword)?)));
        if let Some((keyword, rest)) = about {
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let total = if counters.contains(name) { "_total" } else { "" };
            let rest = if rest == "unknown" { "untyped" } else { rest };
            plain.extend([keyword, name, total, " ", rest]);
        } else {
            plain.push_str(line.split_once(" # {").map_or(line, |(sample, _)| sample));
        }
        plain.push('\n');
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn counters_are_named_as_their_samples_and_what_only_openmetrics_knows_is_left_out() {
        let given = "# HELP a Calls.\n# TYPE a counter\na_total{b=\"c\"} 1\n# HELP d How long.\n# TYPE d histogram\n# UNIT d seconds\n\
                     d_bucket{le=\"1.0\"} 1 # {trace_id=\"x\"} 0.5 12.0\n# EOF\n";
        assert_eq!(
            super::of(given),
            "# HELP a_total Calls.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n# HELP d How long.\n# TYPE d histogram\n\
             d_bucket{le=\"1.0\"} 1\n"
        );
    }
}
