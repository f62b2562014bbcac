//! Starting and stopping the pair, and which callers it admits.

use std::{fmt::Write as _, fs, path::PathBuf};

use emend_store::testing::TestPostgres;
use tempfile::TempDir;

use crate::harness::{Completed, Up, command, run};

/// Corrects a name, for which one vote suffices, and waits for the outcome.
const SUBMIT: [&str; 8] = [
    "submit",
    "entity",
    "J. Smith",
    "jane.smith",
    "--reporter",
    "ana",
    "--wait",
    "--json",
];
const RESOLVE: [&str; 5] = ["resolve", "j. smith", "--kind", "entity", "--json"];

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
    async fn run(&self, up: &Up, name: &str, args: &[&str]) -> Completed {
        up.run(&[args, &["--token-file", &self.named(name)]].concat())
            .await
    }
}

/// Asserts a refusal with this reason, and nothing on standard output.
#[track_caller]
fn refused(ran: &Completed, reason: &str) {
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains(reason), "{reason}: {ran:#?}");
    assert_eq!(ran.stdout, "", "{ran:#?}");
}

#[tokio::test]
async fn one_line_says_that_it_is_ready_and_a_signal_stops_it() {
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
async fn data_survives_a_restart_and_a_new_epoch() {
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
async fn a_missing_database_is_not_replaced_by_an_empty_one_unless_that_is_accepted() {
    for missing in ["feedback.db", "learning.db"] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().display().to_string();
        let up = Up::start(&["--data-dir", &path]).await;
        up.run(&SUBMIT).await.ok();
        up.signal("-TERM").await;
        assert_eq!(up.ended().await.0.code(), Some(0));
        for file in fs::read_dir(&path).expect("a directory") {
            let file = file.expect("a file").path();
            if file.to_string_lossy().contains(missing) {
                fs::remove_file(file).expect("it can be removed");
            }
        }

        let started = run(&["up", "--data-dir", &path]).await;
        assert_eq!(started.code, 4, "{started:?}");
        refused(&started, &format!("{missing} is missing in {path}"));
        refused(&started, "--accept-new-installation");

        let up = Up::start(&["--data-dir", &path, "--accept-new-installation"]).await;
        let submitted = up.run(&SUBMIT).await.ok().json();
        assert_eq!(
            submitted["outcome"]["state"], "OUTCOME_STATE_APPLIED",
            "{submitted}"
        );
        up.signal("-TERM").await;
        assert_eq!(up.ended().await.0.code(), Some(0));
        let up = Up::start(&["--data-dir", &path]).await;
        up.run(&RESOLVE).await.ok();
    }
}

#[tokio::test]
async fn listening_beyond_loopback_without_authentication_is_refused() {
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
    let raters = ["up", "--ephemeral", "--rating-http", "0.0.0.0:0=cards/web"];
    let exposed = run(&raters).await;
    assert_eq!(exposed.code, 2, "{exposed:?}");
    refused(&exposed, "--rating-http: refusing to listen on 0.0.0.0:0");
}

#[tokio::test]
async fn callers_are_authenticated_by_their_tokens_and_so_is_feedback_svc() {
    let callers = Callers::new(&[
        ("feedback-svc", "ingester"),
        ("web", "reporter"),
        ("node", "subscriber"),
        ("console", "reviewer"),
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
    for asked in [&SUBMIT[..], &RESOLVE] {
        let missing = up.run(asked).await;
        refused(&missing, "CREDENTIALS_MISSING");
        refused(&missing, "--token-file");
        refused(
            &callers.run(&up, "stranger", asked).await,
            "CREDENTIALS_NOT_ACCEPTED",
        );
    }
    // Refused for good, a watch ends, too.
    for (who, reason) in [("stranger", "CREDENTIALS_NOT_ACCEPTED"), ("web", "ROLE_MISSING")] {
        let watched = callers.run(&up, who, &["watch"]).await;
        refused(&watched, reason);
        assert_eq!(watched.stderr.matches(reason).count(), 1, "{watched:?}");
    }
    let no_reporter = callers.run(&up, "node", &SUBMIT).await;
    refused(&no_reporter, "ROLE_MISSING");
    refused(&no_reporter, "SubmitFeedback needs the role reporter");
    refused(&callers.run(&up, "web", &RESOLVE).await, "ROLE_MISSING");

    let stored = callers.run(&up, "web", &SUBMIT).await.ok().json();
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{stored}");
    assert_eq!(stored["caller"], "web", "{stored}");
    let resolved = callers.run(&up, "node", &RESOLVE).await.ok().json();
    assert_eq!(resolved["match"]["value"], "jane.smith");
    let log = callers.run(&up, "console", &["log"]).await.ok().stdout;
    assert!(
        log.contains("  ana (web)  "),
        "the reporter beside the caller: {log}"
    );
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
}

#[tokio::test]
async fn missing_or_wrong_files_for_authentication_are_refused_at_the_start() {
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
    fs::write(callers.path("stranger"), "guessed").expect("a file");
    let stranger = callers.named("stranger");
    for more in [&[][..], &["--check-config"]] {
        let unknown = run(&[&with[..], &["--learning-token-file", &stranger], more].concat()).await;
        assert_eq!(unknown.code, 2, "{unknown:?}");
        refused(&unknown, "does not know the token");
    }
    fs::write(callers.path("auth.toml"), "principals = 1").expect("a file");
    let relay = callers.named("feedback-svc");
    let unfit = run(&[&with[..], &["--learning-token-file", &relay]].concat()).await;
    assert_eq!(unfit.code, 2, "{unfit:?}");
    refused(&unfit, "auth.toml");
}

#[tokio::test]
async fn both_services_can_share_one_postgresql_database() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    // The test database's own URL hides the password; the server's URL has it.
    let server = std::env::var("EMEND_TEST_POSTGRES_URL").expect("it is set where there is a database");
    let name = database.url().to_string();
    let name = name.rsplit('/').next().expect("a name");
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    let up = Up::start(&["--accept-new-installation", "--database-url", &url]).await;
    let stored = up.run(&SUBMIT).await.ok().json();
    assert_eq!(stored["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{stored}");
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));

    let (user, place) = url.rsplit_once('@').expect("a user and a place");
    let (user, _) = user.rsplit_once(':').expect("a password");
    let wrong = format!("--database-url={user}:wrong@{place}");
    let free = ["--feedback-addr=127.0.0.1:0", "--learning-addr=127.0.0.1:0"];
    let other = run(&[&["up", &*wrong][..], &free].concat()).await;
    refused(&other, "does not accept the user and password of its URL");
    assert_eq!(
        other.stderr.matches("authentication failed").count(),
        1,
        "{other:?}"
    );
    database.close().await;
}
