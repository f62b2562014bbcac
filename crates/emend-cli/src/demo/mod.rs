//! `emend demo`: a day of corrections in fund administration, on two search nodes.
//!
//! [`script`] defines what happens and the expected answers, [`day`] plays it through the real services, by
//! [`actions`] and, where it is about what an AI is asked with, [`prompts`], asks both [`nodes`] before and after each step,
//! and [`table`] prints it.

mod actions;
mod day;
mod evidence;
mod nodes;
mod prompts;
mod script;
mod table;

use emend_base::Lifecycle;
use serde_json::json;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::{GRACE, Pair},
};

/// No options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts both services on free ports, on a directory that is removed at the end, and two search
nodes that subscribe. People correct the search system, disagree, change their minds and rate what
an AI made, and an operator decides. Both nodes are asked before and after each step. The times are
from the commit of what was learned, and from the receipt of the correction that caused it, until
the node answered with it. It ends by itself; the exit code is 1 if a node did not answer as
expected.")]
pub struct Args {}

/// Plays the day and prints it.
pub async fn run(_args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let lifecycle = Lifecycle::new();
    let played = play(&lifecycle, context, output).await;
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

/// Plays the day. Returns what was not as expected.
async fn play(lifecycle: &Lifecycle, context: &Context, output: &mut Output<'_>) -> Result<Vec<String>> {
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
    pair.close(GRACE).await;
    Ok(deviations)
}
