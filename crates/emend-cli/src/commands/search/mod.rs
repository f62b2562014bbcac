//! `emend search`: how good searches are, and what improves them.

mod evaluate;
mod queries;
mod rate;
mod stats;
mod tuning;

use clap::Subcommand;

use self::evaluate::synonyms;
pub(super) use self::rate::Rating;
use crate::{context::Context, failure::Result, output::Output};

/// What of searches.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search rate query-17 down --reporter ana
  emend search queries list --without-hits
  emend search synonyms preview leader face
  emend search tuning set HYBRID top_k=20 min_score=0.3 --reason \"too few results\"
  emend search evaluate --judgements judged.jsonl --node 127.0.0.1:7421")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Rate what a search returned
    Rate(rate::Args),
    /// Show which share of ratings is negative: by week, version, variant
    Stats(stats::Args),
    /// What was searched: list, record, interact, import, terms
    Queries(queries::Args),
    /// What a synonym would change, and what a query is searched as: preview, expand
    Synonyms(synonyms::Args),
    /// How queries of each type are searched: list, show, preview, set, delete
    Tuning(tuning::Args),
    /// Measure ranked results on judged queries, before and after a change
    Evaluate(evaluate::Args),
}

/// Runs the command.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.command {
        Command::Rate(args) => rate::run(args, context, output).await,
        Command::Stats(args) => stats::run(args, context, output).await,
        Command::Queries(args) => queries::run(args, context, output).await,
        Command::Synonyms(args) => synonyms::run(args, context, output).await,
        Command::Tuning(args) => tuning::run(args, context, output).await,
        Command::Evaluate(args) => evaluate::run(&args, context, output).await,
    }
}
