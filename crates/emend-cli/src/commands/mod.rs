//! One module per command: its arguments and its implementation.

pub mod admin;
pub mod candidates;
pub mod citations;
pub mod claims;
pub mod corrections;
mod decision;
pub mod doctor;
pub mod domains;
pub mod edges;
pub mod evaluate;
pub mod evidence;
pub mod export;
pub mod feedback;
mod ids;
pub mod import;
pub mod log;
pub mod mcp;
pub mod nodes;
pub mod outbox;
pub mod policy;
pub mod profile;
pub mod prompts;
pub mod queries;
pub mod rate;
pub mod ratings;
pub mod redact;
mod refused;
pub mod resolve;
pub mod resources;
pub mod retract;
pub mod revert;
pub mod settings;
pub mod stats;
pub mod submit;
pub mod trust;
pub mod tuning;
pub mod up;
pub mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{context::Context, demo, failure::Result, output::Output, replay};

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run both services in this process
    Up(up::Args),
    /// Submit a correction: what is wrong and what is right
    Submit(submit::Args),
    /// Rate what a search returned
    Rate(rate::Args),
    /// Retract a correction
    Retract(retract::Args),
    /// Erase the personal parts of a correction, or everything about a reporter
    Redact(redact::Args),
    /// Show corrections as stored: list, get; label ratings
    Feedback(feedback::Args),
    /// The review queue: list, show, approve, reject
    Candidates(candidates::Args),
    /// Learned resources: list, get, set by hand, delete
    Resources(resources::Args),
    /// What is decided about domains: block, unblock, clear, trust, list, blocked, check
    Domains(domains::Args),
    /// How queries of each type are searched: list, show, preview, set, delete
    Tuning(tuning::Args),
    /// Trust files: apply
    Trust(trust::Args),
    /// Claims and how sure they are: list, show, reject, restore
    Claims(claims::Args),
    /// Edges of the evidence graph and their labels: list, correct
    Edges(edges::Args),
    /// The evidence graph: import, export, events
    Evidence(evidence::Args),
    /// What people corrected of a model's labels: stats, export
    Corrections(corrections::Args),
    /// Papers that a paper cites or that cite it become pages: run
    Citations(citations::Args),
    /// How many ratings of search answers are negative, by week, version and variant
    Stats(stats::Args),
    /// What was searched: list, record, interact, import, terms
    Queries(queries::Args),
    /// Ratings of what an AI made, and the examples they become: submit, list, examples
    Ratings(ratings::Args),
    /// Prompts and their versions: list, show, diff, generate, approve, use, pull, push, and more
    Prompts(Box<prompts::Args>),
    /// What a user knows and wants to learn: show, set, suggest, accept, reject, and more
    Profile(profile::Args),
    /// Revert a revision or a whole operation
    Revert(revert::Args),
    /// Show the audit trail, newest first
    Log(log::Args),
    /// What it takes to learn something: get, set
    Policy(policy::Args),
    /// How long personal parts of corrections and queries are kept: get, set
    Settings(settings::Args),
    /// List the search nodes and how far each has applied
    Nodes(nodes::Args),
    /// Watch what is learned, as it is learned
    Watch(watch::Args),
    /// Show what nodes answer for a phrase
    Resolve(resolve::Args),
    /// Import phrases, aliases, prohibitions, synonyms, tunings and decisions about domains, claims and edges from a file
    Import(import::Args),
    /// Export learned resources in a format that import reads, or ratings of search answers
    Export(export::Args),
    /// Events that learning-svc refused for good: list, redrive
    Outbox(outbox::Args),
    /// Tasks for operators: make a token, begin a new epoch
    Admin(admin::Args),
    /// Check that all stored data agrees: corrections, votes, resources, the log
    Doctor(doctor::Args),
    /// What a synonym would change, before it is taught
    Synonyms(evaluate::synonyms::Args),
    /// How good ranked results are against judged queries, before and after a change
    Evaluate(evaluate::Args),
    /// Serve an assistant tools to correct, look up and review, over stdio (MCP)
    Mcp(mcp::Args),
    /// Play a day of corrections on two search nodes; needs nothing set up
    Demo(demo::Args),
    /// Simulate users who correct a search node, and measure what is learned
    Replay(replay::Args),
}

impl Command {
    /// Runs the command.
    pub async fn run(self, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
        match self {
            Self::Up(args) => return up::run(args, context, output).await,
            Self::Evaluate(args) => evaluate::run(&args, context, output).await?,
            Self::Synonyms(args) => evaluate::synonyms::run(args, context, output).await?,
            Self::Doctor(args) => return doctor::run(args, output).await,
            Self::Submit(args) => submit::run(args, context, output).await?,
            Self::Rate(args) => rate::run(args, context, output).await?,
            Self::Retract(args) => retract::run(args, context, output).await?,
            Self::Redact(args) => redact::run(args, context, output).await?,
            Self::Feedback(args) => feedback::run(args, context, output).await?,
            Self::Candidates(args) => candidates::run(args, context, output).await?,
            Self::Resources(args) => resources::run(args, context, output).await?,
            Self::Domains(args) => domains::run(args, context, output).await?,
            Self::Tuning(args) => tuning::run(args, context, output).await?,
            Self::Trust(args) => trust::run(args, context, output).await?,
            Self::Claims(args) => claims::run(args, context, output).await?,
            Self::Edges(args) => edges::run(args, context, output).await?,
            Self::Evidence(args) => evidence::run(args, context, output).await?,
            Self::Corrections(args) => corrections::run(args, context, output).await?,
            Self::Citations(args) => citations::run(args, context, output).await?,
            Self::Stats(args) => stats::run(args, context, output).await?,
            Self::Queries(args) => queries::run(args, context, output).await?,
            Self::Ratings(args) => ratings::run(args, context, output).await?,
            Self::Prompts(args) => prompts::run(*args, context, output).await?,
            Self::Profile(args) => profile::run(args, context, output).await?,
            Self::Revert(args) => revert::run(args, context, output).await?,
            Self::Log(args) => log::run(args, context, output).await?,
            Self::Policy(args) => policy::run(args, context, output).await?,
            Self::Settings(args) => settings::run(args, context, output).await?,
            Self::Nodes(args) => nodes::run(args, context, output).await?,
            Self::Watch(args) => watch::run(args, context, output).await?,
            Self::Resolve(args) => resolve::run(args, context, output).await?,
            Self::Import(args) => import::run(args, context, output).await?,
            Self::Export(args) => export::run(args, context, output).await?,
            Self::Outbox(args) => outbox::run(args, context, output).await?,
            Self::Admin(args) => admin::run(args, context, output).await?,
            Self::Mcp(args) => mcp::run(args, context).await?,
            Self::Demo(args) => demo::run(args, context, output).await?,
            Self::Replay(args) => replay::run(args, context, output).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
