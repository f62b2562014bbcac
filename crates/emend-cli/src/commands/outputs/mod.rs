//! `emend outputs`: what an AI makes, how people rate it, and what it is asked with.

mod examples;
mod profile;
mod prompts;
mod ratings;

use clap::Subcommand;

pub(super) use self::{profile::suggests, prompts::improvement_text};
use crate::{context::Context, failure::Result, output::Output};

/// What of outputs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs ratings submit INTERPRET good query-17 --input \"how was it?\" --output \"Quiet.\"
  emend outputs examples --render INTERPRET
  emend outputs stats
  emend outputs prompts generate SUMMARIZE_DAILY
  emend outputs profile show --user mia")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ratings of what an AI made: submit, list, import
    Ratings(ratings::Args),
    /// List the examples that ratings become, or show them as an AI sees them
    Examples(examples::Args),
    /// Prompts and their versions: list, show, set, generate, approve, and more
    Prompts(Box<prompts::Args>),
    /// Count the ratings of all targets, or of one by version of its prompt
    Stats(prompts::stats::Args),
    /// What a user knows and wants to learn: show, set, suggest, and more
    Profile(profile::Args),
}

/// Runs the command.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.command {
        Command::Ratings(args) => ratings::run(args, context, output).await,
        Command::Examples(args) => examples::run(args, context, output).await,
        Command::Prompts(args) => prompts::run(*args, context, output).await,
        Command::Stats(args) => prompts::stats::stats(args, context, output).await,
        Command::Profile(args) => profile::run(args, context, output).await,
    }
}
