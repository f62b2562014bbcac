//! The program's settings, from flags, environment and file.

use std::{
    fs,
    process::{Command, Output},
};

use tempfile::TempDir;

struct Scene {
    directory: TempDir,
    environment: Vec<(&'static str, String)>,
}

struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new(file: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("service.toml"), file).expect("a file");
        Self {
            directory,
            environment: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn run(&self, flags: &[&str]) -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedback-svc"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EMEND_")) {
            command.env_remove(name);
        }
        command.current_dir(self.directory.path()).args(flags);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the program runs");
        CommandOutput {
            code: status.code(),
            stdout: String::from_utf8(stdout).expect("text"),
            stderr: String::from_utf8(stderr).expect("text"),
        }
    }

    /// The names of all files in the program's working directory.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).expect("the directory is there");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        names.sort();
        names
    }
}

/// The line of a setting in the output of `--print-config`, as (setting, source).
fn line<'a>(printed: &'a str, key: &str) -> (&'a str, &'a str) {
    let of_key = |line: &&str| {
        let line = line.trim_start_matches("# ");
        line.strip_prefix(key).is_some_and(|rest| rest.starts_with(' '))
    };
    let line = printed
        .lines()
        .find(of_key)
        .unwrap_or_else(|| panic!("{key} is not in\n{printed}"));
    let (printed, source) = line.rsplit_once("  # ").expect("a source");
    (printed.trim_end(), source)
}

#[test]
fn a_flag_comes_before_the_environment_before_the_file_before_the_default() {
    let mut scene = Scene::new(
        "learning-addr = 'file:1'\nrelay-workers = 7\nlisten = '127.0.0.1:1'\nlog-format = 'json'",
    );
    let file = scene.path("service.toml");
    scene.environment = vec![
        ("EMEND_FEEDBACK_CONFIG", file.clone()),
        ("EMEND_LEARNING_ADDR", "environment:1".to_owned()),
        ("EMEND_FEEDBACK_LISTEN", "127.0.0.1:2".to_owned()),
    ];
    let ran = scene.run(&["--learning-addr", "flag:1", "--print-config"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let printed = ran.stdout;
    let from_file = format!("file {file}");
    assert_eq!(
        line(&printed, "learning-addr"),
        ("learning-addr = \"flag:1\"", "flag")
    );
    assert_eq!(
        line(&printed, "listen"),
        ("listen = \"127.0.0.1:2\"", "environment EMEND_FEEDBACK_LISTEN")
    );
    assert_eq!(
        line(&printed, "relay-workers"),
        ("relay-workers = 7", &*from_file)
    );
    assert_eq!(
        line(&printed, "log-format"),
        ("log-format = \"json\"", &*from_file)
    );
    assert_eq!(
        line(&printed, "relay-lease"),
        ("# relay-lease = \"30s\"", "default")
    );
    assert_eq!(
        line(&printed, "database-url"),
        ("# database-url is not set", "default")
    );
}

#[test]
fn printed_settings_can_be_read_again() {
    let scene = Scene::new("relay-workers = 7\nmax-calls = 100\nallow-unauthenticated = true");
    let printed = scene
        .run(&["--config", "service.toml", "--data-dir", "x", "--print-config"])
        .stdout;
    fs::write(scene.path("again.toml"), &printed).unwrap();
    let again = scene.run(&["--config", "again.toml", "--print-config"]).stdout;
    let values = |printed: &str| -> Vec<String> {
        let lines = printed.lines().filter_map(|line| line.rsplit_once("  # "));
        lines.map(|(printed, _)| printed.trim_end().to_owned()).collect()
    };
    assert_eq!(values(&printed), values(&again));
    assert_eq!(line(&again, "data-dir"), ("data-dir = \"x\"", "file again.toml"));
}

#[test]
fn no_secret_is_shown() {
    let mut scene = Scene::new("database-url = 'postgres://emend:s3cret@db.example/emend'");
    let from_file = scene.run(&["--config", "service.toml", "--print-config"]);
    scene.environment = vec![(
        "EMEND_FEEDBACK_DATABASE_URL",
        "postgres://emend:s3cret@db.example:x/emend".to_owned(),
    )];
    let unfit = scene.run(&[]);
    for ran in [&from_file, &unfit] {
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("s3cret"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let (shown, _) = line(&from_file.stdout, "database-url");
    assert_eq!(
        shown,
        "# database-url = \"postgres://emend:<hidden>@db.example/emend\""
    );
    assert_eq!(unfit.code, Some(2));
    assert!(unfit.stderr.contains("--database-url <URL>"), "{}", unfit.stderr);
}

#[test]
fn an_unknown_key_is_refused_with_the_most_similar_known_one() {
    let scene = Scene::new("relay-worker = 7");
    let ran = scene.run(&["--config", "service.toml"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.stderr,
        "error: service.toml: there is no setting relay-worker; did you mean relay-workers?\n"
    );
    assert_eq!(scene.left(), ["service.toml"], "nothing was started");
}

#[test]
fn checking_starts_nothing_and_reads_the_named_files() {
    let scene = Scene::new("relay-workers = 7");
    let fine = scene.run(&["--config", "service.toml", "--check-config"]);
    assert_eq!((fine.code, &*fine.stderr), (Some(0), ""));
    assert!(fine.stdout.starts_with("ok\n"), "{}", fine.stdout);

    fs::write(scene.path("url"), "postgres://emend:s3cret@db.example/emend\n").unwrap();
    let named = scene.run(&["--database-url-file", "url", "--check-config"]);
    assert_eq!(named.code, Some(0), "{}", named.stderr);
    assert!(named.stdout.starts_with("ok\n"), "{}", named.stdout);

    for (flags, complaint) in [
        (&["--database-url-file", "none"][..], "--database-url-file none: "),
        (
            &["--database-url-file", "service.toml"],
            "--database-url-file service.toml: expected sqlite:PATH",
        ),
        (
            &["--log-level", "learning=loud"],
            "--log-level \"learning=loud\": ",
        ),
        (
            &["--listen", "0.0.0.0:7401"],
            "refusing to listen on 0.0.0.0:7401",
        ),
        (
            &["--listen", "zzz"],
            "--listen: \"zzz\" is not an address to listen on, expected HOST:PORT",
        ),
        (
            &["--metrics-addr", "zzz"],
            "--metrics-addr \"zzz\": can't listen there",
        ),
        (&["--relay-lease", "5m"], "5m is not within 15s to 150s"),
        (&["--config", "none.toml"], "none.toml: "),
    ] {
        let unfit = scene.run(&[flags, &["--check-config"]].concat());
        assert_eq!(unfit.code, Some(2), "{flags:?}");
        assert!(
            unfit.stderr.contains(complaint) && unfit.stdout.is_empty(),
            "{flags:?}: {}",
            unfit.stderr
        );
    }
    assert_eq!(scene.left(), ["service.toml", "url"]);
}

#[test]
fn what_is_wrong_with_the_value_of_a_variable_names_the_variable() {
    for (variable, flag, value) in [
        ("EMEND_FEEDBACK_LISTEN", "--listen", "zzz"),
        ("EMEND_METRICS_ADDR", "--metrics-addr", "zzz"),
        ("EMEND_LEARNING_TOKEN_FILE", "--learning-token-file", "/none"),
        ("EMEND_FEEDBACK_AUTH_CONFIG", "--auth-config", "/none"),
        ("EMEND_LEARNING_CA", "--learning-ca", "/none"),
    ] {
        let mut scene = Scene::new("");
        scene.environment = vec![(variable, value.to_owned())];
        let checked = scene.run(&["--check-config"]);
        assert_eq!(checked.code, Some(2), "{variable}: {}", checked.stderr);
        let named = format!("; {flag} has the value of the environment variable {variable}");
        assert!(checked.stderr.contains(&named), "{variable}: {}", checked.stderr);
    }
    let mut scene = Scene::new("");
    scene.environment = vec![("EMEND_FEEDBACK_LISTEN", "zzz".to_owned())];
    let started = scene.run(&[]);
    assert!(
        started.code != Some(0)
            && started
                .stderr
                .contains("--listen has the value of the environment variable EMEND_FEEDBACK_LISTEN"),
        "{}",
        started.stderr
    );
}

#[test]
fn an_unread_variable_is_reported() {
    let mut scene = Scene::new("");
    // In use, so that the program exits by itself.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    scene.environment = vec![
        ("EMEND_FEEDBACK_LISTENS", "x".to_owned()),
        ("EMEND_LEARNING_DATABASE_URL", "sqlite:x".to_owned()),
    ];
    let ran = scene.run(&["--listen", &taken]);
    let warnings: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains(" WARN "))
        .collect();
    assert_eq!(warnings.len(), 1, "{}", ran.stderr);
    assert!(
        warnings[0].contains("EMEND_FEEDBACK_LISTENS; did you mean EMEND_FEEDBACK_LISTEN?"),
        "{}",
        warnings[0]
    );
}
