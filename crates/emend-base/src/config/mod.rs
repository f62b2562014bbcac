//! A program's settings from flags, the environment, a file and built-in defaults, in this order of precedence.
//!
//! A program's clap [`Command`](clap::Command) is the one schema. Every setting is an argument with a long flag, a help
//! text and usually an environment variable; the file is TOML whose keys are the names of the long flags. The file's
//! values go through the arguments' own value parsers and clap's rules (`requires`, `conflicts_with`) as if given on
//! the command line. Unknown keys are refused; so are all invalid values, each by file, key and what is expected.
//!
//! A program flattens [`ConfigArgs`] into its arguments, implements [`Program`] and calls [`begin`] instead of
//! `Parser::parse`. Arguments with `hide_env_values` are secrets and never shown.

mod early_exit;
mod environment;
mod file;
mod print;
mod reference;
mod resolve;
pub mod units;

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, parser::ValueSource};

use crate::lines::all_wrapped;

pub use early_exit::EarlyExit;
pub use environment::{FromVariables, KNOWN_ELSEWHERE, Unknown};
pub use reference::{reference, variables};
pub use resolve::Setting;

/// The settings file, and the flags that ask about the settings or the services that run with them. Flattened into the
/// arguments of programs that a file can configure.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// A TOML file of settings, whose keys are the names of the long flags; flags and environment variables take
    /// precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print each setting with its source, as a file for --config without secrets, and exit
    #[arg(long, conflicts_with = "check_config")]
    pub print_config: bool,
    /// Parse all settings and the files that they name, report whether they are valid, and exit: code 0 or 2
    #[arg(long)]
    pub check_config: bool,
    /// Ask the services that run with these settings on this machine whether they are ready, and exit: code 0 or 1; if
    /// clients must present certificates, ask at --metrics-addr, which then has to name a port
    #[arg(long, conflicts_with_all = ["print_config", "check_config"])]
    pub probe: bool,
}

/// The longest line of what `--check-config` says of valid settings.
const VERDICT_WIDTH: usize = 80;

/// The arguments that are not settings.
const ABOUT_CONFIG: [&str; 4] = ["config", "print-config", "check-config", "probe"];

/// A program whose settings come from flags, environment and file.
pub trait Program: clap::Parser {
    /// The subcommand that has settings, if it is not the program itself. clap alone parses any other subcommand.
    const WITHIN: Option<&'static str> = None;

    /// Finds faults that no single value shows: files that must exist and be valid, settings that contradict each
    /// other. For `--check-config`; starts nothing. Each complaint is a sentence that names its flag; empty means
    /// valid.
    fn check(&self) -> Vec<String>;
}

/// What is known of the settings besides their values: warnings to log once the log is set up, and which variables give them.
#[derive(Debug, Default)]
pub struct Notes {
    unknown: Vec<Unknown>,
    variables: FromVariables,
}

impl Notes {
    /// What `--check-config` says of valid settings: also what it has not looked at, and what nobody reads.
    fn verdict(&self) -> String {
        let mut verdict = "ok\n".to_owned();
        for unknown in &self.unknown {
            verdict.extend(["warning: ", &unknown.to_string(), "\n"]);
        }
        verdict.push_str(
            "not checked: whether the database answers and accepts the credentials, and whether the addresses are free\n",
        );
        all_wrapped(&verdict, VERDICT_WIDTH)
    }

    /// The flags whose values environment variables give.
    pub fn variables(&self) -> &FromVariables {
        &self.variables
    }

    /// Logs the warnings.
    pub fn log(&self) {
        for unknown in &self.unknown {
            tracing::warn!(variable = %unknown.name, "{unknown}");
        }
    }
}

/// Parses a program's arguments, the program's name first, together with environment and file. `Err` is what to print
/// instead of running: help, the settings, or what is wrong with them.
pub fn begin<P: Program>(
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<(P, Notes), EarlyExit> {
    let arguments = arguments.into_iter().map(Into::into).collect();
    let resolved = resolve::resolve(P::command(), P::WITHIN, arguments)?;
    let program = P::from_arg_matches(&resolved.matches).map_err(EarlyExit::Clap)?;
    let given = FromVariables::of(&P::command(), &resolved.matches);
    let Some(scope) = scope(&resolved.matches, P::WITHIN) else {
        let notes = Notes {
            variables: given,
            ..Notes::default()
        };
        return Ok((program, notes));
    };
    if asked(scope, "print_config") {
        return Err(EarlyExit::Output(print::print(&resolved)));
    }
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let known = resolved
        .settings
        .iter()
        .filter_map(|setting| setting.variable.as_deref());
    let notes = Notes {
        unknown: environment::unknown(variables, known),
        variables: given,
    };
    if asked(scope, "check_config") {
        let complaints = program.check();
        return Err(if complaints.is_empty() {
            EarlyExit::Output(notes.verdict())
        } else {
            let complaints = complaints.iter();
            EarlyExit::Invalid(
                complaints
                    .map(|complaint| notes.variables.named(complaint))
                    .collect(),
            )
        });
    }
    Ok((program, notes))
}

/// The matches of the command that has the settings; `None` if another subcommand is used.
fn scope<'a>(matches: &'a ArgMatches, within: Option<&str>) -> Option<&'a ArgMatches> {
    match within {
        None => Some(matches),
        Some(name) => matches.subcommand_matches(name),
    }
}

fn asked(matches: &ArgMatches, id: &str) -> bool {
    matches!(matches.try_get_one::<bool>(id), Ok(Some(true)))
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The most similar name, if any is similar enough.
fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.5;
    names
        .into_iter()
        .map(|other| (strsim::normalized_damerau_levenshtein(name, other), other))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests;
