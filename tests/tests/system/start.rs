//! Starting while the database is down, on real sockets: the start waits for it, and for nothing else.

use std::time::Duration;

use emend_tests::harness::{
    Database, Gateway, eventually,
    process::{Process, free_port},
    system::Service,
};
use tokio::time::timeout;

/// Far less than a start waits for its database.
const AT_ONCE: Duration = Duration::from_secs(20);

/// A start of a service whose database is behind a gateway that leads nowhere yet.
struct Start {
    road: Gateway,
    listen: String,
    process: Process,
}

impl Start {
    async fn of(service: Service, database: &Database) -> Option<Self> {
        let road = database.road().await?;
        road.close();
        let listen = format!("127.0.0.1:{}", free_port().await);
        let url = database.url(service, Some(&road));
        let process = Process::start(program(service), ["--listen", &listen, "--database-url", &url]).await;
        let start = Self {
            road,
            listen,
            process,
        };
        start.waits().await;
        Some(start)
    }

    async fn waits(&self) {
        eventually("it says that it waits", || async {
            let told = |line: &str| {
                line.contains("the database is unavailable; trying again")
                    .then_some(())
            };
            self.process.logged(told).ok_or_else(|| self.process.output())
        })
        .await;
    }
}

fn program(service: Service) -> &'static str {
    match service {
        Service::Feedback => "feedback-svc",
        Service::Learning => "learning-svc",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_an_unreachable_database() {
    for (service, name) in [
        (Service::Learning, "emend.learning.v1.IngestService"),
        (Service::Feedback, "emend.feedback.v1.FeedbackService"),
    ] {
        let Some(database) = Database::postgres().await else {
            return;
        };
        let mut start = Start::of(service, &database).await.unwrap();
        assert!(start.process.has_ended().is_none(), "{}", start.process.output());
        database.reopen(&start.road);
        start.process.ready(&start.listen, name).await;
        start.process.terminate().await;
        let status = start.process.ended().await;
        assert!(status.success(), "{status}\n{}", start.process.output());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_start_ends_cleanly_on_a_signal() {
    for service in [Service::Learning, Service::Feedback] {
        let Some(database) = Database::postgres().await else {
            return;
        };
        let mut start = Start::of(service, &database).await.unwrap();
        start.process.terminate().await;
        let status = timeout(AT_ONCE, start.process.ended()).await;
        let status = status.unwrap_or_else(|_| panic!("still there:\n{}", start.process.output()));
        assert!(status.success(), "{status}\n{}", start.process.output());
    }
}

/// How a start ends with this database, and what it wrote.
async fn ended(service: Service, url: &str, more: &[&str]) -> String {
    let arguments = [&["--listen=127.0.0.1:0", "--database-url", url][..], more].concat();
    let mut process = Process::start(program(service), &arguments).await;
    let status = timeout(AT_ONCE, process.ended()).await;
    let status = status.unwrap_or_else(|_| panic!("it waits:\n{}", process.output()));
    assert_eq!(status.code(), Some(1), "{}", process.output());
    process.output()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_does_not_wait_for_a_database_that_does_not_exist_or_for_another_password() {
    for service in [Service::Learning, Service::Feedback] {
        let Some(Database::Postgres(database)) = Database::postgres().await else {
            return;
        };
        let output = ended(service, &database.url_of("nobody_made_this"), &[]).await;
        assert!(output.contains("nobody_made_this"), "{output}");

        let output = ended(service, &database.url_with_password("wrong"), &[]).await;
        for (told, times) in [
            ("the database does not accept the user and password of its URL", 1),
            ("password authentication failed", 1),
            ("trying again", 0),
            (":wrong", 0),
        ] {
            assert_eq!(output.matches(told).count(), times, "{told}: {output}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_says_that_nothing_listens_at_its_databases_port() {
    for service in [Service::Learning, Service::Feedback] {
        let url = "postgres://emend:secret@127.0.0.1:1/emend";
        let output = ended(service, url, &["--database-patience=0s"]).await;
        for told in [
            "can't open the database postgres://emend@127.0.0.1:1/emend",
            "onnection refused",
        ] {
            assert!(output.contains(told), "{told}: {output}");
        }
        assert!(!output.contains("password"), "{output}");
    }
}
