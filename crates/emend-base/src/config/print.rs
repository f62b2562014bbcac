//! The settings as a file, for `--print-config`.

use std::fmt::Write as _;

use toml::Value;

use super::resolve::{Resolved, Setting, Source};

/// The column at which the source of a value begins.
const COLUMN: usize = 44;

/// A file that reproduces the settings; defaults and hidden values are comments.
pub(super) fn print(resolved: &Resolved) -> String {
    let mut text = format!(
        "# The settings of {}, and where each comes from. A line that is commented out is a\n# default, is not set, or is a secret, which is not shown.\n",
        resolved.program
    );
    for setting in &resolved.settings {
        let (line, source) = (line(setting), source(setting));
        // Writing to a String can't fail.
        let _ = writeln!(text, "{line:COLUMN$}  # {source}");
    }
    text
}

fn line(setting: &Setting) -> String {
    let key = &setting.key;
    match &setting.values {
        None => format!("# {key} is not set"),
        Some(values) if setting.secret => {
            let shown: Vec<String> = values.iter().map(|value| without_secret(value)).collect();
            format!("# {key} = {:?}", shown.join(" "))
        }
        Some(values) => {
            let comment = if setting.source == Source::Default {
                "# "
            } else {
                ""
            };
            format!("{comment}{key} = {}", value(values, setting.switch))
        }
    }
}

fn source(setting: &Setting) -> String {
    match (&setting.source, &setting.variable) {
        (Source::Environment, Some(name)) => format!("environment {name}"),
        (source, _) => source.to_string(),
    }
}

fn value(values: &[String], switch: bool) -> Value {
    match values {
        [one] if switch => Value::Boolean(one == "true"),
        // A value that reads the same as a number may be written as one.
        [one] => match one.parse::<i64>() {
            Ok(number) if number.to_string() == *one => Value::Integer(number),
            _ => Value::String(one.clone()),
        },
        many => Value::Array(many.iter().cloned().map(Value::String).collect()),
    }
}

/// A URL's scheme, user, host and path; anything else is hidden.
fn without_secret(text: &str) -> String {
    const HIDDEN: &str = "<hidden>";
    let Some((scheme, rest)) = text.split_once("://") else {
        return HIDDEN.to_owned();
    };
    // A password may contain any character that people forget to encode, so in doubt nothing is shown.
    let plain = rest.split('?').next().unwrap_or_default();
    match (plain.rsplit_once('@'), rest.contains('@')) {
        (Some((user, place)), _) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:{HIDDEN}@{place}")
        }
        (None, true) => HIDDEN.to_owned(),
        (None, false) => format!("{scheme}://{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_parts_of_a_setting_are_hidden() {
        for (secret, shown) in [
            (
                "postgres://emend:s3cret@db:5432/emend?sslmode=require",
                "postgres://emend:<hidden>@db:5432/emend",
            ),
            (
                "postgres://emend:s3/cr@et@db/emend",
                "postgres://emend:<hidden>@db/emend",
            ),
            ("postgres://emend:s3c?ret@db/emend", "<hidden>"),
            ("postgres://db/emend?password=s3cret", "postgres://db/emend"),
            ("postgres://db/emend?password=s3@cret", "<hidden>"),
            ("s3cret", "<hidden>"),
        ] {
            assert_eq!(without_secret(secret), shown, "{secret}");
        }
    }
}
