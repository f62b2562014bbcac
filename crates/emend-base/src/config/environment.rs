//! Environment variables that look like ours but are not: a typo would otherwise go unnoticed.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt,
};

use clap::{
    Arg, ArgMatches, Command,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};

use super::{nearest, resolve::source_of};

/// The prefix of our variables.
const PREFIX: &str = "EMEND_";
/// Prefixes of variables that tests read.
const FOR_TESTS: [&str; 2] = ["EMEND_TEST_", "EMEND_FAIL_POINT"];

/// The variables of all of Emend's programs, one per line, because several may share one environment. Written by `cargo
/// xtask docs`; a test fails if it is out of date.
pub const KNOWN_ELSEWHERE: &str = include_str!("variables.txt");

/// A variable that nothing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its name.
    pub name: String,
    nearest: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no setting has the environment variable {}", self.name)?;
        self.nearest
            .as_ref()
            .map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
    }
}

/// The `variables` with our prefix that nothing reads; `known` are those of this program.
pub(super) fn unknown<'a>(
    variables: impl Iterator<Item = String>,
    known: impl Iterator<Item = &'a str>,
) -> Vec<Unknown> {
    let known: BTreeSet<&str> = known.chain(KNOWN_ELSEWHERE.lines()).collect();
    let mut unknown: Vec<Unknown> = variables
        .filter(|name| name.starts_with(PREFIX) && !known.contains(name.as_str()))
        .filter(|name| !FOR_TESTS.iter().any(|prefix| name.starts_with(prefix)))
        .map(|name| Unknown {
            nearest: nearest(&name, known.iter().copied()).map(str::to_owned),
            name,
        })
        .collect();
    unknown.sort_by(|one, other| one.name.cmp(&other.name));
    unknown
}

/// The flags whose values environment variables give, so that what is found wrong with one later names its variable, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FromVariables(BTreeMap<String, String>);

impl FromVariables {
    /// Those of a command line and its subcommands.
    pub(super) fn of(command: &Command, matches: &ArgMatches) -> Self {
        let mut given = BTreeMap::new();
        let (mut command, mut matches) = (command, matches);
        loop {
            for arg in command.get_arguments() {
                let (Some(flag), Some(variable)) = (arg.get_long(), arg.get_env()) else {
                    continue;
                };
                let flag = format!("--{flag}");
                match source_of(arg, matches) {
                    Some(ValueSource::EnvVariable) => {
                        given.insert(flag, variable.to_string_lossy().into_owned());
                    }
                    // Given to the subcommand, where it counts.
                    Some(ValueSource::CommandLine) => {
                        given.remove(&flag);
                    }
                    _ => {}
                }
            }
            let Some((name, below)) = matches.subcommand() else {
                return Self(given);
            };
            let Some(subcommand) = command.find_subcommand(name) else {
                return Self(given);
            };
            (command, matches) = (subcommand, below);
        }
    }

    /// What a text says, and of each flag that it names and a variable gives, which variable that is.
    pub fn named(&self, text: &str) -> String {
        let mut named = text.to_owned();
        for flag in self.0.keys().filter(|flag| names(text, flag)) {
            named.push_str(&self.after(flag));
        }
        named
    }

    /// What is said behind a text about the value of a flag: the variable that gives it, if one does.
    pub fn after(&self, flag: &str) -> String {
        self.0.get(flag).map_or_else(String::new, |variable| {
            format!("; {flag} has the value of the environment variable {variable}")
        })
    }
}

/// Whether a text has the flag as a whole word.
fn names(text: &str, flag: &str) -> bool {
    text.match_indices(flag).any(|(at, _)| {
        let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !text[at + flag.len()..].starts_with(goes_on)
    })
}

/// The error, with the name of the environment variable that an invalid value came from: nobody sees it on the command line.
pub(super) fn naming_variable(mut error: clap::Error, command: &Command) -> clap::Error {
    if let Some(name) = variable_of(&error, command) {
        let tip = format!("the environment variable {name} has this value").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The variable of the argument that the error is about, if it has the invalid value.
pub(super) fn variable_of(error: &clap::Error, command: &Command) -> Option<String> {
    let (Some(ContextValue::String(argument)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return None;
    };
    // clap panics where it has to show an argument of a command that is not built.
    let mut built = command.clone();
    built.build();
    source(&built, argument, value)
}

/// The variable with this value whose argument is shown so, in a command or its subcommands.
fn source(built: &Command, argument: &str, value: &str) -> Option<String> {
    let own = built
        .get_arguments()
        .find(|arg| has_value(arg, value) && arg.to_string() == argument)
        .and_then(Arg::get_env)
        .map(|name| name.to_string_lossy().into_owned());
    own.or_else(|| {
        built
            .get_subcommands()
            .find_map(|subcommand| source(subcommand, argument, value))
    })
}

/// Whether the argument's variable has this value, or it is one of those that the variable lists.
fn has_value(arg: &Arg, value: &str) -> bool {
    let set = arg.get_env().and_then(env::var_os);
    set.is_some_and(|set| match (set.to_str(), arg.get_value_delimiter()) {
        (Some(set), Some(delimiter)) => set.split(delimiter).any(|part| part == value),
        _ => set == value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_value_names_the_variable_that_it_came_from() {
        // Cargo sets it for tests.
        let number = Arg::new("number")
            .long("number")
            .env("CARGO_PKG_NAME")
            .value_parser(clap::value_parser!(u8));
        let command = Command::new("program").subcommand(Command::new("part").arg(number));
        // As the command has it: an argument that can't be shown before it is built.
        let words = Arg::new("words").num_args(0..).trailing_var_arg(true);
        let command = command.subcommand(Command::new("other").arg(words));
        let refused = |arguments: &[&str]| {
            let error = command
                .clone()
                .try_get_matches_from(["program", "part"].iter().chain(arguments))
                .unwrap_err();
            naming_variable(error, &command).to_string()
        };
        assert!(
            refused(&[]).contains("the environment variable CARGO_PKG_NAME has this value"),
            "{}",
            refused(&[])
        );
        assert!(!refused(&["--number=x"]).contains("CARGO_PKG_NAME"));
    }

    #[test]
    fn what_is_found_wrong_later_names_the_variable_of_each_flag_in_it() {
        // Cargo sets both for tests.
        let setting =
            |name: &'static str, variable: &'static str| Arg::new(name).long(name).env(variable).global(true);
        let command = Command::new("program")
            .arg(setting("name", "CARGO_PKG_NAME"))
            .arg(setting("name-of-all", "CARGO_PKG_VERSION"))
            .subcommand(Command::new("part"));
        let given = |arguments: &[&str]| {
            let line = ["program"].iter().chain(arguments);
            FromVariables::of(&command, &command.clone().get_matches_from(line))
        };
        let said = "--name x: is none; pass --other";
        assert_eq!(
            given(&["part"]).named(said),
            "--name x: is none; pass --other; --name has the value of the environment variable CARGO_PKG_NAME"
        );
        assert_eq!(given(&["part", "--name", "x"]).named(said), said);
        assert_eq!(given(&["--name", "x", "part"]).named(said), said);
        assert_eq!(given(&[]).after("--other"), "");
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_most_similar_known_one() {
        let set = [
            "EMEND_LISTENS",
            "EMEND_LISTEN",
            "EMEND_LOG",
            "PATH",
            "EMEND_TEST_SEED",
            "EMEND_?",
        ];
        let found = unknown(set.map(str::to_owned).into_iter(), ["EMEND_LISTEN"].into_iter());
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages[1],
            "no setting has the environment variable EMEND_LISTENS; did you mean EMEND_LISTEN?"
        );
        assert_eq!((found.len(), found[0].name.as_str()), (2, "EMEND_?"));
    }
}
