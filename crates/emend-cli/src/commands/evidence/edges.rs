//! `emend evidence edges`: edges of the evidence graph, and which labels they should have.

use clap::Subcommand;
use emend_core::{
    EdgeLabel,
    evidence::{EdgeRelation, TrustLevel},
};
use emend_proto::learning::v1::{Edge, ListEdgesRequest};
use emend_wire::kinds::edge_correction;

use super::decision::{self, By};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Cell, Column, Output, Table},
    transfer::materials::node_text,
    view::{self, evidence},
    words,
};

/// List, show, or correct a label.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence edges list --claim claim:12
  emend evidence edges list --task t-17 --relation refutes --level academic --level primary
  emend evidence edges list --reviewed false
  emend evidence edges show edge:7
  emend evidence edges correct edge:7 refutes --reason \"it says the opposite\"
  emend evidence edges correct edge:8 supports --task t-17

The edge is reviewed then, and corrected where the model's label differs. A decision is in force
at once if you are entitled to decide; otherwise it awaits review (emend candidates). While the
edge is not known, the decision waits, and takes effect when the edge is upserted.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List edges as corrected
    List(List),
    /// Show an edge with what the model and people say of it
    Show {
        /// The edge's id
        edge: String,
    },
    /// Say which label an edge should have
    Correct {
        /// The edge's id
        edge: String,
        /// The right label: supports, refutes or neutral
        #[arg(value_parser = EdgeLabel::parse)]
        label: EdgeLabel,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        by: By,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only edges of this claim, at either end
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    claim: String,
    /// Only edges of this task
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// Only edges of this relation, as corrected; may be given several times
    #[arg(long, value_parser = words::one_of(&EdgeRelation::ALL, EdgeRelation::name))]
    relation: Vec<EdgeRelation>,
    /// Only edges whose source is trusted this far; may be given several times
    #[arg(long, value_parser = words::one_of(&TrustLevel::ALL, TrustLevel::name))]
    level: Vec<TrustLevel>,
    /// Only edges that a person reviewed, or did not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    reviewed: Option<bool>,
    /// Only edges whose label a person corrected, or did not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    corrected: Option<bool>,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// Lists or shows edges, or submits a label and prints the outcome.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List(args) => list(args, context, output).await,
        Action::Show { edge } => show(edge, context, output).await,
        Action::Correct {
            edge,
            label,
            reason,
            by,
        } => decision::submit(edge_correction(edge, label), reason, by, context, output).await,
    }
}

async fn list(args: List, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ListEdgesRequest {
        namespace: context.namespace(),
        claim_id: args.claim,
        relations: args.relation.iter().map(|relation| relation.number()).collect(),
        levels: args.level.iter().map(|level| level.number()).collect(),
        reviewed: args.reviewed,
        corrected: args.corrected,
        task_id: args.task,
        ..ListEdgesRequest::default()
    };
    let all = ListEdgesRequest {
        namespace: context.namespace(),
        ..ListEdgesRequest::default()
    };
    let none = context.none_found("edges", request != all);
    let (edges, more) = context.list(&request, args.limit).await?;
    output.list(&edges, more, evidence::edge, table, &none)
}

async fn show(edge_id: String, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ListEdgesRequest {
        namespace: context.namespace(),
        edge_id: edge_id.clone(),
        ..ListEdgesRequest::default()
    };
    let mut client = context.evidence().await?;
    let found = client.list_edges(context.request(request)).await?.into_inner();
    let Some(edge) = found.edges.first() else {
        return Err(Failure::NotFound(format!("edge {edge_id:?} is not known")));
    };
    output.result(&evidence::edge(edge), || text(edge))
}

fn text(edge: &Edge) -> String {
    let end = |node, domain: &str, level| match evidence::level(level) {
        Some(level) => format!("{}, {domain} ({level})", node_text(node)),
        None => node_text(node),
    };
    let confidence =
        |confidence: Option<f64>| confidence.map_or(String::new(), |confidence| format!(" {confidence:.3}"));
    let with = |label: i32, sure| {
        evidence::relation(label).map_or_else(String::new, |label| format!("{label}{}", confidence(sure)))
    };
    let review = review(edge);
    evidence::lines(&[
        ("edge", edge.edge_id.clone()),
        (
            "from",
            end(edge.source.as_ref(), &edge.source_domain, edge.source_level),
        ),
        ("relation", with(edge.relation, edge.confidence)),
        (
            "to",
            end(edge.target.as_ref(), &edge.target_domain, edge.target_level),
        ),
        (
            "the model said",
            with(edge.predicted_label, edge.predicted_confidence),
        ),
        ("review", review.to_owned()),
        ("reviewed", view::short_time(edge.reviewed_at.as_ref())),
        ("reason", edge.review_reason.clone()),
        ("feedback", edge.feedback_id.clone()),
        ("task", edge.task_id.clone()),
    ])
}

fn review(edge: &Edge) -> &'static str {
    match (edge.reviewed, edge.corrected) {
        (false, _) => "–",
        (true, false) => "agreed",
        (true, true) => "corrected",
    }
}

fn table(edges: &[Edge]) -> Table {
    Table::new([
        ("EDGE", Column::Text),
        ("SOURCE", Column::Text),
        ("DOMAIN", Column::Text),
        ("TRUST", Column::Fixed),
        ("RELATION", Column::Fixed),
        ("TARGET", Column::Text),
        ("THE MODEL SAID", Column::Fixed),
        ("REVIEW", Column::Fixed),
    ])
    .with_rows(edges, |edge| {
        let said = evidence::relation(edge.predicted_label).map_or_else(
            || "–".to_owned(),
            |label| match edge.predicted_confidence {
                Some(confidence) => format!("{label} {confidence:.3}"),
                None => label,
            },
        );
        [
            Cell::whole(edge.edge_id.clone()),
            Cell::whole(node_text(edge.source.as_ref())),
            edge.source_domain.clone().into(),
            evidence::level(edge.source_level).unwrap_or_default().into(),
            evidence::relation(edge.relation).unwrap_or_default().into(),
            Cell::whole(node_text(edge.target.as_ref())),
            said.into(),
            review(edge).to_owned().into(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use emend_proto::{
        common::v1::{EdgeRelation as Relation, TrustLevel as Level},
        learning::v1::{NodeRef, node_ref::Node},
    };

    use super::*;

    #[test]
    fn a_row_reads_from_source_to_target_in_a_hundred_columns() {
        let node = |node| Some(NodeRef { node: Some(node) });
        let edge = Edge {
            edge_id: "edge:7".into(),
            relation: Relation::Refutes.into(),
            confidence: Some(1.0),
            source: node(Node::FragmentId("fragment:abc123".into())),
            target: node(Node::ClaimId("12".into())),
            source_domain: "preprints.journal.example".into(),
            source_level: Level::Academic.into(),
            predicted_label: Relation::Supports.into(),
            predicted_confidence: Some(0.9),
            reviewed: true,
            corrected: true,
            ..Edge::default()
        };
        let cites = Edge {
            edge_id: "edge:8".into(),
            relation: Relation::Cites.into(),
            source: node(Node::PageId("page:1".into())),
            target: node(Node::PageId("page:2".into())),
            source_domain: "blog.example".into(),
            source_level: Level::Unverified.into(),
            ..Edge::default()
        };
        let expected = "\
EDGE    SOURCE           DOMAIN            TRUST       RELATION  TARGET    THE MODEL SAID  REVIEW
edge:7  fragment:abc123  preprints.journ…  academic    refutes   claim 12  supports 0.900  corrected
edge:8  page:1           blog.example      unverified  cites     page:2    –               –
";
        let shown = text(&edge);
        for line in [
            "from                fragment:abc123, preprints.journal.example (academic)",
            "relation            refutes 1.000",
            "to                  claim 12",
            "the model said      supports 0.900",
            "review              corrected",
            "task                –",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}:\n{shown}");
        }
        let rendered = table(&[edge, cites]).render(100);
        assert!(rendered.lines().all(|line| line.chars().count() <= 100));
        assert_eq!(rendered, expected);
    }
}
