//! Nodes and feedback-svc keep to the installation that they know: while a wrong database answers, once the right one is
//! back, after a restore, and until an operator accepts another one.

use std::{fs, net::SocketAddr, path::PathBuf};

use emend_client::{Installed, SubscriberEvent};
use emend_core::{InstallationId, Kind};
use emend_proto::{
    common::v1::OutcomeState,
    feedback::v1::{self as pb, DeliveryState, ListDeadLettersRequest},
    learning::v1::{ListCandidatesRequest, ListNodesRequest, SnapshotReason},
};
use emend_tests::harness::{
    Database, Feedback, Gateway, Learning, NAMESPACE, alias, answered,
    deployment::{Arguments, Deployment, Up},
    eventually,
    http::{Scraped, until_counted},
    node::Node,
    process::{CommandOutput, Process, binary, emend, free_port, run},
    says,
    system::Service,
    wait::holds,
};
use tokio::process::Command;

const MISMATCH: &str = "emend_installation_mismatch";

/// What everybody gets for a name at a node.
fn entity(node: &Node, name: &str) -> Option<String> {
    let answer = node.answer(NAMESPACE, Kind::EntityAlias, name, "");
    answer.found.map(|(value, _)| value)
}

/// Waits until the node says that another installation answers than the one it holds; answers with (held, answering).
async fn mismatch(node: &mut Node) -> (InstallationId, InstallationId) {
    node.until_event("another installation answers", |event| match event {
        SubscriberEvent::InstallationMismatch { held, answering } => Some((*held, *answering)),
        _ => None,
    })
    .await
}

async fn snapshot(node: &mut Node) -> SnapshotReason {
    node.until_event("a snapshot", |event| match event {
        SubscriberEvent::Snapshot {
            snapshot: Installed { reason, .. },
            ..
        } => Some(*reason),
        _ => None,
    })
    .await
}

/// The installation of the learning-svc whose metrics are at this address.
async fn shown_installation(metrics: SocketAddr) -> InstallationId {
    let shown = Scraped::from(metrics).await.0;
    let id = shown
        .lines()
        .find_map(|line| {
            line.strip_prefix("emend_installation_info{service=\"learning-svc\",installation=\"")
        })
        .and_then(|rest| rest.split('"').next());
    InstallationId::parse(id.unwrap_or_else(|| panic!("no installation in\n{shown}"))).unwrap()
}

/// Both services, a node with a copy on disk, and the addresses of the services' metrics.
struct Site {
    deployment: Deployment,
    feedback_metrics: SocketAddr,
    learning_metrics: SocketAddr,
    /// There except between two lives.
    node: Option<Node>,
    copy: PathBuf,
}

impl Site {
    async fn free_address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], free_port().await))
    }

    /// Starts it; its learning-svc and its node then know that "jd" is person-17. `None` without a database server.
    async fn start(postgres: bool, directory: &tempfile::TempDir) -> Option<Self> {
        let (feedback_metrics, learning_metrics) = (Self::free_address().await, Self::free_address().await);
        let metrics = |address: SocketAddr| vec!["--metrics-addr".to_owned(), address.to_string()];
        let arguments = Arguments {
            feedback: metrics(feedback_metrics),
            learning: metrics(learning_metrics),
        };
        let deployment = if postgres {
            Deployment::postgres_with(arguments).await?
        } else {
            Deployment::sqlite_with(arguments).await
        };
        let copy = directory.path().join("learned");
        let node = Node::start_from(
            deployment.learning.front.address(),
            "search-1",
            Some(copy.clone()),
        );
        let site = Self {
            feedback_metrics,
            learning_metrics,
            node: Some(node.await),
            copy,
            deployment,
        };
        site.learn("jd", "person-17").await;
        Some(site)
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn node_mut(&mut self) -> &mut Node {
        self.node.as_mut().unwrap()
    }

    fn is_sqlite(&self) -> bool {
        matches!(self.deployment.learning_database(), Database::Sqlite(_))
    }

    fn learning_url(&self) -> String {
        self.deployment.learning_database().url(Service::Learning, None)
    }

    /// One correction, from its submission to the node's answer.
    async fn learn(&self, name: &str, value: &str) {
        let feedback = self.deployment.feedback();
        let learned = feedback.learn(says("jane", alias(name, value))).await;
        self.node().until(learned.outcome.unwrap().revision).await;
        assert_eq!(entity(self.node(), name).as_deref(), Some(value));
    }

    /// Stops the node and starts it from its copy on disk.
    async fn restart_node(&mut self) {
        self.node.take().unwrap().stop().await;
        let address = self.deployment.learning.front.address();
        self.node = Some(Node::start_from(address, "search-1", Some(self.copy.clone())).await);
    }

    /// A learning-svc answers on a new, empty database. Answers with its installation and the database before.
    async fn start_on_an_empty_database(&mut self) -> (InstallationId, Database) {
        self.deployment.learning.stop().await;
        let empty = self.deployment.learning_database().another().await;
        let before = self.deployment.exchange_learning(empty);
        self.assert_an_empty_database_is_noticed().await;
        self.deployment.start_learning().await;
        (shown_installation(self.learning_metrics).await, before)
    }

    /// An empty database begins no epoch, and on PostgreSQL no installation unless that is asked for.
    async fn assert_an_empty_database_is_noticed(&self) {
        let url = self.learning_url();
        let epoch = emend(&["admin", "new-epoch", "--database-url", &url]).await;
        let (code, text) = if self.is_sqlite() {
            (2, "there is no database")
        } else {
            (4, "is empty: it has no log")
        };
        assert_eq!(epoch.code, code, "{epoch:#?}");
        assert!(epoch.stderr.contains(text), "{epoch:#?}");
        if self.is_sqlite() {
            return;
        }
        let mut command = Command::new(binary("learning-svc").await);
        command.args(["--listen", "127.0.0.1:0", "--database-url", &url]);
        let refused = run("learning-svc", command).await.unwrap_err();
        assert!(
            ["is empty", "--init", "--accept-new-installation"]
                .iter()
                .all(|said| refused.contains(said)),
            "{refused}"
        );
    }

    /// While `other` answers: the node keeps what it holds and says so, a correction by `reporter` waits, and `other`
    /// gets nothing. Answers with that correction.
    async fn assert_that_other_installation_is_refused(
        &mut self,
        own: InstallationId,
        other: InstallationId,
        reporter: &str,
    ) -> pb::Feedback {
        assert_eq!(mismatch(self.node_mut()).await, (own, other));
        self.assert_node_keeps(own, other);
        let waiting = alias(&format!("said by {reporter}"), "person-3");
        let waiting = self.deployment.feedback().submit(says(reporter, waiting)).await;
        assert_eq!(
            waiting.outcome.clone().unwrap_or_default().state(),
            OutcomeState::Pending
        );
        until_counted(self.feedback_metrics, MISMATCH, 1).await;
        self.assert_waits(&waiting, other).await;
        self.assert_operators_are_told(own, other).await;

        // Neither a restarted node nor a restarted feedback-svc takes to it.
        self.restart_node().await;
        self.deployment.feedback.stop().await;
        self.deployment.start_feedback().await;
        assert_eq!(mismatch(self.node_mut()).await, (own, other));
        self.assert_node_keeps(own, other);
        until_counted(self.feedback_metrics, MISMATCH, 1).await;
        self.assert_waits(&waiting, other).await;
        waiting
    }

    fn assert_node_keeps(&self, own: InstallationId, other: InstallationId) {
        assert_eq!(entity(self.node(), "jd").as_deref(), Some("person-17"));
        let staleness = self.node().view().staleness();
        assert_eq!(
            (staleness.installation, staleness.other_installation),
            (Some(own), Some(other))
        );
    }

    /// Asserts that the correction is in the outbox, and nothing of it at learning-svc.
    async fn assert_waits(&self, waiting: &pb::Feedback, other: InstallationId) {
        let feedback = self.deployment.feedback();
        let stored = feedback.get(&waiting.namespace, &waiting.feedback_id).await;
        assert_eq!(stored.delivery_state(), DeliveryState::Pending);
        let dead = ListDeadLettersRequest::default();
        let dead = answered(feedback.service.clone().list_dead_letters(dead).await);
        assert_eq!(dead.dead_letters, []);
        let learning = self.deployment.learning();
        assert_eq!(shown_installation(self.learning_metrics).await, other);
        let everything = ListCandidatesRequest {
            namespace: NAMESPACE.to_owned(),
            ..ListCandidatesRequest::default()
        };
        assert_eq!(learning.list_candidates(everything).await, []);
        assert_eq!(learning.resources_in(NAMESPACE).await, []);
    }

    /// Both ids are in feedback-svc's log, and the node's problem is where operators look for nodes.
    async fn assert_operators_are_told(&self, own: InstallationId, other: InstallationId) {
        let process = self.deployment.feedback.process.as_ref().unwrap();
        let told = process.logged(|line| {
            ["INSTALLATION_MISMATCH", &own.to_string(), &other.to_string()]
                .iter()
                .all(|part| line.contains(part))
                .then_some(())
        });
        assert!(told.is_some(), "{}", process.output());
        let nodes = self.deployment.learning().subscriptions;
        eventually("the node's problem is listed", || async {
            let listed = answered(nodes.clone().list_nodes(ListNodesRequest::default()).await).nodes;
            let told = listed.iter().any(|node| node.problem == "INSTALLATION_MISMATCH");
            holds(told, || format!("{listed:?}"))
        })
        .await;
    }

    /// The known installation answers again: what waited is delivered, and the node goes on where it was.
    async fn assert_known_installation_goes_on(&mut self, own: InstallationId, waiting: &pb::Feedback) {
        let feedback = self.deployment.feedback();
        let delivered = feedback.delivered(&waiting.namespace, &waiting.feedback_id).await;
        let outcome = delivered.outcome.unwrap();
        assert_eq!(outcome.state(), OutcomeState::Applied);
        self.node().until(outcome.revision).await;
        until_counted(self.feedback_metrics, MISMATCH, 0).await;
        let staleness = self.node().view().staleness();
        assert_eq!(
            (staleness.installation, staleness.other_installation),
            (Some(own), None)
        );
        for event in self.node_mut().events_so_far().await {
            let resumed = !matches!(&*event, SubscriberEvent::Snapshot { .. });
            assert!(resumed, "it needs no snapshot: {event:?}");
        }
    }

    /// Both databases are restored from a backup, which is the same installation in a new epoch.
    async fn assert_restored_installation_is_the_same(&mut self, own: InstallationId) {
        self.stop_services().await;
        let backup = self.deployment.back_up().await;
        self.start_services().await;
        self.learn("learned after the backup", "person-4").await;

        self.stop_services().await;
        self.deployment.restore(backup);
        let begun = emend(&["admin", "new-epoch", "--database-url", &self.learning_url()]).await;
        assert_eq!(begun.code, 0, "{begun:#?}");
        self.start_services().await;
        assert_eq!(snapshot(self.node_mut()).await, SnapshotReason::ForeignEpoch);
        self.learn("learned after the restore", "person-5").await;
        assert_eq!(entity(self.node(), "learned after the backup"), None);
        assert_eq!(entity(self.node(), "jd").as_deref(), Some("person-17"));
        assert_eq!(shown_installation(self.learning_metrics).await, own);
        assert_eq!(self.node().view().staleness().installation, Some(own));
        until_counted(self.feedback_metrics, MISMATCH, 0).await;
    }

    async fn stop_services(&mut self) {
        self.deployment.feedback.stop().await;
        self.deployment.learning.stop().await;
    }

    async fn start_services(&mut self) {
        self.deployment.start_learning().await;
        self.deployment.start_feedback().await;
    }

    /// Runs `emend admin accept-installation`.
    async fn accept(&self, installation: InstallationId) -> CommandOutput {
        let url = self.deployment.feedback_url();
        let id = installation.to_string();
        emend(&[
            "admin",
            "accept-installation",
            &id,
            "--database-url",
            &url,
            "--json",
        ])
        .await
    }

    /// An operator accepts `other` for feedback-svc and then for the node.
    async fn assert_other_is_accepted_when_told(
        &mut self,
        own: InstallationId,
        other: InstallationId,
        waiting: &pb::Feedback,
    ) {
        if self.is_sqlite() {
            let in_use = self.accept(other).await;
            assert_eq!(in_use.code, 4, "{in_use:#?}");
            assert!(in_use.stderr.contains("in use"), "{in_use:#?}");
            self.deployment.feedback.stop().await;
        }
        let accepted = self.accept(other).await;
        assert_eq!(accepted.code, 0, "{accepted:#?}");
        assert_eq!(accepted.json()["oldInstallation"], own.to_string());
        if self.is_sqlite() {
            self.deployment.start_feedback().await;
        }
        let feedback = self.deployment.feedback();
        let delivered = feedback.delivered(&waiting.namespace, &waiting.feedback_id).await;
        assert_eq!(delivered.outcome.unwrap().state(), OutcomeState::Applied);
        until_counted(self.feedback_metrics, MISMATCH, 0).await;

        // The node is told separately.
        self.assert_node_keeps(own, other);
        self.node().accept_installation(other);
        snapshot(self.node_mut()).await;
        self.learn("learned by the new one", "person-6").await;
        assert_eq!(entity(self.node(), "jd"), None, "the new one has not learned it");
        self.restart_node().await;
        let staleness = self.node().view().staleness();
        assert_eq!(staleness.installation, Some(other), "so is its copy on disk");
        self.learn("learned after that", "person-7").await;
    }
}

async fn only_the_known_installation_is_followed_until_another_is_accepted(postgres: bool) {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut site) = Site::start(postgres, &directory).await else {
        return;
    };
    let own = shown_installation(site.learning_metrics).await;

    let (other, right) = site.start_on_an_empty_database().await;
    let waiting = site
        .assert_that_other_installation_is_refused(own, other, "tom")
        .await;

    site.deployment.learning.stop().await;
    site.deployment.exchange_learning(right);
    site.deployment.start_learning().await;
    site.assert_known_installation_goes_on(own, &waiting).await;

    site.assert_restored_installation_is_the_same(own).await;

    let (other, _gone) = site.start_on_an_empty_database().await;
    let waiting = site
        .assert_that_other_installation_is_refused(own, other, "ana")
        .await;
    site.assert_other_is_accepted_when_told(own, other, &waiting)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_known_installation_is_followed_until_another_is_accepted_on_sqlite() {
    only_the_known_installation_is_followed_until_another_is_accepted(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_known_installation_is_followed_until_another_is_accepted_on_postgresql() {
    only_the_known_installation_is_followed_until_another_is_accepted(true).await;
}

/// `emend up` on one directory, at an address that stays, as a node knows it.
struct Files {
    directory: tempfile::TempDir,
    front: Gateway,
}

impl Files {
    async fn up(&self, more: &[&str]) -> Up {
        let path = self.directory.path().display().to_string();
        let up = Up::start_with(&[&["--data-dir", path.as_str()], more].concat()).await;
        self.front.lead_to(up.learning);
        up
    }

    async fn down(&self, mut up: Up) {
        up.process.terminate().await;
        let status = up.process.ended().await;
        assert!(status.success(), "{status}\n{}", up.process.output());
        self.front.close();
    }

    fn delete(&self, databases: &[&str]) {
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if databases.iter().any(|database| name.starts_with(database)) {
                fs::remove_file(&path).unwrap();
            }
        }
    }
}

async fn learn(up: &Up, node: &Node, name: &str, value: &str) {
    let learned = Feedback::at(up.feedback)
        .learn(says("jane", alias(name, value)))
        .await;
    node.until(learned.outcome.unwrap().revision).await;
    assert_eq!(entity(node, name).as_deref(), Some(value));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_what_it_holds_when_the_files_of_emend_up_were_deleted() {
    let files = Files {
        directory: tempfile::tempdir().unwrap(),
        front: Gateway::open().await,
    };
    let up = files.up(&[]).await;
    let mut node = Node::start(files.front.address(), "search-1").await;
    learn(&up, &node, "jd", "person-17").await;
    files.down(up).await;

    // One file alone is not replaced by an empty one.
    files.delete(&["learning.db"]);
    let path = files.directory.path().display().to_string();
    let mut refused = Process::start("emend", ["up", "--data-dir", &path]).await;
    assert_eq!(refused.ended().await.code(), Some(4), "{}", refused.output());
    assert!(
        refused.log().contains("learning.db is missing"),
        "{}",
        refused.log()
    );
    assert_eq!(entity(&node, "jd").as_deref(), Some("person-17"));

    // Accepted on purpose: corrections reach the new installation at once, the node once it is told.
    let up = files.up(&["--accept-new-installation"]).await;
    let (first, second) = mismatch(&mut node).await;
    let learned = says("tom", alias("new", "person-3"));
    let learned = Feedback::at(up.feedback).learn(learned).await;
    assert_eq!(learned.outcome.unwrap().state(), OutcomeState::Applied);
    assert_eq!(entity(&node, "jd").as_deref(), Some("person-17"));
    node.accept_installation(second);
    snapshot(&mut node).await;
    learn(&up, &node, "newer", "person-4").await;
    assert_eq!(entity(&node, "jd"), None);
    files.down(up).await;

    // Where both files are new, a new installation begins, which the node refuses in the same way.
    files.delete(&["feedback.db", "learning.db"]);
    let up = files.up(&[]).await;
    let (held, third) = mismatch(&mut node).await;
    assert!(held == second && third != first && third != second, "{third}");
    assert_eq!(entity(&node, "newer").as_deref(), Some("person-4"));
    assert_eq!(Learning::at(up.learning).entity_for("newer").await, "");
    files.down(up).await;
}
