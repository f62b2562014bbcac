//! Starting and stopping the pair, and which callers it admits.

use std::{fmt::Write as _, fs, path::PathBuf};

use emend_store::testing::TestPostgres;
use tempfile::TempDir;

use crate::harness::{Ran, Up, command, run};

/// Corrects a name, for which one vote suffices, and waits for the outcome.
const SAY: [&str; 8] = [
    "submit",
    "entity",
    "J. Smith",
    "jane.smith",
    "--reporter",
    "ana",
    "--wait",
    "--json",
];
const ASK: [&str; 5] = ["resolve", "j. smith", "--kind", "entity", "--json"];

/// Callers, each with a token in a file named after them, and the file that lists their token hashes.
struct Callers(TempDir);

impl Callers {
    /// Creates callers from names and roles.
    async fn new(callers: &[(&str, &str)]) -> Self {
        let all = Self(tempfile::tempdir().expect("a directory"));
        let mut known = String::new();
        for (name, role) in callers {
            let made = run(&["admin", "token", "--json"]).await.ok().json();
            let part = |part: &str| made[part].as_str().expect("a text").to_owned();
            fs::write(all.0.path().join(name), part("token")).expect("a file");
            let _ = write!(
                known,
                "[[principals]]\nname = \"{name}\"\ntoken_sha256 = [\"{}\"]\n\
                 grants = [{{ roles = [\"{role}\"], namespaces = \"*\" }}]\n",
                part("tokenSha256")
            );
        }
        fs::write(all.path("auth.toml"), known).expect("a file");
        all
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn named(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Runs a command as one of them.
    async fn run(&self, up: &Up, name: &str, args: &[&str]) -> Ran {
        up.run(&[args, &["--token-file", &self.named(name)]].concat())
            .await
    }
}

/// Asserts a refusal with this reason, and nothing on standard output.
#[track_caller]
fn refused(ran: &Ran, reason: &str) {
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains(reason), "{reason}: {ran:#?}");
    assert_eq!(ran.stdout, "", "{ran:#?}");
}

#[tokio::test]
async fn it_says_one_line_and_ends_in_good_order() {
    for signal in ["-TERM", "-INT"] {
        let up = Up::ephemeral().await;
        up.run(&["submit", "phrase", "a", "b"]).await.ok();
        up.signal(signal).await;
        let (status, more) = up.ended().await;
        assert_eq!(status.code(), Some(0));
        assert_eq!(more, [""; 0], "one line on standard output and no more");
    }
}

#[tokio::test]
async fn what_was_learned_is_there_after_a_restart_and_a_new_epoch_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display().to_string();
    let up = Up::start(&["--data-dir", &path]).await;
    up.run(&[
        "submit",
        "entity",
        "J. Smith",
        "jane.smith",
        "--reporter",
        "ana",
        "--wait",
    ])
    .await
    .ok();

    // A second process is refused.
    let second = command()
        .args([
            "up",
            "--data-dir",
            &path,
            "--feedback-addr",
            "127.0.0.1:0",
            "--learning-addr",
            "127.0.0.1:0",
        ])
        .output()
        .await
        .expect("emend can be run");
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"));
    assert_eq!(run(&["admin", "new-epoch", "--data-dir", &path]).await.code, 4);

    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
    let epoch = run(&["admin", "new-epoch", "--data-dir", &path, "--json"])
        .await
        .ok()
        .json();
    assert_ne!(epoch["epoch"], epoch["oldEpoch"]);
    assert_eq!(epoch["revision"], 1);

    let up = Up::start(&["--data-dir", &path]).await;
    let resolved = up
        .run(&["resolve", "j. smith", "--kind", "entity", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(resolved["match"]["value"], "jane.smith");
}

#[tokio::test]
async fn strangers_are_kept_out_unless_allowed_in_so_many_words() {
    for (feedback, learning) in [
        ("0.0.0.0:0", "127.0.0.1:0"),
        ("127.0.0.1:0", "0.0.0.0:0"),
        ("[::]:0", "[::]:0"),
    ] {
        let exposed = run(&[
            "up",
            "--ephemeral",
            "--feedback-addr",
            feedback,
            "--learning-addr",
            learning,
        ])
        .await;
        assert_eq!(exposed.code, 2, "{exposed:?}");
        assert!(exposed.stderr.contains("--allow-unauthenticated"));
        assert!(exposed.stdout.is_empty());
    }
}

#[tokio::test]
async fn each_caller_is_known_by_its_token_and_the_relay_too() {
    let callers = Callers::new(&[
        ("feedback-svc", "ingester"),
        ("web", "reporter"),
        ("node", "subscriber"),
    ])
    .await;
    let (known, relay) = (callers.named("auth.toml"), callers.named("feedback-svc"));
    let known = [
        "--ephemeral",
        "--auth-config",
        &known,
        "--learning-token-file",
        &relay,
    ];
    // Listening beyond loopback is allowed, because authentication is configured.
    let mut up = Up::start_at("0.0.0.0:0", &known).await;
    for address in [&mut up.feedback, &mut up.learning] {
        *address = address.replace("0.0.0.0", "127.0.0.1");
    }
    fs::write(callers.path("stranger"), "guessed").expect("a file");
    for asked in [&SAY[..], &ASK] {
        refused(&up.run(asked).await, "CREDENTIALS_MISSING");
        refused(
            &callers.run(&up, "stranger", asked).await,
            "CREDENTIALS_NOT_ACCEPTED",
        );
    }
    refused(&callers.run(&up, "node", &SAY).await, "ROLE_MISSING");
    refused(&callers.run(&up, "web", &ASK).await, "ROLE_MISSING");

    let said = callers.run(&up, "web", &SAY).await.ok().json();
    assert_eq!(said["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{said}");
    assert_eq!(said["caller"], "web", "{said}");
    let resolved = callers.run(&up, "node", &ASK).await.ok().json();
    assert_eq!(resolved["match"]["value"], "jane.smith");
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
}

#[tokio::test]
async fn a_pair_whose_parts_would_not_know_each_other_is_not_started() {
    let callers = Callers::new(&[("feedback-svc", "ingester")]).await;
    let known = callers.named("auth.toml");
    let with = ["up", "--ephemeral", "--auth-config", &known];
    let without_token = run(&with).await;
    assert_eq!(without_token.code, 2, "{without_token:?}");
    refused(&without_token, "--learning-token-file");
    let gone = callers.named("gone");
    let without_file = run(&[&with[..], &["--learning-token-file", &gone]].concat()).await;
    assert_eq!(without_file.code, 2, "{without_file:?}");
    refused(&without_file, "gone");
    fs::write(callers.path("auth.toml"), "principals = 1").expect("a file");
    let relay = callers.named("feedback-svc");
    let unfit = run(&[&with[..], &["--learning-token-file", &relay]].concat()).await;
    assert_eq!(unfit.code, 2, "{unfit:?}");
    refused(&unfit, "auth.toml");
}

#[tokio::test]
async fn both_services_can_live_in_one_postgresql_database() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    // The test database's own URL hides the password; the server's URL has it.
    let server = std::env::var("EMEND_TEST_POSTGRES_URL").expect("it is set where there is a database");
    let name = database.url().to_string();
    let name = name.rsplit('/').next().expect("a name");
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    let up = Up::start(&["--database-url", &url]).await;
    let said = up.run(&SAY).await.ok().json();
    assert_eq!(said["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{said}");
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
    database.close().await;
}
