//! The program reads its settings from a file. What holds for every program is tested with feedback-svc's.

use std::{fs, process::Command};

#[test]
fn settings_come_from_a_file_and_the_environment_and_a_url_from_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    fs::write(at("url"), "postgres://emend:s3cret@pooler.example/emend\n").unwrap();
    fs::write(
        at("learning.toml"),
        format!("database-url-file = {:?}\nlisten-database-url = 'postgres://emend:s3cret@db.example/emend'\nmax-stream-age = '2h'", at("url")),
    )
    .unwrap();
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_learning-svc"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EMEND_")) {
            command.env_remove(name);
        }
        let command = command
            .args(flags)
            .env("EMEND_LEARNING_CONFIG", at("learning.toml"));
        let output = command.current_dir(directory.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, checked, complaints) = run(&["--check-config"]);
    assert_eq!((code, complaints), (Some(0), String::new()));
    assert!(checked.starts_with("ok\n"), "{checked}");
    let (_, printed, _) = run(&["--print-config"]);
    assert!(
        printed.contains("\nmax-stream-age = \"2h\" ") && !printed.contains("s3cret"),
        "{printed}"
    );
    assert!(
        printed.contains("\n# listen-database-url = \"postgres://emend:<hidden>@db.example/emend\""),
        "{printed}"
    );

    fs::write(at("url"), "nonsense").unwrap();
    let (code, _, told) = run(&["--check-config"]);
    assert!(code == Some(2) && told.contains("--database-url-file"), "{told}");
    let (code, _, told) = run(&["--database-url", "sqlite:x", "--check-config"]);
    assert!(code == Some(2) && told.contains("cannot be used with"), "{told}");
}
