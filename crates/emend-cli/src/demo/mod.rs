//! `emend demo`: a day of corrections in fund administration, on two search nodes.
//!
//! [`script`] defines what happens and the expected answers, [`day`] plays it through the real services, by
//! [`actions`] and, where it is about what an AI is asked with, [`prompts`], asks both [`nodes`] before and after each step,
//! and [`table`] prints it. [`evening`] leaves something to do for those who stay.

mod actions;
mod day;
mod evening;
mod evidence;
mod nodes;
mod prompts;
mod script;
mod table;

use std::time::Duration;

use emend_base::{
    Lifecycle,
    lifecycle::{Signals, run_until_signal},
};
use emend_console::ConsoleArgs;
use serde_json::json;

use crate::{
    commands::console,
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::{GRACE, Pair},
};

/// Whether it stays, for a look.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts both services on free ports, on a directory that is removed at the end, and two search
nodes that subscribe. People correct the search system, disagree, change their minds and rate what
an AI made, and an operator decides. Both nodes are asked before and after each step. The times are
from the commit of what was learned, and from the receipt of the correction that caused it, until
the node answered with it. It ends by itself; the exit code is 1 if a node did not answer as
expected. With --console both services and the nodes stay after the day, with some things left to
decide and some searches that people rated, and the console's address is printed, until ctrl-c.")]
pub struct Args {
    /// Stay after the day, with the console to look at it
    #[arg(long)]
    console: bool,
    /// Where the console then listens, and how people sign in.
    #[command(flatten)]
    console_settings: ConsoleArgs,
}

/// Plays the day and prints it.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let lifecycle = Lifecycle::new();
    // Boxed because it is large, and every command's future would include it.
    let played = Box::pin(play(&args, &lifecycle, context, output)).await;
    let stopped = lifecycle.failure().map(str::to_owned);
    lifecycle.shutdown(GRACE).await;
    let deviations = played?;
    match (stopped, &*deviations) {
        (Some(reason), _) => Err(Failure::failed(reason)),
        (None, []) => Ok(()),
        (None, deviations) => Err(Failure::failed(format!(
            "not as expected:\n  {}",
            deviations.join("\n  ")
        ))),
    }
}

/// Serves the console until somebody ends it.
async fn stay(
    args: &Args,
    pair: &Pair,
    lifecycle: &Lifecycle,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let mut context = context.clone();
    context.global.namespace = Some(script::NAMESPACE.to_owned());
    let console = pair
        .serve_console(&args.console_settings, lifecycle, &context)
        .await?;
    let console = console.ok_or_else(|| {
        Failure::failed("the console's default address is taken: --console-addr names another")
    })?;
    let url = console::url(&console);
    let (feedback, learning) = (pair.feedback(), pair.learning());
    let json = json!({
        "console": url,
        "feedback": feedback.to_string(),
        "learning": learning.to_string(),
        "namespace": script::NAMESPACE,
    });
    output.result(&json, || {
        format!(
            "\nThe console is at {url}\nThe services are where other commands find them after:\n  \
             export EMEND_FEEDBACK_ADDR={feedback}\n  export EMEND_LEARNING_ADDR={learning}\n  \
             export EMEND_NAMESPACE={}\nEverything is removed when you end this with ctrl-c.",
            script::NAMESPACE
        )
    })?;
    let mut signals = Signals::listen()?;
    // What failed is told at the end.
    run_until_signal(&mut signals, lifecycle, GRACE).await;
    Ok(())
}

/// Plays the day. Returns what was not as expected.
async fn play(
    args: &Args,
    lifecycle: &Lifecycle,
    context: &Context,
    output: &mut Output<'_>,
) -> Result<Vec<String>> {
    let pair = Pair::ephemeral(lifecycle, context).await?;
    let context = pair.context(context);
    let mut day = day::Day::begin(&context, lifecycle).await?;
    if !output.is_json() {
        output.line(&table::heading())?;
    }
    let mut deviations = Vec::new();
    for step in script::day() {
        let result = day.play(&step).await?;
        deviations.extend(
            result
                .deviations
                .iter()
                .map(|deviation| format!("{} {}: {deviation}", step.at, step.story)),
        );
        output.result(&table::step_json(&step, &result), || table::step(&step, &result))?;
    }
    let end = day.end().await?;
    deviations.extend(end.deviations.iter().cloned());
    let json = json!({
        "end": {"revision": end.revision, "resources": end.resources, "asExpected": deviations.is_empty()}
    });
    output.result(&json, || table::end(&end))?;
    if args.console {
        day.evening().await?;
        stay(args, &pair, lifecycle, &context, output).await?;
    }
    // Whoever stayed has given all tasks their time already.
    pair.close(if args.console { Duration::ZERO } else { GRACE })
        .await;
    Ok(deviations)
}
