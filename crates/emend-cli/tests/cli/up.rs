//! Starting and ending the pair.

use emend_runtime::testing::TestPostgres;

use crate::harness::{Up, command, run};

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

    // One process at a time.
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
    let exposed = run(&[
        "up",
        "--ephemeral",
        "--feedback-addr",
        "0.0.0.0:0",
        "--learning-addr",
        "127.0.0.1:0",
    ])
    .await;
    assert_eq!(exposed.code, 2, "{exposed:?}");
    assert!(exposed.stderr.contains("--allow-unauthenticated"));
    assert!(exposed.stdout.is_empty());
}

#[tokio::test]
async fn both_services_can_live_in_one_postgresql_database() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    // The test database's own URL hides the password; the server's has it.
    let server = std::env::var("EMEND_TEST_POSTGRES_URL").expect("it is set where there is a database");
    let name = database.url().to_string();
    let name = name.rsplit('/').next().expect("a name");
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    let up = Up::start(&["--database-url", &url]).await;
    let said = up
        .run(&[
            "submit",
            "entity",
            "J. Smith",
            "jane.smith",
            "--reporter",
            "ana",
            "--wait",
            "--json",
        ])
        .await
        .ok()
        .json();
    assert_eq!(said["outcome"]["state"], "OUTCOME_STATE_APPLIED", "{said}");
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
    database.close().await;
}
