//! How two prompts differ, for terminals and for programs that read patches.

use std::fmt::Write as _;

use emend_client::prompt_files::PromptFile;
use emend_core::Prompt;
use similar::TextDiff;

use crate::output::{BOLD, CYAN, GREEN, RED, RESET};

/// From one prompt to another, with variables and settings, as a unified diff; empty if they say the same. `None`: there was
/// none.
pub(super) fn prompts(target: &str, before: Option<&Prompt>, after: &Prompt) -> String {
    let contents = |prompt: &Prompt| PromptFile::of(target, prompt).to_string();
    let name = |prompt: &Prompt| match prompt.version {
        0 => format!("{target} (new)"),
        version => format!("{target} (version {version})"),
    };
    let before_name = before.map_or_else(|| "/dev/null".to_owned(), name);
    unified(
        &before.map(contents).unwrap_or_default(),
        &contents(after),
        (&before_name, &name(after)),
    )
}

/// From one text to another as a unified diff with three lines of context; empty if they are equal.
fn unified(before: &str, after: &str, names: (&str, &str)) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    unified.context_radius(3);
    unified.header(names.0, names.1);
    unified.to_string()
}

/// A unified diff as people read it: in colours where they are wanted, with carriage returns that can be seen.
pub(super) fn painted(diff: &str, coloured: bool) -> String {
    if !coloured {
        return diff.to_owned();
    }
    let mut painted = String::with_capacity(diff.len() * 2);
    for line in diff.split_terminator('\n') {
        let colour = match line.as_bytes() {
            [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => BOLD,
            [b'+', ..] => GREEN,
            [b'-', ..] => RED,
            [b'@', b'@', ..] => CYAN,
            _ => "",
        };
        let reset = if colour.is_empty() { "" } else { RESET };
        // Writing to a String can't fail.
        let _ = writeln!(painted, "{colour}{}{reset}", line.replace('\r', "␍"));
    }
    painted
}

#[cfg(test)]
mod tests {
    use emend_core::kinds::Setting;

    use super::*;

    fn prompt(version: u32, text: &str, model: &str) -> Prompt {
        let setting = Setting {
            name: "model".into(),
            value: model.into(),
        };
        let mut prompt = Prompt::new(text, vec![], vec![setting]).unwrap();
        prompt.version = version;
        prompt
    }

    #[test]
    fn texts_and_settings_that_differ_are_shown() {
        let before = prompt(1, "one\ntwo\nthree", "small");
        let after = prompt(0, "one\n2\nthree", "large");
        assert_eq!(
            prompts("T", Some(&before), &after),
            "--- T (version 1)\n+++ T (new)\n@@ -1,7 +1,7 @@\n ---\n settings:\n-  model: \"small\"\n\
             +  model: \"large\"\n ---\n one\n-two\n+2\n three\n\\ No newline at end of file\n"
        );
        assert_eq!(
            prompts("T", Some(&before), &prompt(2, "one\ntwo\nthree", "small")),
            ""
        );
        assert!(prompts("T", None, &after).starts_with("--- /dev/null\n+++ T (new)\n"));
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        let diff = unified("a\nb\r\n", "a\nc\n", ("x", "y"));
        assert_eq!(painted(&diff, false), diff);
        assert_eq!(
            painted(&diff, true),
            "\x1b[1m--- x\x1b[0m\n\x1b[1m+++ y\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n a\n\x1b[31m-b␍\x1b[0m\n\
             \x1b[32m+c\x1b[0m\n"
        );
    }
}
