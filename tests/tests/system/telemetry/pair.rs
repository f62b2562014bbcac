//! Both services and a watching node as processes on PostgreSQL, whose traces go to one receiver.

use std::{net::SocketAddr, path::PathBuf};

use emend_tests::harness::{
    Database,
    otlp::Receiver,
    process::{Process, binary, free_port},
    system::Service,
};
use tokio::process::Command;

/// The processes, and their listen addresses.
pub(super) struct Traced {
    pub(super) receiver: Receiver,
    pub(super) feedback: Process,
    pub(super) learning: Option<Process>,
    pub(super) node: Process,
    pub(super) feedback_address: SocketAddr,
    pub(super) learning_address: SocketAddr,
    /// The metrics addresses of feedback-svc and learning-svc.
    pub(super) admin: [SocketAddr; 2],
    database: Database,
}

async fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port().await))
}

fn spawn(program: PathBuf, name: &str, arguments: &[String], endpoint: &str) -> Process {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["--log-format", "json", "--log-level", "debug"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        // Spans of what the backend traces, and no others.
        .env("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50");
    Process::spawn(name, command)
}

impl Traced {
    /// Starts them; `None` without a PostgreSQL server, after one line of output that says so.
    pub(super) async fn start() -> Option<Self> {
        let database = Database::postgres().await?;
        let receiver = Receiver::start().await;
        let (feedback_address, learning_address) = (free().await, free().await);
        let admin = [free().await, free().await];
        let arguments = [
            ("--listen", feedback_address.to_string()),
            ("--database-url", database.url(Service::Feedback, None)),
            ("--learning-addr", learning_address.to_string()),
            ("--metrics-addr", admin[0].to_string()),
        ];
        let feedback = spawn(
            binary("feedback-svc").await,
            "feedback-svc",
            &flat(&arguments),
            &receiver.endpoint(),
        );
        let node = vec![
            "watch".to_owned(),
            "--all-namespaces".to_owned(),
            "--learning-addr".to_owned(),
            learning_address.to_string(),
        ];
        let node = spawn(binary("emend").await, "emend watch", &node, &receiver.endpoint());
        let mut traced = Self {
            receiver,
            feedback,
            learning: None,
            node,
            feedback_address,
            learning_address,
            admin,
            database,
        };
        let service = "emend.feedback.v1.FeedbackService";
        traced.feedback.ready(feedback_address, service).await;
        traced.start_learning().await;
        Some(traced)
    }

    /// Starts learning-svc, for the first time or again.
    pub(super) async fn start_learning(&mut self) {
        let arguments = [
            ("--listen", self.learning_address.to_string()),
            ("--database-url", self.database.url(Service::Learning, None)),
            ("--metrics-addr", self.admin[1].to_string()),
        ];
        let mut learning = spawn(
            binary("learning-svc").await,
            "learning-svc",
            &flat(&arguments),
            &self.receiver.endpoint(),
        );
        let service = "emend.learning.v1.IngestService";
        learning.ready(self.learning_address, service).await;
        self.learning = Some(learning);
    }

    /// Asks learning-svc to end, and waits until it has ended.
    pub(super) async fn stop_learning(&mut self) {
        let mut learning = self.learning.take().expect("it runs");
        learning.terminate().await;
        assert!(learning.ended().await.success(), "{}", learning.output());
    }
}

fn flat(arguments: &[(&str, String)]) -> Vec<String> {
    let pairs = arguments.iter();
    pairs
        .flat_map(|(flag, value)| [(*flag).to_owned(), value.clone()])
        .collect()
}
