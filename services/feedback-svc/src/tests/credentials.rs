//! What learning-svc makes of the credentials of this service, which is tried before anything has to be delivered.

use clap::Parser as _;
use emend_base::{Entropy, config::Program as _, tls::Remote};
use emend_serve::health::Readiness;

use crate::{
    Arguments,
    outbox::credentials::{CredentialsCheck, LEARNING},
    tests::learning::{Behaviour, Learning},
};

#[tokio::test]
async fn whoever_learning_svc_refuses_is_not_ready_until_it_is_accepted_and_one_that_is_away_is_no_obstacle()
{
    let learning = Learning::new();
    learning.becomes(Behaviour::KnowsNobody);
    let (address, lifecycle) = learning.serve().await;
    let readiness = Readiness::new();
    readiness.register("feedback", &[LEARNING]);
    let check = CredentialsCheck {
        remote: Remote::new(&format!("http://{address}")).unwrap(),
        token: None,
        readiness: readiness.clone(),
        entropy: Entropy::seeded(1),
    };
    assert!(!check.run_once().await && !readiness.is_ready("feedback"));
    let notes = readiness.notes();
    assert!(
        notes.len() == 1 && notes[0].contains("the credentials are not accepted"),
        "{notes:?}"
    );
    learning.becomes(Behaviour::Evaluates);
    assert!(check.run_once().await && readiness.is_ready("feedback"));
    assert_eq!(readiness.notes(), [""; 0]);

    lifecycle.shutdown(std::time::Duration::ZERO).await;
    assert!(!check.run_once().await, "nobody has accepted them");
    assert!(readiness.is_ready("feedback"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checking_the_settings_tries_the_token_where_learning_svc_answers() {
    let learning = Learning::new();
    let (address, lifecycle) = learning.serve().await;
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "guessed").unwrap();
    let checked = || {
        let address = format!("--learning-addr={address}");
        let token = format!("--learning-token-file={}", token.display());
        Arguments::parse_from(["feedback-svc", &address, &token]).check()
    };
    assert_eq!(checked(), [""; 0]);
    learning.becomes(Behaviour::KnowsNobody);
    let refused = checked();
    assert!(
        refused.len() == 1
            && refused[0].contains("--learning-token-file")
            && refused[0].contains("not accepted"),
        "{refused:?}"
    );
    lifecycle.shutdown(std::time::Duration::ZERO).await;
    assert_eq!(checked(), [""; 0], "nobody answers");
}
