//! One module per command: its arguments and its implementation. `evidence`, `outputs` and `search` are groups, folders with a
//! module for each of their commands.

pub mod admin;
pub mod candidates;
pub mod console;
pub mod doctor;
pub mod edge;
pub mod evidence;
pub mod export;
pub mod feedback;
mod ids;
pub mod import;
pub mod log;
pub mod mcp;
pub mod nodes;
pub mod outbox;
pub mod outputs;
pub mod policy;
mod previews;
pub mod redact;
mod refused;
pub mod resolve;
pub mod resources;
pub mod retract;
pub mod revert;
pub mod search;
pub mod settings;
pub mod submit;
pub mod up;
pub mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{context::Context, demo, failure::Result, output::Output, replay};

/// Why something is done, and for whom.
#[derive(Debug, clap::Args)]
struct Decision {
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play a day of corrections on two search nodes; nothing to set up
    Demo(demo::Args),
    /// Run both services in this process
    Up(Box<up::Args>),
    /// Serve the console: a page in a browser to see and decide
    Console(console::Args),
    /// Answer look-ups over HTTP, and write queries for search engines
    Edge(edge::Args),
    /// Submit a correction: what is wrong and what is right
    Submit(submit::Args),
    /// Retract a correction
    Retract(retract::Args),
    /// Erase the personal parts of a correction, or all about a reporter
    Redact(redact::Args),
    /// Corrections and ratings as stored: list, get, label
    Feedback(feedback::Args),
    /// Domains (which are blocked, and why), claims, edges, citations
    Evidence(evidence::Args),
    /// What an AI made: ratings, examples, prompts, profiles
    Outputs(outputs::Args),
    /// How good searches are: ratings, queries, synonyms, tuning
    Search(search::Args),
    /// The review queue: list, show, approve, reject
    Candidates(candidates::Args),
    /// What was learned: list, get, set by hand, delete
    Resources(resources::Args),
    /// Show what nodes answer for a phrase
    Resolve(resolve::Args),
    /// Show the audit trail, newest first
    Log(log::Args),
    /// Revert a revision or a whole operation
    Revert(revert::Args),
    /// What it takes to learn something: get, set
    Policy(policy::Args),
    /// How long personal parts are kept, and what can be rated: get, set
    Settings(settings::Args),
    /// Import what is to be learned from a file
    Import(import::Args),
    /// Export what was learned, or ratings of searches
    Export(export::Args),
    /// Watch what is learned, as it is learned
    Watch(watch::Args),
    /// List the search nodes and how far each has applied
    Nodes(nodes::Args),
    /// Events that learning-svc refused for good: list, redrive
    Outbox(outbox::Args),
    /// Check that all stored data agrees
    Doctor(doctor::Args),
    /// Tasks for operators: make a token, back up, begin a new epoch
    Admin(admin::Args),
    /// Serve assistants tools to correct and review (MCP), stdio or HTTP
    Mcp(Box<mcp::Args>),
    /// Simulate users who correct a search node; measure what is learned
    Replay(replay::Args),
}

impl Command {
    /// Runs the command.
    pub async fn run(self, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
        match self {
            Self::Up(args) => return Box::pin(up::run(*args, context, output)).await,
            Self::Doctor(args) => return doctor::run(args, output).await,
            Self::Demo(args) => demo::run(args, context, output).await?,
            Self::Console(args) => return console::run(args, context, output).await,
            Self::Edge(args) => return edge::run(args, context, output).await,
            Self::Submit(args) => submit::run(args, context, output).await?,
            Self::Retract(args) => retract::run(args, context, output).await?,
            Self::Redact(args) => redact::run(args, context, output).await?,
            Self::Feedback(args) => feedback::run(args, context, output).await?,
            Self::Evidence(args) => evidence::run(args, context, output).await?,
            Self::Outputs(args) => outputs::run(args, context, output).await?,
            Self::Search(args) => search::run(args, context, output).await?,
            Self::Candidates(args) => candidates::run(args, context, output).await?,
            Self::Resources(args) => resources::run(args, context, output).await?,
            Self::Resolve(args) => resolve::run(args, context, output).await?,
            Self::Log(args) => log::run(args, context, output).await?,
            Self::Revert(args) => revert::run(args, context, output).await?,
            Self::Policy(args) => policy::run(args, context, output).await?,
            Self::Settings(args) => settings::run(args, context, output).await?,
            Self::Import(args) => import::run(args, context, output).await?,
            Self::Export(args) => export::run(args, context, output).await?,
            Self::Watch(args) => watch::run(args, context, output).await?,
            Self::Nodes(args) => nodes::run(args, context, output).await?,
            Self::Outbox(args) => outbox::run(args, context, output).await?,
            Self::Admin(args) => admin::run(args, context, output).await?,
            Self::Mcp(args) => return Box::pin(mcp::run(*args, context, output)).await,
            Self::Replay(args) => Box::pin(replay::run(args, context, output)).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
