use std::{fs, path::PathBuf, time::Duration};

use clap::Parser;
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
#[command(name = "service", version = "1.2.3")]
struct Service {
    #[command(flatten)]
    config: ConfigArgs,
    /// How many workers, 1 to 64
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = units::count(1..=64))]
    workers: usize,
    /// How long to wait
    #[arg(long, value_name = "SPAN", default_value = "20s",
          value_parser = units::span(Duration::ZERO..=Duration::from_mins(1)))]
    grace: Duration,
    /// Who may come
    #[arg(long)]
    open: bool,
    /// Where the data is
    #[arg(long, value_name = "URL", hide_env_values = true, value_parser = no_secret)]
    database_url: Option<String>,
    /// A second one
    #[arg(long, value_name = "URL", requires = "database_url")]
    second_url: Option<String>,
    /// Of which package; cargo sets the variable for tests
    #[arg(long, value_name = "NAME", env = "CARGO_PKG_NAME")]
    package: Option<String>,
    /// Several
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// How it looks
    #[arg(long, value_name = "LOOK", default_value = "plain", value_parser = ["plain", "json"])]
    look: String,
}

fn no_secret(text: &str) -> Result<String, String> {
    if text.starts_with("db:") {
        Ok(text.to_owned())
    } else {
        Err("expected db:PLACE".to_owned())
    }
}

impl Program for Service {
    fn check(&self) -> Vec<String> {
        if self.workers == 13 {
            vec!["--workers 13: not today".to_owned()]
        } else {
            Vec::new()
        }
    }
}

struct Scene {
    directory: TempDir,
}

impl Scene {
    fn with(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("service.toml"), text).unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("service.toml")
    }

    fn begin(&self, flags: &[&str]) -> Result<Service, EarlyExit> {
        let mut line = vec![
            "service".to_owned(),
            "--config".to_owned(),
            self.path().display().to_string(),
        ];
        line.extend(flags.iter().map(ToString::to_string));
        begin::<Service>(line).map(|(service, _)| service)
    }

    fn wrong(&self, flags: &[&str]) -> String {
        match self.begin(flags) {
            Err(EarlyExit::Invalid(complaints)) => complaints.join("\n"),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&self, flags: &[&str]) -> String {
        match self.begin(flags) {
            Err(EarlyExit::Output(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_file_applies_where_no_flag_or_variable_is_set() {
    let scene =
        Scene::with("workers = 7\ngrace = '1s'\nopen = true\nlabel = ['a', 2]\npackage = 'from-file'");
    let service = scene.begin(&["--grace", "5s"]).unwrap();
    assert_eq!(service.workers, 7);
    assert_eq!(
        service.grace,
        Duration::from_secs(5),
        "a flag comes before the file"
    );
    assert_eq!(service.package.unwrap(), "emend-base", "the environment, too");
    assert_eq!(service.label, ["a", "2"]);
    assert!(service.open);
    assert_eq!(service.look, "plain");
}

#[test]
fn without_a_file_clap_alone_parses_the_settings() {
    let (service, _) = begin::<Service>(["service", "--workers=2"]).unwrap();
    assert_eq!(service.workers, 2);
    assert!(matches!(
        begin::<Service>(["service", "--help"]),
        Err(EarlyExit::Clap(_))
    ));
    assert!(matches!(begin::<Service>(["service", "--worker"]), Err(error) if error.is_error()));
}

#[test]
fn every_invalid_line_is_reported_with_file_key_and_expected_value() {
    let scene = Scene::with(
        "workers = 65\nworker = 1\ngrace = 20\nopen = 'yes'\nlook = ['plain']\n[label]\nx = 1\n[log]\nlevel = 1",
    );
    let wrong = scene.wrong(&[]);
    let path = scene.path().display().to_string();
    assert_eq!(wrong.lines().count(), 7, "{wrong}");
    assert!(wrong.lines().all(|line| line.starts_with(&path)), "{wrong}");
    for part in [
        "workers: \"65\": 65 is not within 1 to 64 (expected: --workers <COUNT>: How many workers, 1 to 64)",
        "there is no setting worker; did you mean workers?",
        "grace: \"20\": expected a number and a unit",
        "open: it is true or false",
        "look: it takes one value, not a list",
        "label: it can't be a table",
        "there is no setting log",
    ] {
        assert!(wrong.contains(part), "{part} is not in\n{wrong}");
    }
}

#[test]
fn a_value_in_the_file_must_be_valid_even_if_a_flag_overrides_it() {
    let scene = Scene::with("workers = 0");
    assert!(
        scene
            .wrong(&["--workers", "3"])
            .contains("0 is not within 1 to 64")
    );
}

#[test]
fn an_invalid_choice_is_reported_with_all_valid_ones() {
    assert!(
        Scene::with("look = 'loud'")
            .wrong(&[])
            .contains("it is one of plain, json")
    );
}

#[test]
fn rules_between_settings_hold_for_the_file_too() {
    let scene = Scene::with("second-url = 'x'");
    let wrong = scene.wrong(&[]);
    assert!(
        wrong.contains("--database-url") && wrong.contains("with the settings of"),
        "{wrong}"
    );
    assert!(scene.begin(&["--database-url", "db:x"]).is_ok());
}

#[test]
fn a_missing_or_malformed_file_is_reported_without_its_content() {
    let wrong = Scene::with("workers = 1\ndatabase-url = 'db:s3cret").wrong(&[]);
    assert!(wrong.contains("service.toml, line 2: not valid TOML"), "{wrong}");
    assert!(!wrong.contains("s3cret"), "{wrong}");
    let none = begin::<Service>(["service", "--config", "/nowhere/x.toml"]).unwrap_err();
    assert!(matches!(none, EarlyExit::Invalid(complaints) if complaints[0].starts_with("/nowhere/x.toml: ")));
}

#[test]
fn options_about_the_file_are_no_settings_in_it() {
    for key in [
        "config",
        "print-config",
        "check-config",
        "probe",
        "help",
        "version",
    ] {
        let wrong = Scene::with(&format!("{key} = 'x'")).wrong(&[]);
        assert!(wrong.contains(&format!("there is no setting {key}")), "{wrong}");
    }
}

#[test]
fn a_secret_is_never_shown() {
    let file = Scene::with("database-url = 's3cret'").wrong(&[]);
    let flag = Scene::with("").wrong(&["--database-url", "s3cret"]);
    for wrong in [file, flag] {
        assert!(
            wrong.contains("expected db:PLACE") && !wrong.contains("s3cret"),
            "{wrong}"
        );
    }
    let printed = Scene::with("database-url = 'db://user:s3cret@host/x'").answer(&["--print-config"]);
    assert!(
        printed.contains("# database-url = \"db://user:<hidden>@host/x\""),
        "{printed}"
    );
}

#[test]
fn the_settings_are_printed_with_their_sources_and_can_be_read_again() {
    let scene = Scene::with("workers = 7\nopen = true\nlabel = ['a', 'b \"c\"']");
    let flags = ["--grace", "5s"];
    let printed = scene.answer(&[&flags[..], &["--print-config"]].concat());
    let line = |key: &str| {
        let found = printed
            .lines()
            .find(|line| line.trim_start_matches("# ").starts_with(key));
        found.unwrap_or_else(|| panic!("{key} is not in\n{printed}"))
    };
    assert!(
        line("workers").starts_with("workers = 7 ")
            && line("workers").ends_with(&format!("# file {}", scene.path().display()))
    );
    assert!(line("grace").starts_with("grace = \"5s\" ") && line("grace").ends_with("# flag"));
    assert!(line("open").starts_with("open = true "));
    assert!(line("package").ends_with("# environment CARGO_PKG_NAME"));
    assert!(line("look").starts_with("# look = \"plain\" ") && line("look").ends_with("# default"));
    assert!(line("database-url").starts_with("# database-url is not set"));
    assert!(
        printed.starts_with("# The settings of service 1.2.3,"),
        "{printed}"
    );

    let back = Scene::with(&printed);
    let (before, after) = (scene.begin(&flags).unwrap(), back.begin(&[]).unwrap());
    let same = |service: Service| {
        let config = ConfigArgs::default();
        format!("{:?}", Service { config, ..service })
    };
    assert_eq!(same(before), same(after));
}

#[test]
fn checking_says_ok_or_what_is_wrong() {
    let valid = Scene::with("workers = 7").answer(&["--check-config"]);
    assert!(
        valid.starts_with("ok\n") && valid.contains("not checked: whether the database"),
        "{valid}"
    );
    assert_eq!(
        Scene::with("workers = 13").wrong(&["--check-config"]),
        "--workers 13: not today"
    );
    assert!(
        Scene::with("worker = 7")
            .wrong(&["--check-config"])
            .contains("worker")
    );
    assert!(
        Scene::with("workers = 13").begin(&[]).is_ok(),
        "starting finds out by itself"
    );
}

#[derive(Debug, Parser)]
#[command(name = "tool")]
struct Tool {
    /// For all of them
    #[arg(long, global = true)]
    name: Option<String>,
    #[command(subcommand)]
    command: ToolCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ToolCommand {
    Up {
        #[command(flatten)]
        config: ConfigArgs,
        /// A place
        #[arg(long)]
        place: Option<String>,
    },
    Down {
        #[arg(long)]
        place: Option<String>,
    },
}

impl Program for Tool {
    const WITHIN: Option<&'static str> = Some("up");

    fn check(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn a_subcommand_may_have_settings() {
    let scene = Scene::with("name = 'n'\nplace = 'p'");
    let path = scene.path().display().to_string();
    let (tool, _) = begin::<Tool>(["tool", "up", "--config", &path]).unwrap();
    assert_eq!(tool.name.unwrap(), "n");
    assert!(matches!(tool.command, ToolCommand::Up { place: Some(place), .. } if place == "p"));
    let (tool, _) = begin::<Tool>(["tool", "--name", "m", "up", "--config", &path]).unwrap();
    assert_eq!(tool.name.unwrap(), "m", "a flag before the subcommand is a flag");
    let (tool, _) = begin::<Tool>(["tool", "down", "--place", "q"]).unwrap();
    assert!(matches!(tool.command, ToolCommand::Down { place: Some(place) } if place == "q"));
}

#[test]
fn the_reference_has_a_row_for_each_setting() {
    let text = reference(&<Service as clap::CommandFactory>::command(), None);
    let row = "| `workers` | COUNT | `4` |  | How many workers, 1 to 64 |";
    assert!(text.lines().any(|line| line == row), "{text}");
    assert!(text.contains("| `open` | `true` or `false` | "), "{text}");
    assert!(text.contains("| `look` | `plain`, `json` | `plain` |"), "{text}");
    assert!(!text.contains("print-config"), "{text}");
}
