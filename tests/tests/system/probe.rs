//! `--probe` of the services' own programs, over TLS.

use std::process::{ExitStatus, Output};

use emend_base::tls::testing::Authority;
use emend_tests::harness::{
    eventually,
    process::{Process, binary, free_port},
    wait::holds,
};
use tokio::process::Command;

async fn asked(program: &str, arguments: &[String]) -> (ExitStatus, String) {
    let mut command = Command::new(binary(program).await);
    let Output { status, stdout, .. } = command
        .args(arguments)
        .arg("--probe")
        .output()
        .await
        .expect("it runs");
    (status, String::from_utf8(stdout).expect("text"))
}

#[tokio::test]
async fn each_program_finds_its_own_service_by_its_certificate() {
    let directory = tempfile::tempdir().unwrap();
    // The certificate is not for the address that the probe connects to.
    Authority::new("ca")
        .issue(1, &["emend.example"])
        .write(directory.path(), "server");
    for program in ["feedback-svc", "learning-svc"] {
        let at = |name: &str| directory.path().join(name).display().to_string();
        let arguments = [
            format!("--listen=127.0.0.1:{}", free_port().await),
            format!("--data-dir={}", at(program)),
            format!("--tls-cert={}", at("server.pem")),
            format!("--tls-key={}", at("server.key")),
        ];
        let (status, output) = asked(program, &arguments).await;
        assert_eq!(status.code(), Some(1), "nobody listens: {output}");
        let mut process = Process::start(program, &arguments).await;
        eventually(&format!("{program} says that it is ready"), || async {
            let (status, output) = asked(program, &arguments).await;
            holds(status.success() && output.ends_with(": ready\n"), || output)
        })
        .await;
        process.terminate().await;
        process.ended().await;
    }
}
