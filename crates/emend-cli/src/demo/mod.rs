//! `emend demo`: a day of corrections in fund administration, on two search nodes.
//!
//! [`script`] defines what happens and the expected answers, [`day`] plays it through the real services and asks both
//! [`nodes`] before and after each step, and [`table`] prints it.

mod day;
mod nodes;
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
nodes that subscribe; then people correct the search system, object, change their minds, and an
operator decides. Before and after each step both nodes are asked. The times are from the commit
of what was learned, and from the receipt of the feedback that caused it, to the moment when the
node answered with it. Ends by itself; the exit code is 1 if a node did not answer as it should.")]
pub struct Args {}

/// Plays the day and prints it.
pub async fn run(_args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let lifecycle = Lifecycle::new();
    let played = play(&lifecycle, context, output).await;
    let stopped = lifecycle.failure().map(str::to_owned);
    lifecycle.shutdown(GRACE).await;
    let wrong = played?;
    match (stopped, &*wrong) {
        (Some(reason), _) => Err(Failure::failed(reason)),
        (None, []) => Ok(()),
        (None, wrong) => Err(Failure::failed(format!(
            "not as it should be:\n  {}",
            wrong.join("\n  ")
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
    let mut wrong = Vec::new();
    for step in script::day() {
        let seen = day.play(&step).await?;
        wrong.extend(
            seen.wrong
                .iter()
                .map(|what| format!("{} {}: {what}", step.at, step.told)),
        );
        output.result(&table::step_json(&step, &seen), || table::step(&step, &seen))?;
    }
    let end = day.end().await?;
    wrong.extend(end.wrong.iter().cloned());
    let json = json!({
        "end": {"revision": end.revision, "resources": end.resources, "asExpected": wrong.is_empty()}
    });
    output.result(&json, || table::end(&end))?;
    pair.close(GRACE).await;
    Ok(wrong)
}
