//! `emend edges`: which labels edges of the evidence graph should have.

use clap::Subcommand;
use emend_core::EdgeLabel;
use emend_wire::kinds::edge_correction;

use super::decision::{self, By};
use crate::{context::Context, failure::Result, output::Output};

/// Correct a label.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend edges correct edge:7 refutes --reason \"it says the opposite\"
  emend edges correct edge:8 supports --task t-17

The edge is reviewed then, and corrected where the model's label differs. A decision is in force
at once if you are entitled to decide; otherwise it awaits review (emend candidates). While the
edge is not known, the decision waits, and takes effect when the edge is upserted.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
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

/// Submits the label and prints the outcome.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let Action::Correct {
        edge,
        label,
        reason,
        by,
    } = args.action;
    decision::submit(edge_correction(edge, label), reason, by, context, output).await
}
