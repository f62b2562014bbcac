//! The `emend` command: runs the pair of services, submits and reviews corrections, watches the stream, imports and
//! exports, and plays the demo and the replay.
//!
//! [`main`] is what the binary calls. [`run`] runs one command line and writes to any writer, which is how tests call
//! it. Each command is a module of [`commands`]; they share [`context`] (where the services are), [`output`] (text or
//! JSON lines), [`view`] (messages as JSON), [`words`] (the names of enums on command lines) and [`failure`] (exit
//! codes). [`pair`] runs both services in this process; [`transfer`] holds the file formats of import and export;
//! [`demo`] and [`replay`] are the two demonstrations.

pub mod commands;
pub mod context;
pub mod demo;
mod evaluation;
pub mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod output;
pub mod pair;
pub mod replay;
pub mod svg;
pub mod transfer;
pub mod view;
pub mod words;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write},
    process::ExitCode,
};

use clap::Parser;
use emend_base::{
    config::{self, Program},
    telemetry::{self, Telemetry},
};
use terminal_size::Width;

use crate::{
    commands::Command,
    context::{Context, Global},
    failure::{Exit, Failure},
    output::Output,
};

/// Feedback and learning for search: corrections in, learned answers out, live on every search node.
#[derive(Debug, Parser)]
#[command(
    name = "emend",
    version,
    after_help = AFTER_HELP,
    max_term_width = 100,
    propagate_version = true,
    mut_subcommands = with_flowing_help
)]
pub struct Cli {
    /// Options accepted before and after every command.
    #[command(flatten)]
    pub global: Global,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Start here:
  emend demo                                  the whole loop in a few seconds, nothing to set up
  emend up                                    both services, data in ./emend-data
  emend submit verb \"set up a CSA\" create_isda --instead-of create_csa --reporter ana --wait
  emend candidates list                       what waits for your decision
  emend watch                                 what is learned, as it is learned

Exit codes:
  0  done
  1  failed
  2  the command line or an argument is not valid
  3  not found
  4  conflict: it exists already, it changed meanwhile, or a precondition does not hold
  5  a service is unavailable or too slow; the same command may succeed later";

/// The same command, in whose help and in that of its subcommands prose fills the lines of the terminal, whatever its width.
fn with_flowing_help(command: clap::Command) -> clap::Command {
    let help = command.get_after_help().map(|help| flowing(&help.to_string()));
    let command = command.mut_subcommands(with_flowing_help);
    match help {
        Some(help) => command.after_help(help),
        None => command,
    }
}

/// A text whose paragraphs are a line each. What is indented stays as it is.
fn flowing(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut flowing = String::new();
    let mut continues = false;
    for line in text.lines() {
        if !flowing.is_empty() {
            flowing.push(if continues && is_prose(line) { ' ' } else { '\n' });
        }
        flowing.push_str(line);
        continues = is_prose(line);
    }
    flowing
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let (cli, notes) = match config::begin::<Cli>(std::env::args_os()) {
        Ok(begun) => begun,
        Err(exit) => return exit.print(),
    };
    let level = if matches!(cli.command, Command::Up(_)) {
        "info"
    } else {
        "warn"
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            Failure::from(error).report(cli.global.json);
            return Exit::Failed.into();
        }
    };
    // The trace exporter needs the runtime.
    let _within = runtime.enter();
    let telemetry = match telemetry(&cli, level) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            error.report(cli.global.json);
            return Exit::Usage.into();
        }
    };
    notes.log();
    let mut stdout = io::stdout();
    let read_by_people = stdout.is_terminal();
    let columns = terminal_size::terminal_size_of(&stdout).map(|(Width(columns), _)| columns);
    let output = Output::new(&mut stdout, cli.global.json);
    let output = if read_by_people {
        let output = output.within(columns);
        // https://no-color.org
        output.coloured(std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()))
    } else {
        output.unshortened()
    };
    runtime.block_on(execute(cli, telemetry, output))
}

/// Sets up this process's telemetry. Only long-running commands export traces.
fn telemetry(cli: &Cli, level: &str) -> failure::Result<Telemetry> {
    let exported_as = matches!(cli.command, Command::Up(_) | Command::Watch(_)).then_some("emend");
    telemetry::init(&cli.global.log, level, exported_as).map_err(|error| Failure::usage(error.to_string()))
}

/// Runs one command line, given as arguments with the program's name first, and writes results to `stdout`.
pub async fn run<I>(args: I, stdout: &mut (dyn Write + Send)) -> ExitCode
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    match config::begin::<Cli>(args) {
        Ok((cli, _)) => {
            let output = Output::new(stdout, cli.global.json).unshortened();
            // Of all commands' futures it is as large as the largest.
            Box::pin(execute(cli, Telemetry::default(), output)).await
        }
        Err(exit) => exit.print(),
    }
}

impl Program for Cli {
    const WITHIN: Option<&'static str> = Some("up");

    fn check(&self) -> Vec<String> {
        let Command::Up(args) = &self.command else {
            return Vec::new();
        };
        let log = telemetry::check(&self.global.log)
            .err()
            .map(|error| error.to_string());
        log.into_iter().chain(args.check(&self.global)).collect()
    }
}

/// Runs a parsed command line; results go to `output`, failures to standard error.
pub async fn execute(cli: Cli, telemetry: Telemetry, mut output: Output<'_>) -> ExitCode {
    let Cli { global, command } = cli;
    let json = global.json;
    let context = Context::new(global, telemetry);
    match command.run(&context, &mut output).await {
        Ok(code) => code,
        Err(failure) => {
            failure.report(json);
            failure.exit().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_help() {
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            assert!(
                command.get_about().is_some(),
                "{} has no help",
                command.get_name()
            );
        }
        let help = cli.clone().render_long_help().to_string();
        assert!(help.contains("Exit codes:") && help.contains("emend demo"));
    }

    #[test]
    fn no_example_in_help_is_so_long_that_it_would_be_wrapped() {
        fn check(command: &clap::Command) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn paragraphs_of_help_flow_and_examples_stay() {
        let text = "Examples:\n  emend a\n  emend b\n\nProse that\ngoes on.\n  {\"a\": 1}\nAnd\non.\n\nMore.";
        let expected =
            "Examples:\n  emend a\n  emend b\n\nProse that goes on.\n  {\"a\": 1}\nAnd on.\n\nMore.";
        assert_eq!(flowing(text), expected);
        let cli = Cli::command();
        let submit = cli.find_subcommand("submit").unwrap().clone();
        let help = submit.term_width(60).render_long_help().to_string();
        let prose: Vec<&str> = help.split("\n\n").last().unwrap().lines().collect();
        let (_, full) = prose.split_last().unwrap();
        assert!(
            full.iter().all(|line| (45..=60).contains(&line.chars().count())),
            "{help}"
        );
    }

    #[tokio::test]
    async fn a_wrong_command_line_has_exit_code_2() {
        let mut nothing = Vec::new();
        let code = run(["emend", "submit"], &mut nothing).await;
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(Exit::Usage)));
    }
}
