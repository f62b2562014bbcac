//! `emend evidence`: the evidence graph, and what people decide about it.

mod citations;
mod claims;
mod decision;
mod delete;
mod domains;
mod edges;
mod events;
mod export;
mod import;
mod samples;
mod trust;

use clap::Subcommand;

use crate::{context::Context, failure::Result, output::Output};

/// What of the evidence graph.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence import graph.jsonl
  emend evidence domains check www.spam.example     is it blocked, and why
  emend evidence domains block spam.example --reason \"copies others\"
  emend evidence claims list --status verified")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Domains: which are blocked or trusted, and why; block or trust one
    Domains(domains::Args),
    /// Claims and how sure they are: list, show, reject, restore
    Claims(claims::Args),
    /// Edges and their labels: list, show, correct
    Edges(edges::Args),
    /// Trust files: apply, convert
    Trust(trust::Args),
    /// Make the papers that a paper cites, or that cite it, pages: run
    Citations(Box<citations::Args>),
    /// Corrected edge labels, to train a model with: stats, export
    Samples(samples::Args),
    /// List what was done to domains, pages, claims and edges, newest first
    Events(events::Args),
    /// Add pages, fragments, claims and edges from a file, or replace them
    Import(import::Args),
    /// Write a task's pages, fragments, claims and edges as JSON lines
    Export(export::Args),
    /// Delete pages, fragments, claims and edges with what hangs on them
    Delete(delete::Args),
}

/// Runs the command.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.command {
        Command::Domains(args) => domains::run(args, context, output).await,
        Command::Claims(args) => claims::run(args, context, output).await,
        Command::Edges(args) => edges::run(args, context, output).await,
        Command::Trust(args) => trust::run(args, context, output).await,
        Command::Citations(args) => citations::run(*args, context, output).await,
        Command::Samples(args) => samples::run(args, context, output).await,
        Command::Events(args) => events::run(args, context, output).await,
        Command::Import(args) => import::run(args, context, output).await,
        Command::Export(args) => export::run(args, context, output).await,
        Command::Delete(args) => delete::run(args, context, output).await,
    }
}
