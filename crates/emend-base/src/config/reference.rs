//! The reference of a program's settings, generated from its [`Command`].

use std::{collections::BTreeSet, fmt::Write as _};

use clap::{Arg, ArgAction, Command};

use super::resolve::{key_of, setting_args};

/// A Markdown table for each group of settings of `command`, or of its subcommand `within`.
pub fn reference(command: &Command, within: Option<&str>) -> String {
    const UNGROUPED: &str = "Options";
    let args = setting_args(command, within);
    let mut headings: Vec<&str> = Vec::new();
    for arg in &args {
        let heading = arg.get_help_heading().unwrap_or(UNGROUPED);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let mut text = String::new();
    for heading in headings {
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "### {heading}\n\n| setting | value | default | environment | what it is |\n|---|---|---|---|---|"
        );
        let group = args
            .iter()
            .filter(|arg| arg.get_help_heading().unwrap_or(UNGROUPED) == heading);
        for arg in group {
            let _ = writeln!(text, "{}", row(arg));
        }
        text.push('\n');
    }
    text
}

/// The environment variables of all arguments of `command` and its subcommands, including those that are not settings.
pub fn variables(command: &Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter_map(|arg| arg.get_env())
        .map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(variables)).collect()
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let default = arg
        .get_default_values()
        .iter()
        .map(|value| code(&value.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ");
    let variable = arg
        .get_env()
        .map(|name| code(&name.to_string_lossy()))
        .unwrap_or_default();
    format!(
        "| {} | {} | {default} | {variable} | {} |",
        code(key_of(arg)),
        value(arg),
        help.replace('|', "\\|")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    )
}

fn value(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse) {
        return "`true` or `false`".to_owned();
    }
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        return possible
            .iter()
            .map(|value| code(value.get_name()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let names = arg.get_value_names().unwrap_or_default();
    names
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
