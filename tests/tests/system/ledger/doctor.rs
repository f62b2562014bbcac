//! `emend doctor`, as operators run it.

use emend_tests::harness::{
    System,
    deployment::Up,
    process::{CommandOutput, emend},
    system::Service::{Feedback, Learning},
    tamper::Copy,
};

use super::a_bit_of_everything;

fn arguments<'a>(copy: &'a Copy, directory: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["doctor"];
    match copy.postgres_url() {
        Some(url) => arguments.extend(["--database-url", url]),
        None => arguments.extend(["--data-dir", directory]),
    }
    arguments.extend_from_slice(more);
    arguments
}

async fn a_doctor_tells(system: System) {
    let frozen = Box::pin(a_bit_of_everything(system)).await;
    let copy = frozen.copy().await;
    let directory = copy
        .directory()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let sound = emend(&arguments(&copy, &directory, &["--log-level=debug"])).await;
    assert_eq!(sound.code, 0, "{sound:#?}");
    assert!(!shows_sql(&sound), "{sound:#?}");
    assert!(sound.stdout.contains("No findings") && sound.stdout.contains("35 corrections, 1 not delivered"));

    copy.tamper(
        Learning,
        "UPDATE candidates SET occurrences = occurrences + 1 WHERE kind = 1",
    )
    .await;
    copy.tamper(Feedback, "UPDATE outbox SET event_number = 7").await;
    let unsound = emend(&arguments(&copy, &directory, &[])).await;
    assert_eq!(unsound.code, 1, "{unsound:#?}");
    for said in ["findings.", "CANDIDATE_OCCURRENCES", "OUTBOX_ENTRY"] {
        assert!(unsound.stdout.contains(said), "{said}: {unsound:#?}");
    }
    let unsound = emend(&arguments(&copy, &directory, &["--json"])).await;
    assert_eq!(unsound.code, 1, "{unsound:#?}");
    let json = unsound.json();
    assert_eq!(json["sound"], false);
    assert!(
        json["findingsByCode"]["CANDIDATE_OCCURRENCES"].as_u64() > Some(1),
        "{json}"
    );
    assert_eq!(json["findingsByCode"]["OUTBOX_ENTRY"], 1);
    for finding in json["findings"].as_array().unwrap() {
        let evidence = finding["evidence"].as_str().unwrap();
        assert!(
            ["candidate ", "feedback "]
                .iter()
                .any(|what| evidence.starts_with(what)),
            "{finding}"
        );
    }

    copy.tamper(
        Learning,
        "ALTER TABLE candidates RENAME COLUMN occurrences TO seen",
    )
    .await;
    let broken = emend(&arguments(&copy, &directory, &["--log-level=debug"])).await;
    assert_eq!(broken.code, 1, "{broken:#?}");
    assert!(
        broken.stderr.contains("learning-svc's database: ") && broken.stderr.contains("occurrences"),
        "{broken:#?}"
    );
    assert!(!shows_sql(&broken), "{broken:#?}");
    copy.close().await;
}

fn shows_sql(output: &CommandOutput) -> bool {
    let all = format!("{}{}", output.stdout, output.stderr);
    ["SELECT ", "FROM ", "WHERE "]
        .iter()
        .any(|word| all.contains(word))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_reports_what_is_wrong_on_sqlite() {
    Box::pin(a_doctor_tells(System::sqlite().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_reports_what_is_wrong_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        Box::pin(a_doctor_tells(system)).await;
    }
}

#[tokio::test]
async fn doctor_creates_nothing_and_refuses_a_directory_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none");
    let none = emend(&["doctor", "--data-dir", &missing.display().to_string()]).await;
    assert_eq!(none.code, 2, "{none:#?}");
    assert!(
        none.stderr.contains("no database") && !missing.exists(),
        "{none:#?}"
    );

    let mut up = Up::start().await;
    let path = up.data_dir().display().to_string();
    let locked = emend(&["doctor", "--data-dir", &path]).await;
    assert_eq!(locked.code, 4, "{locked:#?}");
    assert!(
        locked
            .stderr
            .contains("is in use: stop the `emend up` that runs there"),
        "{locked:#?}"
    );
    up.process.terminate().await;
    up.process.ended().await;
    assert_eq!(emend(&["doctor", "--data-dir", &path]).await.code, 0);

    let away = emend(&["doctor", "--database-url", "postgres://nobody@127.0.0.1:1/none"]).await;
    assert_eq!(away.code, 5, "{away:#?}");
    let listed = emend(&["doctor", "--list"]).await;
    for check in emend_audit::checks() {
        assert!(listed.stdout.contains(check.code), "{} is not listed", check.code);
    }
}
