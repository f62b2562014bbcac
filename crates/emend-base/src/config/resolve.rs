//! Merges the three sources into one set of matches: the file's settings are appended to the command line, except those
//! that a flag or the environment already sets. So clap's own parsers and rules apply to all of them.

use std::{
    collections::BTreeMap,
    env,
    error::Error as _,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::Resettable,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    ABOUT_CONFIG,
    early_exit::EarlyExit,
    environment::{naming_variable, variable_of},
    file::{self, Entry},
    nearest, scope,
};

/// The resolved settings.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) matches: ArgMatches,
    /// In the order of the help. Empty if a subcommand without settings is used.
    pub(super) settings: Vec<Setting>,
    /// The program's name as typed, and its version.
    pub(super) program: String,
}

/// One setting and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name: the flag without dashes, and the key in the file.
    pub key: String,
    /// Its environment variable.
    pub variable: Option<String>,
    /// What it is for, in one line.
    pub help: String,
    /// Whether it must not be shown.
    pub secret: bool,
    /// Whether it is `true` or `false`.
    pub switch: bool,
    /// Its values as given; `None` if it is not set.
    pub values: Option<Vec<String>>,
    /// Where its value comes from.
    pub source: Source,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flag,
    /// The environment variable.
    Environment,
    /// The file.
    File(PathBuf),
    /// The built-in default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The arguments of `command`, or of its subcommand `within`, that are settings, in the order of the help.
pub(super) fn setting_args(command: &Command, within: Option<&str>) -> Vec<Arg> {
    let mut built = command.clone();
    built.build();
    let scope = within.map_or(&built, |name| {
        built
            .find_subcommand(name)
            .expect("invariant: the program has the subcommand that it says has settings")
    });
    scope
        .get_arguments()
        .filter(|arg| {
            !matches!(
                arg.get_action(),
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
            )
        })
        .filter(|arg| !arg.is_hide_set())
        .filter(|arg| arg.get_long().is_some_and(|long| !ABOUT_CONFIG.contains(&long)))
        .cloned()
        .collect()
}

/// The error with a usage line that names of the options only what has to be given or was: clap also names those that variables
/// set.
fn with_usage_of_arguments(
    mut error: clap::Error,
    command: Command,
    arguments: Vec<OsString>,
) -> clap::Error {
    error = naming_variable(error, &command);
    let bare = without_variables(command).try_get_matches_from(arguments);
    if error.get(ContextKind::Usage).is_some()
        && let Err(bare) = bare
        && let Some(usage) = bare.get(ContextKind::Usage)
    {
        error.insert(ContextKind::Usage, usage.clone());
    }
    error
}

fn without_variables(command: Command) -> Command {
    command
        .mut_args(|arg| arg.env(Resettable::Reset))
        .mut_subcommands(without_variables)
}

/// Parses `arguments`, the program's name first.
pub(super) fn resolve(
    command: Command,
    within: Option<&str>,
    arguments: Vec<OsString>,
) -> Result<Resolved, EarlyExit> {
    let seen = command
        .clone()
        .ignore_errors(true)
        .try_get_matches_from(&arguments)
        .map_err(EarlyExit::Clap)?;
    let program = program_name(&command, within);
    let Some(seen) = scope(&seen, within) else {
        let matches = command
            .clone()
            .try_get_matches_from(&arguments)
            .map_err(|error| EarlyExit::Clap(with_usage_of_arguments(error, command, arguments)))?;
        return Ok(Resolved {
            matches,
            settings: Vec::new(),
            program,
        });
    };
    let args = setting_args(&command, within);
    let path = seen.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let file = match &path {
        None => BTreeMap::new(),
        Some(path) => File {
            path,
            command: &command,
            within,
            args: &args,
        }
        .read()
        .map_err(EarlyExit::Invalid)?,
    };

    let mut all = arguments;
    for arg in &args {
        let key = key_of(arg);
        if let Some(values) = file.get(key)
            && !is_said(arg, seen)
        {
            all.extend(values.iter().cloned());
        }
    }
    let matches = command
        .clone()
        .try_get_matches_from(all)
        .map_err(|error| refusal(error, &command, &args, path.as_deref()))?;
    let scoped = scope(&matches, within).unwrap_or(&matches);
    let settings = args
        .iter()
        .map(|arg| {
            setting(
                arg,
                scoped,
                seen,
                path.as_deref().filter(|_| file.contains_key(key_of(arg))),
            )
        })
        .collect();
    Ok(Resolved {
        matches,
        settings,
        program,
    })
}

fn program_name(command: &Command, within: Option<&str>) -> String {
    let mut name = command.get_name().to_owned();
    for part in within.into_iter().chain(command.get_version()) {
        name.push(' ');
        name.push_str(part);
    }
    name
}

pub(super) fn key_of(arg: &Arg) -> &str {
    arg.get_long()
        .expect("invariant: settings are those with a long flag")
}

/// Whether a flag or the environment sets it.
fn is_said(arg: &Arg, seen: &ArgMatches) -> bool {
    source_of(arg, seen) == Some(ValueSource::CommandLine)
        || arg.get_env().is_some_and(|name| env::var_os(name).is_some())
}

/// Where the value of an argument comes from; `None` if it has none.
pub(super) fn source_of(arg: &Arg, matches: &ArgMatches) -> Option<ValueSource> {
    // `value_source` panics for an id that the command does not have.
    matches.try_contains_id(arg.get_id().as_str()).ok()?;
    matches.value_source(arg.get_id().as_str())
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
}

fn setting(arg: &Arg, matches: &ArgMatches, seen: &ArgMatches, file: Option<&Path>) -> Setting {
    let id = arg.get_id().as_str();
    let source = match source_of(arg, seen) {
        Some(ValueSource::CommandLine) => Source::Flag,
        _ if is_said(arg, seen) => Source::Environment,
        _ => file.map_or(Source::Default, |path| Source::File(path.to_owned())),
    };
    let values = matches.try_get_raw(id).ok().flatten();
    Setting {
        key: key_of(arg).to_owned(),
        variable: arg.get_env().map(|name| name.to_string_lossy().into_owned()),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        secret: arg.is_hide_env_values_set(),
        switch: is_switch(arg),
        values: values.map(|values| values.map(|value| value.to_string_lossy().into_owned()).collect()),
        source,
    }
}

/// The file, and the command whose settings it holds.
struct File<'a> {
    path: &'a Path,
    command: &'a Command,
    within: Option<&'a str>,
    args: &'a [Arg],
}

impl File<'_> {
    /// The equivalent command-line arguments of each key, or all complaints at once.
    fn read(&self) -> Result<BTreeMap<String, Vec<OsString>>, Vec<String>> {
        let entries = file::read(self.path).map_err(|complaint| vec![complaint])?;
        let mut flags_by_key = BTreeMap::new();
        let mut complaints = Vec::new();
        for (key, entry) in entries {
            match self.flags(&key, entry) {
                Ok(flags) => {
                    flags_by_key.insert(key, flags);
                }
                Err(complaint) => complaints.push(format!("{}: {complaint}", self.path.display())),
            }
        }
        if complaints.is_empty() {
            Ok(flags_by_key)
        } else {
            Err(complaints)
        }
    }

    fn flags(&self, key: &str, entry: Entry) -> Result<Vec<OsString>, String> {
        let Some(arg) = self.args.iter().find(|arg| key_of(arg) == key) else {
            let nearest = nearest(key, self.args.iter().map(key_of));
            let nearest = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
            return Err(format!("there is no setting {key}{nearest}"));
        };
        let values = match (entry, is_switch(arg)) {
            (Entry::Switch(true), true) => return Ok(vec![format!("--{key}").into()]),
            (Entry::Switch(false), true) => return Ok(Vec::new()),
            (_, true) => return Err(expected(arg, "it is true or false")),
            (Entry::Switch(is), false) => vec![is.to_string()],
            (Entry::One(value), false) => vec![value],
            (Entry::Many(values), false) if takes_many(arg) => values,
            (Entry::Many(_), false) => return Err(expected(arg, "it takes one value, not a list")),
            (Entry::Unfit(unfit), false) => return Err(expected(arg, &format!("it can't be {unfit}"))),
        };
        let flags: Vec<OsString> = values
            .iter()
            .map(|value| format!("--{key}={value}").into())
            .collect();
        for (flag, value) in flags.iter().zip(&values) {
            self.is_fit(arg, flag).map_err(|reason| {
                let given = if arg.is_hide_env_values_set() {
                    String::new()
                } else {
                    format!("{value:?}: ")
                };
                expected(arg, &format!("{given}{reason}"))
            })?;
        }
        Ok(flags)
    }

    /// Whether the argument's own parser accepts the value, regardless of other arguments.
    fn is_fit(&self, arg: &Arg, flag: &OsString) -> Result<(), String> {
        let line = [Some(self.command.get_name()), self.within];
        let line = line
            .into_iter()
            .flatten()
            .map(OsString::from)
            .chain([flag.clone()]);
        match self.command.clone().try_get_matches_from(line) {
            Err(error) if is_about_value(&error) && concerns(&error, arg) => Err(reason(&error)),
            _ => Ok(()),
        }
    }
}

fn takes_many(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some()
}

/// `key: complaint; --key <VALUE>: help`
fn expected(arg: &Arg, complaint: &str) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!("{}: {complaint} (expected: {arg}: {help})", key_of(arg))
}

fn is_about_value(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidUtf8
    )
}

fn concerns(error: &clap::Error, arg: &Arg) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(named)) if *named == arg.to_string())
}

/// Why a value is invalid, without the value.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => {
            format!("it is one of {}", valid.join(", "))
        }
        _ => "it is not a valid value".to_owned(),
    }
}

/// clap's error, without secrets, naming the variable that the value came from, and the file if there is one.
fn refusal(error: clap::Error, command: &Command, args: &[Arg], file: Option<&Path>) -> EarlyExit {
    let secret = args
        .iter()
        .find(|arg| arg.is_hide_env_values_set() && is_about_value(&error) && concerns(&error, arg));
    if let Some(secret) = secret {
        let by_variable = variable_of(&error, command)
            .map_or_else(String::new, |name| format!(" in the environment variable {name}"));
        return EarlyExit::Invalid(vec![expected(secret, &(reason(&error) + &by_variable))]);
    }
    let error = naming_variable(error, command);
    match file {
        Some(path) if error.use_stderr() && !is_about_value(&error) => {
            let early_exit = error.to_string();
            let early_exit = early_exit.trim().strip_prefix("error: ").unwrap_or(&early_exit);
            EarlyExit::Invalid(vec![format!(
                "{}\n\nwith the settings of {}",
                early_exit.trim(),
                path.display()
            )])
        }
        _ => EarlyExit::Clap(error),
    }
}
