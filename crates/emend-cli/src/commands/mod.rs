//! One module per command: its arguments, and what it does with them.

pub mod admin;
pub mod candidates;
pub mod doctor;
pub mod export;
pub mod feedback;
pub mod import;
pub mod log;
pub mod mcp;
pub mod nodes;
pub mod outbox;
pub mod policy;
pub mod resolve;
pub mod resources;
pub mod retract;
pub mod revert;
pub mod submit;
pub mod up;
pub mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{context::Context, demo, failure::Result, output::Output, replay};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run both services in this process
    Up(up::Args),
    /// Say what is wrong and what is right
    Submit(submit::Args),
    /// Take a correction back
    Retract(retract::Args),
    /// Corrections as they were stored
    Feedback(feedback::Args),
    /// The review queue: list, look into, approve, reject
    Candidates(candidates::Args),
    /// What was learned: list, get, set by hand, delete
    Resources(resources::Args),
    /// Take a revision back
    Revert(revert::Args),
    /// The audit trail, newest first
    Log(log::Args),
    /// How much it takes to learn something
    Policy(policy::Args),
    /// The search nodes, and how far each has applied
    Nodes(nodes::Args),
    /// What is learned, as it is learned
    Watch(watch::Args),
    /// Ask what a node answers for a phrase
    Resolve(resolve::Args),
    /// Import phrase mappings, aliases and prohibitions from a file
    Import(import::Args),
    /// Export what was learned, in a form that import takes
    Export(export::Args),
    /// What could not be delivered to learning-svc
    Outbox(outbox::Args),
    /// For operators, on the database itself
    Admin(admin::Args),
    /// Whether all that is stored agrees: corrections, votes, what was learned, the log
    Doctor(doctor::Args),
    /// Offer an assistant the tools to correct and review, over stdio (MCP)
    Mcp(mcp::Args),
    /// A day of corrections on two search nodes; starts and ends by itself
    Demo(demo::Args),
    /// The flywheel on a real data set: who corrects what, what is learned, how often nodes are right
    Replay(replay::Args),
}

impl Command {
    /// Does it.
    pub async fn run(self, context: &Context, output: &mut Output<'_>) -> Result<ExitCode> {
        match self {
            Self::Up(args) => return up::run(args, context, output).await,
            Self::Doctor(args) => return doctor::run(args, output).await,
            Self::Submit(args) => submit::run(args, context, output).await?,
            Self::Retract(args) => retract::run(args, context, output).await?,
            Self::Feedback(args) => feedback::run(args, context, output).await?,
            Self::Candidates(args) => candidates::run(args, context, output).await?,
            Self::Resources(args) => resources::run(args, context, output).await?,
            Self::Revert(args) => revert::run(args, context, output).await?,
            Self::Log(args) => log::run(args, context, output).await?,
            Self::Policy(args) => policy::run(args, context, output).await?,
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
