//! `emend nodes`: lists the fleet and how far each node has applied.

use std::time::Duration;

use clap::ValueEnum;
use emend_proto::learning::v1::{DelayHistogram, ListNodesRequest, Node, NodeState};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view, words,
};

/// Which nodes to list.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend nodes
  emend nodes --seen-within 10m --json
  emend nodes --state behind --zone eu-1 --label tier=gold

APPLIED is what a node reported to have applied, not what was sent to it. DELAY is the median
and the 99th percentile from commit to applied, as last reported, rounded up to the bounds of
the node's histogram.")]
pub struct Args {
    /// Only nodes seen within this time
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = words::duration)]
    seen_within: Duration,
    /// Only nodes in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only nodes in this zone
    #[arg(long, value_name = "ZONE", default_value = "", hide_default_value = true)]
    zone: String,
    /// Only nodes with this label; may be repeated
    #[arg(long = "label", value_name = "KEY[=VALUE]")]
    labels: Vec<String>,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    limit: usize,
}

/// In which state a node is.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    /// Behind the head of the log
    Behind,
    /// Without an open stream
    Disconnected,
    /// Rejecting resources
    Rejecting,
}

impl From<State> for NodeState {
    fn from(state: State) -> Self {
        match state {
            State::Behind => Self::Behind,
            State::Disconnected => Self::Disconnected,
            State::Rejecting => Self::Rejecting,
        }
    }
}

/// Lists the nodes by id.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let seen_within = prost_types::Duration::try_from(args.seen_within)
        .map_err(|_| Failure::usage("--seen-within is too long"))?;
    let (nodes, more) = context
        .list(
            &ListNodesRequest {
                seen_within: Some(seen_within),
                state: args.state.map_or(NodeState::Unspecified, NodeState::from) as i32,
                zone: args.zone.clone(),
                labels: args.labels.clone(),
                ..ListNodesRequest::default()
            },
            args.limit,
        )
        .await?;
    let is_filtered = args.state.is_some() || !args.zone.is_empty() || !args.labels.is_empty();
    let none = if is_filtered {
        "No node that has been seen matches."
    } else {
        "No node has been seen."
    };
    output.list(&nodes, more, view::message, table, none)
}

fn table(nodes: &[Node]) -> Table {
    Table::new([
        ("NODE", Column::Text),
        ("VERSION", Column::Text),
        ("ZONE", Column::Text),
        ("STREAM", Column::Fixed),
        ("APPLIED", Column::Number),
        ("BEHIND", Column::Number),
        ("REJECTED", Column::Number),
        ("DELAY", Column::Fixed),
        ("PROBLEM", Column::Text),
    ])
    .with_rows(nodes, |node| {
        let info = node.info.clone().unwrap_or_default();
        [
            info.id,
            info.version,
            info.zone,
            if node.connected {
                "open".into()
            } else {
                "closed".into()
            },
            node.applied
                .as_ref()
                .map_or_else(|| "–".into(), |cursor| cursor.revision.to_string()),
            // Unknown for a node that has never reported.
            node.applied
                .as_ref()
                .map_or_else(|| "–".into(), |_| node.lag_revisions.to_string()),
            node.rejected_count.to_string(),
            node.delays.as_ref().map_or_else(|| "–".into(), delay),
            node.problem.clone(),
        ]
    })
}

/// The median and the 99th percentile.
fn delay(histogram: &DelayHistogram) -> String {
    match (quantile(histogram, 50), quantile(histogram, 99)) {
        (Some(median), Some(high)) => format!("{median} / {high}"),
        _ => "–".into(),
    }
}

/// The upper bound of the bucket that contains the percentile; `None` if nothing was measured.
fn quantile(histogram: &DelayHistogram, percent: i64) -> Option<String> {
    let total: i64 = histogram.counts.iter().sum();
    if total <= 0 {
        return None;
    }
    let wanted = total.saturating_mul(percent).div_euclid(100).max(1);
    let mut seen = 0;
    for (index, count) in histogram.counts.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            return Some(
                match (histogram.bounds_ms.get(index), histogram.bounds_ms.last()) {
                    (Some(bound), _) => format!("≤{bound} ms"),
                    (None, Some(last)) => format!(">{last} ms"),
                    (None, None) => "?".into(),
                },
            );
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_bounds_of_their_buckets() {
        let histogram = DelayHistogram {
            bounds_ms: vec![1, 10, 100],
            counts: vec![50, 48, 1, 1],
            sum_ms: 0,
        };
        assert_eq!(delay(&histogram), "≤1 ms / ≤100 ms");
        let slow = DelayHistogram {
            bounds_ms: vec![1],
            counts: vec![0, 3],
            sum_ms: 9_000,
        };
        assert_eq!(delay(&slow), ">1 ms / >1 ms");
        assert_eq!(delay(&DelayHistogram::default()), "–");
    }
}
