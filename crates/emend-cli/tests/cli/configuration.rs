//! Settings from a file for `emend up`, and the reference of all programs' settings, which is generated from their
//! code: `cargo xtask docs` writes it, and these tests check that it is up to date.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

use clap::{Command, CommandFactory as _};
use emend_base::config::{self, KNOWN_ELSEWHERE};
use emend_cli::Cli;

use crate::harness::{Up, command, run};

/// Set by `cargo xtask docs`.
const UPDATE: &str = "EMEND_UPDATE_DOCS";

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `cargo xtask docs` from the programs' own arguments. Change those, not this. -->

Every setting of `feedback-svc`, `learning-svc` and `emend up` can be given as a flag, mostly as an environment variable, and in a
file. Where several give a value, the first of these counts:

1. the flag, `--max-calls 1000`;
2. the environment variable, where the tables name one;
3. the file;
4. the default.

The file is TOML. Its keys are the names of the flags, on one level, without tables; `--config FILE` names it, or
`EMEND_FEEDBACK_CONFIG`, `EMEND_LEARNING_CONFIG`, for `emend up` `EMEND_CONFIG`:

```toml
listen = \"0.0.0.0:7401\"
allow-unauthenticated = true
database-url-file = \"/etc/emend/secrets/database-url\"
commit-queue-size = \"64MiB\"
relay-workers = 8
```

Paths in it are relative to the directory in which the program runs. An unknown key is refused, and so is every value that is
not valid; the message names the file, the key and what is expected, also if a flag or variable overrides it. Settings that exclude each
other do so wherever they come from. A variable that begins with `EMEND_` and that nothing reads is logged.

* `--print-config` prints every setting with where its value comes from, and ends. The output can be given back as a file. Secrets are not
  in it.
* `--check-config` parses everything, checks that the named files exist and are valid, and ends: exit code 0 and `ok`, or 2 and
  what is wrong. feedback-svc also tries its token and certificate, if learning-svc answers. It says what it can't know, and which
  variables nothing reads. It starts nothing, listens nowhere and opens no database, so it can be run beside the running service,
  before a restart or in a pipeline.

A span of time is a whole number and `ms`, `s`, `m`, `h` or `d`; a size is a whole number and `B`, `KiB`, `MiB` or `GiB`. Secrets (a
database's URL with its password) are better given as files than as variables or flags, which other processes may see.
";

/// The programs that have settings.
fn programs() -> [(&'static str, Command, Option<&'static str>); 3] {
    [
        ("feedback-svc", feedback_svc::Arguments::command(), None),
        ("learning-svc", learning_svc::Arguments::command(), None),
        ("emend up", Cli::command(), Some("up")),
    ]
}

/// Compares a file with its expected content, or writes it.
pub(crate) fn assert_up_to_date(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, expected).expect("the file can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let first = written
        .lines()
        .zip(expected.lines())
        .find(|(is, should)| is != should);
    assert!(
        written == expected,
        "{} is not up to date: run `cargo xtask docs`; the first difference: {first:#?}",
        path.display()
    );
}

#[test]
fn the_reference_is_up_to_date() {
    let mut text = INTRODUCTION.to_owned();
    for (name, command, within) in programs() {
        write!(text, "\n## {name}\n\n{}", config::reference(&command, within)).unwrap();
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    assert_up_to_date("docs/configuration.md", &text);
}

/// What an edge serves at /openapi.json.
#[test]
fn the_description_of_the_edge_is_up_to_date() {
    assert_up_to_date("docs/openapi.json", emend_edge::openapi::text());
}

#[test]
fn the_list_of_all_variables_is_up_to_date() {
    let all: BTreeSet<String> = programs()
        .iter()
        .flat_map(|(_, command, _)| config::variables(command))
        .collect();
    let mut text = String::new();
    for name in all.iter().filter(|name| name.starts_with("EMEND_")) {
        writeln!(text, "{name}").unwrap();
    }
    assert_up_to_date("crates/emend-base/src/config/variables.txt", &text);
    assert!(env::var_os(UPDATE).is_some() || KNOWN_ELSEWHERE == text);
}

#[test]
fn each_setting_is_described_in_a_sentence() {
    for (name, command, within) in programs() {
        for row in config::reference(&command, within)
            .lines()
            .filter(|line| line.starts_with("| `"))
        {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            assert!(cells.len() == 5 && cells[4].trim().len() > 20, "{name}: {row}");
        }
    }
}

#[tokio::test]
async fn emend_up_takes_its_settings_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("emend.toml");
    let file = file.display().to_string();
    fs::write(
        &file,
        "data-dir = '/nowhere/data'\nfeedback-addr = '127.0.0.1:0'\nlog-level = 'warn'",
    )
    .unwrap();
    let printed = run(&["up", "--config", &file, "--log-level", "debug", "--print-config"])
        .await
        .ok()
        .stdout;
    for line in [
        "data-dir = \"/nowhere/data\" ",
        "feedback-addr = \"127.0.0.1:0\" ",
        "log-level = \"debug\" ",
    ] {
        assert!(
            printed.contains(&format!("\n{line}")),
            "{line} is not in\n{printed}"
        );
    }
    let by_variable = command()
        .args(["up", "--print-config"])
        .env("EMEND_CONFIG", &file)
        .output()
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&by_variable.stdout).contains("\ndata-dir = \"/nowhere/data\" "));

    let checked = run(&["up", "--config", &file, "--check-config"])
        .await
        .ok()
        .stdout;
    assert!(checked.starts_with("ok\n"), "{checked}");
    let exposed = run(&["--learning-addr", "0.0.0.0:1", "up", "--check-config"]).await;
    assert!(
        exposed.code == 2 && exposed.stderr.contains("refusing to listen"),
        "{exposed:?}"
    );

    let by_variable = command()
        .args(["nodes"])
        .env("EMEND_TIMEOUT", "soon")
        .output()
        .await
        .unwrap();
    let refused = String::from_utf8_lossy(&by_variable.stderr);
    assert!(
        refused.contains("--timeout") && refused.contains("EMEND_TIMEOUT has this value"),
        "{refused}"
    );

    for (arguments, variable, value, flag) in [
        (&["nodes"][..], "EMEND_LEARNING_ADDR", "foo", "--learning-addr"),
        (&["nodes"], "EMEND_CA", "/none", "--ca"),
        (&["nodes"], "EMEND_CLIENT_CERT", "/none", "--client-cert"),
        (&["nodes"], "EMEND_TOKEN_FILE", "/none", "--token-file"),
        (
            &["up", "--check-config"],
            "EMEND_FEEDBACK_ADDR",
            "zzz",
            "--feedback-addr",
        ),
        (
            &["up", "--check-config"],
            "EMEND_METRICS_ADDR",
            "zzz",
            "--metrics-addr",
        ),
        (
            &["up", "--check-config"],
            "EMEND_CONSOLE_ADDR",
            "zzz",
            "--console-addr",
        ),
        (
            &["up", "--ephemeral"],
            "EMEND_LEARNING_ADDR",
            "zzz",
            "--learning-addr",
        ),
    ] {
        let mut by_variable = command();
        by_variable.args(arguments).env(variable, value);
        let refused = by_variable.output().await.unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        let named = format!("; {flag} has the value of the environment variable {variable}");
        assert_eq!(refused.status.code(), Some(2), "{variable}: {said}");
        assert!(said.contains(&named), "{variable}: {said}");
    }
    // What a flag says is not blamed on the variable.
    let by_flag = command()
        .args(["nodes", "--learning-addr", "foo"])
        .env("EMEND_LEARNING_ADDR", "127.0.0.1:7402")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&by_flag.stderr);
    assert!(
        said.contains("foo") && !said.contains("EMEND_LEARNING_ADDR"),
        "{said}"
    );

    fs::write(&file, "data-dirs = 'x'").unwrap();
    let refused = run(&["up", "--config", &file]).await;
    assert!(
        refused.code == 2 && refused.stderr.contains("did you mean data-dir?"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_namespace_that_a_service_refuses_names_the_variable_that_it_came_from() {
    let up = Up::ephemeral().await;
    let listed = command()
        .args(up.args(&["resources", "list"]))
        .env("EMEND_NAMESPACE", "Bad NS!")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&listed.stderr);
    assert_eq!(listed.status.code(), Some(2), "{said}");
    assert!(
        said.contains("namespace: ")
            && said.contains("; --namespace has the value of the environment variable EMEND_NAMESPACE"),
        "{said}"
    );
}
