//! The `emend` command: runs the pair of services, submits and reviews corrections, watches the stream, imports and
//! exports, and plays the demo and the replay.
//!
//! [`main`] is what the binary calls. [`run`] runs one command line and writes to any writer, which is how tests call
//! it. Each command is a module of [`commands`]; they share [`context`] (where the services are), [`output`] (text or
//! JSON lines), [`view`] (messages as JSON), [`words`] (the names of enums on command lines) and [`failure`] (exit
//! codes). [`pair`] runs both services in this process; [`transfer`] holds the file formats of import and export;
//! [`demo`] and [`replay`] are the two demonstrations.
//! What is computed rather than called and printed is in `emend-lab`.

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
pub mod transfer;
pub mod view;
pub mod words;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write},
    process::ExitCode,
};

use clap::{Arg, Args as _, Parser};
use emend_base::{
    config::{self, Program},
    lines::width_of_terminal,
    telemetry::{self, Telemetry},
};

use crate::{
    commands::Command,
    context::{Context, Global},
    failure::{Exit, Failure},
    output::Output,
};

/// Feedback and learning for search: start with `emend demo` or `emend up`
#[derive(Debug, Parser)]
#[command(
    name = "emend",
    version,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 invalid, 3 not found, 4 conflict, 5 unavailable",
    max_term_width = 100,
    help_template = TEMPLATE,
    mut_args = on_one_line,
    mut_subcommands = below_the_top
)]
pub struct Cli {
    /// Options accepted before and after every command.
    #[command(flatten)]
    pub global: Global,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

const TEMPLATE: &str = "\
{about}
{usage-heading} {usage}

Commands:
{subcommands}

Options, most also read from the environment (EMEND_NAMESPACE and so on):
{options}{after-help}";

/// The same common option as `emend --help` shows it: on one line, or named on that of another one.
fn on_one_line(option: Arg) -> Arg {
    let option = option.hide_env(true);
    match option.get_id().as_str() {
        "feedback_addr" => option.help("feedback-svc [default: 127.0.0.1:7401]"),
        "learning_addr" => option.help("learning-svc [default: 127.0.0.1:7402]"),
        "ca" => option.help("CAs (PEM); also --client-cert, --client-key"),
        "token_file" => option.help("File with your bearer token"),
        "timeout" => option.help("How long a call may take"),
        "log_level" => option.help("Log level, such as info; also --log-format"),
        "client_cert" | "client_key" | "log_format" => option.hide(true),
        _ => option,
    }
}

/// The same command below the top one, in whose help prose fills the lines of the terminal, whatever its width. The common
/// options are accepted, and only mentioned.
fn below_the_top(command: clap::Command) -> clap::Command {
    // Those of `up` are settings, which hidden ones are not.
    let has_settings = Cli::WITHIN == Some(command.get_name());
    let common = Global::augment_args(clap::Command::default());
    let common = common.get_arguments().cloned().map(|option| {
        if has_settings {
            option.hide_short_help(true).hide_long_help(true)
        } else {
            option.hide(true)
        }
    });
    let own_help = command.get_after_help().map(ToString::to_string);
    let own_help = own_help.map_or_else(String::new, |help| flowing(&help) + "\n\n");
    command
        .args(common)
        .disable_help_subcommand(true)
        .after_help(own_help + "Common options: see `emend --help`")
        .mut_subcommands(below_the_top)
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
    let (mut cli, notes) = match config::begin::<Cli>(std::env::args_os()) {
        Ok(begun) => begun,
        Err(exit) => return exit.print(),
    };
    cli.global.from_variables = notes.variables().clone();
    let serves = match &cli.command {
        Command::Up(_) | Command::Console(_) | Command::Edge(_) => true,
        Command::Mcp(args) => args.is_served(),
        _ => false,
    };
    let level = match &cli.command {
        // It prints itself what the subscriber would log.
        Command::Watch(_) => "warn,emend_client=error",
        _ if serves => "info",
        _ => "warn",
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
            let error = error.naming_variables(&cli.global.from_variables);
            error.report(cli.global.json);
            return Exit::Usage.into();
        }
    };
    notes.log();
    let mut stdout = io::stdout();
    let read_by_people = stdout.is_terminal();
    let columns = width_of_terminal(&stdout);
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
    let (json, variables) = (global.json, global.from_variables.clone());
    let context = Context::new(global, telemetry);
    // Boxed because it is large.
    match Box::pin(command.run(&context, &mut output)).await {
        Ok(code) => code,
        Err(failure) => {
            let failure = failure.naming_variables(&variables);
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

    /// What a command prints when it is asked for help on a terminal that is this wide.
    fn help(path: &[&str], columns: usize) -> String {
        let line = ["emend"].iter().chain(path).chain(&["--help"]);
        let asked = Cli::command().term_width(columns).try_get_matches_from(line);
        asked.unwrap_err().to_string()
    }

    /// Calls `check` with every command, and with the words that lead to it.
    fn for_each_command(check: &mut dyn FnMut(&[&str], &clap::Command)) {
        fn below<'a>(
            path: &mut Vec<&'a str>,
            command: &'a clap::Command,
            check: &mut dyn FnMut(&[&str], &clap::Command),
        ) {
            for command in command.get_subcommands() {
                path.push(command.get_name());
                check(path, command);
                below(path, command, check);
                path.pop();
            }
        }
        below(&mut Vec::new(), &Cli::command(), check);
    }

    #[test]
    fn every_command_has_help() {
        for_each_command(&mut |path, command| assert!(command.get_about().is_some(), "{path:?} has no help"));
    }

    #[test]
    fn the_help_of_the_whole_and_of_each_group_fits_a_screen() {
        for columns in [80, 100] {
            for (path, most) in [
                (&[][..], 45),
                (&["evidence"], 30),
                (&["outputs"], 30),
                (&["search"], 30),
            ] {
                let help = help(path, columns);
                assert!(
                    help.lines().count() <= most,
                    "{} lines:\n{help}",
                    help.lines().count()
                );
                assert!(help.lines().all(|line| line.chars().count() <= columns), "{help}");
            }
        }
        let mut built = Cli::command();
        built.build();
        assert!(built.get_subcommands().count() <= 27);
    }

    #[test]
    fn common_options_stand_in_the_help_of_the_whole_and_are_one_line_elsewhere() {
        let whole = help(&[], 100);
        let common = Global::augment_args(clap::Command::default());
        let common: Vec<String> = common
            .get_arguments()
            .map(|option| format!("--{}", option.get_long().unwrap()))
            .collect();
        assert!(common.len() > 8);
        for option in &common {
            assert!(whole.contains(option), "{option}: {whole}");
        }
        for_each_command(&mut |path, _| {
            let help = help(path, 100);
            assert!(
                help.ends_with("\nCommon options: see `emend --help`\n"),
                "{path:?}: {help}"
            );
            let rows = help.lines().filter_map(|line| line.strip_prefix("      --"));
            for row in rows {
                let option = format!("--{}", row.split(' ').next().unwrap());
                assert!(!common.contains(&option), "{path:?}: {row}");
            }
        });
    }

    #[test]
    fn help_alone_leads_to_why_a_domain_is_blocked() {
        for (path, next) in [
            (&[][..], "evidence"),
            (&["evidence"], "domains"),
            (&["evidence", "domains"], "blocked"),
            (&["evidence", "domains"], "check"),
        ] {
            let help = help(path, 80);
            let row = help
                .lines()
                .find(|line| line.split_whitespace().next() == Some(next));
            let row = row.unwrap_or_else(|| panic!("no {next}: {help}"));
            assert!(row.contains("blocked") && row.contains("why"), "{row}");
        }
    }

    #[test]
    fn what_writes_a_value_is_called_set_everywhere() {
        let mut sets = 0;
        for_each_command(&mut |path, command| {
            sets += usize::from(command.get_name() == "set");
            let mut names = command.get_all_aliases().chain([command.get_name()]);
            assert!(!names.any(|name| name == "put"), "{path:?}");
        });
        assert!(sets > 3, "{sets}");
    }

    #[test]
    fn by_and_reporter_mean_one_thing_each() {
        for_each_command(&mut |path, command| {
            for option in command.get_arguments() {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                let expected = match option.get_long() {
                    Some("by") => &["The person on whose behalf you do it"][..],
                    Some("reporter") => &[
                        "The person or agent who says it",
                        "Only ",
                        "Erase everything about this reporter",
                    ],
                    _ => continue,
                };
                assert!(
                    expected.iter().any(|start| help.starts_with(start)),
                    "{path:?}: {help}"
                );
            }
        });
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
