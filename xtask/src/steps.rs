//! The steps of a chore: run one after the other, even if one fails, and summarised in a table at the end.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

/// How a step that did not fail ended.
pub(crate) enum Outcome {
    /// It did all its work.
    Done,
    /// It could do nothing here, and why.
    NotRun(String),
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    result: Result<Outcome>,
    took: Duration,
}

impl Steps {
    /// Runs a step and records how it ended.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<Outcome>) {
        self.run_for(name, || step().map(|outcome| ((), outcome)));
    }

    /// Runs a step that returns something for later steps; `None` if it failed.
    pub(crate) fn run_for<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<(T, Outcome)>,
    ) -> Option<T> {
        eprintln!("\n=== {name} ===");
        let start = now();
        let (value, result) = match step() {
            Ok((value, outcome)) => (Some(value), Ok(outcome)),
            Err(error) => {
                eprintln!("error: {}", first_line(&error));
                (None, Err(error))
            }
        };
        self.rows.push(Row {
            name,
            result,
            took: start.elapsed(),
        });
        value
    }

    /// Adds steps that ran at the same time.
    pub(crate) fn append(&mut self, others: Self) {
        self.rows.extend(others.rows);
    }

    /// Prints the table. Returns failure if a step failed.
    pub(crate) fn finish(self) -> ExitCode {
        let width = self
            .rows
            .iter()
            .map(|row| row.name.len())
            .max()
            .unwrap_or_default();
        eprintln!();
        for Row { name, result, took } in &self.rows {
            let seconds = took.as_secs_f64();
            match result {
                Ok(Outcome::Done) => eprintln!("{name:width$}  {seconds:7.1} s  ok"),
                Ok(Outcome::NotRun(reason)) => eprintln!("{name:width$}  {seconds:7.1} s  not run: {reason}"),
                Err(error) => eprintln!("{name:width$}  {seconds:7.1} s  FAILED: {}", first_line(error)),
            }
        }
        if self.rows.iter().any(|row| row.result.is_err()) {
            for Row { name, result, .. } in &self.rows {
                // Whole at the end, where it is looked for.
                if let Err(error) = result {
                    eprintln!("\n{name}: {error:#}");
                }
            }
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn first_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    text.lines().next().unwrap_or_default().to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a stopwatch for people; nothing decides by it"
)]
fn now() -> Instant {
    Instant::now()
}
