//! More than a service can take: what it accepts it answers in time; the rest it refuses and says when to retry; its
//! memory stays bounded; and once the load drops, service is back to normal immediately.

use std::{net::SocketAddr, time::Duration};

use emend_proto::learning::v1::{ImportAs, ImportHeader, ImportMode, ImportRow};
use emend_tests::{
    faults::proxy::Gateway,
    harness::{
        Feedback, Learning, NAMESPACE, alias,
        process::{Process, free_port},
        system::{Database, Service},
    },
    load::pressure::Answers,
};
use tonic::Request;

mod calls;
mod learning;
mod submissions;

const MIB: u64 = 1024 * 1024;
/// How long callers wait: longer than a service within its bounds takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

fn timed<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// A program of this workspace on a database of its own.
struct Served {
    process: Process,
    address: SocketAddr,
}

impl Served {
    async fn start(program: &str, service: &str, arguments: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let listen = ["--listen".to_owned(), address.to_string()];
        let all = listen
            .into_iter()
            .chain(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut process = Process::start(program, all).await;
        process.ready(address, service).await;
        Self { process, address }
    }

    /// feedback-svc, whose learning-svc is down.
    async fn feedback(database: &Database, road: Option<&Gateway>) -> Self {
        let url = database.url(Service::Feedback, road);
        let away = Gateway::open().await.address().to_string();
        let arguments = ["--database-url", &url, "--learning-addr", &away];
        Self::start("feedback-svc", "emend.feedback.v1.FeedbackService", &arguments).await
    }

    /// The number of submissions stored.
    async fn stored(&self) -> usize {
        let feedback = Feedback::at(self.address);
        feedback.list(feedback.list_request(NAMESPACE)).await.len()
    }

    async fn learning(database: &Database) -> Self {
        let url = database.url(Service::Learning, None);
        let service = "emend.learning.v1.IngestService";
        Self::start("learning-svc", service, &["--database-url", &url]).await
    }
}

fn row(line: i64) -> ImportRow {
    ImportRow {
        line,
        correction: Some(alias(
            &format!("alias {line}"),
            &format!("entity-{line}-{}", "x".repeat(80)),
        )),
        ..ImportRow::default()
    }
}

fn header() -> ImportHeader {
    ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::AllOrNothing.into(),
        import_as: ImportAs::Decision.into(),
        ..ImportHeader::default()
    }
}

async fn fill(learning: &Learning, rows: i64) {
    let rows = (1..=rows).map(row).collect();
    learning.import(header(), rows).await.unwrap();
}

#[expect(clippy::print_stderr, reason = "figures for who asks for them")]
fn eprint_figures(what: &str, rate: f64, answers: &Answers, before: u64, peak: u64) {
    eprintln!(
        "{what}: capacity {rate:.0}/s, {} calls at three times that, {} accepted with p99 {:?}, {} refused; {} MiB, at most {} MiB",
        answers.len(),
        answers.accepted(),
        answers.p99_of_accepted(),
        answers.refused(),
        before / MIB,
        peak / MIB,
    );
}
