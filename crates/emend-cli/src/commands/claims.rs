//! `emend claims`: what is decided about claims.

use clap::Subcommand;
use emend_core::{ClaimDecision, ClaimState, Invalid};
use emend_wire::kinds::claim_decision;

use super::decision::{self, Why};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
};

/// Reject or restore.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend claims reject claim:12 --reason \"an advertisement\" --reason-code SPAM
  emend claims restore claim:12 --reason \"checked by hand\" --task t-17

A decision is in force at once if you are entitled to decide; otherwise it awaits review (emend
candidates). The newest decision about a claim is in force. While the claim is not known, the
decision waits, and takes effect when the claim is upserted.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Hide a claim from results; it is kept
    Reject {
        /// The claim's id
        claim: String,
        /// Why, as a code of [A-Z0-9_], for example SPAM
        #[arg(long, value_name = "CODE", default_value = "", hide_default_value = true)]
        reason_code: String,
        #[command(flatten)]
        why: Why,
    },
    /// Show a claim, whatever is reported against it
    Restore {
        /// The claim's id
        claim: String,
        #[command(flatten)]
        why: Why,
    },
}

/// Submits the decision and prints the outcome.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (claim, decision, code, why) = match args.action {
        Action::Reject {
            claim,
            reason_code,
            why,
        } => (claim, ClaimDecision::Rejected, reason_code, why),
        Action::Restore { claim, why } => (claim, ClaimDecision::Restored, String::new(), why),
    };
    let state = ClaimState::new(decision, &code)
        .map_err(|Invalid(why)| Failure::usage(format!("--reason-code {why}")))?;
    decision::submit(claim_decision(claim, &state), why.reason, why.by, context, output).await
}
