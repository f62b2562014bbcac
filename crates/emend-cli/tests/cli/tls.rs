//! The pair and all its clients over mutual TLS.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_base::{
    Environment, Lifecycle,
    lifecycle::Shutdown,
    reload::Reload as _,
    telemetry::Metrics,
    tls::testing::{Authority, date_time_ymd},
};
use emend_client::{
    ClientTls, FeedbackClient, Observed, ServerAddress, Submission, Subscriber, SubscriberEvent,
};
use emend_core::Revision;
use emend_serve::tls::{TlsFiles, TlsServer};
use feedback_svc::LearningAddress;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

use crate::harness::{Completed, TIMEOUT, Up, run};

/// Both services in this process. They admit clients with a certificate issued by `ca.pem`; their own is `server.pem`.
struct Secured {
    directory: TempDir,
    lifecycle: Lifecycle,
    tls: Arc<TlsServer>,
    feedback: feedback_svc::Handle,
    learning: learning_svc::Handle,
    /// Of feedback-svc and of learning-svc.
    metrics: [Metrics; 2],
}

impl Secured {
    /// Starts them with the files in `directory`; the relay's client certificate is `relay.pem`.
    async fn start(directory: TempDir) -> Self {
        let at = |name: &str| directory.path().join(name);
        let files = TlsFiles {
            cert: at("server.pem"),
            key: at("server.key"),
            client_ca: Some(at("ca.pem")),
            client_crl: None,
        };
        let tls = Arc::new(TlsServer::load(files).expect("fit files"));
        let lifecycle = Lifecycle::new();
        let database = |name: &str| {
            format!("sqlite:{}", at(name).display())
                .parse()
                .expect("a database")
        };
        let mut config = learning_svc::Config::new(database("learning.db"));
        config.tls = Some(Arc::clone(&tls));
        let of_learning = config.metrics.clone();
        let environment = Environment::system(&lifecycle);
        let learning = learning_svc::start(config, listener().await, environment)
            .await
            .expect("learning-svc starts");
        let relay = identity(directory.path(), "relay");
        let address: LearningAddress = format!("https://{}", learning.address())
            .parse()
            .expect("an address");
        let address = address.tls(relay).expect("https");
        let mut config = feedback_svc::Config::new(database("feedback.db"), address);
        config.tls = Some(Arc::clone(&tls));
        let of_feedback = config.metrics.clone();
        let environment = Environment::system(&lifecycle);
        let feedback = feedback_svc::start(config, listener().await, environment)
            .await
            .expect("feedback-svc starts");
        let ready = async { tokio::join!(feedback.ready(), learning.ready()) };
        timeout(TIMEOUT, ready).await.expect("both are ready");
        Self {
            directory,
            lifecycle,
            tls,
            feedback,
            learning,
            metrics: [of_feedback, of_learning],
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn backend(&self, tls: ClientTls) -> FeedbackClient {
        let address = ServerAddress::from(format!("https://{}", self.feedback.address()));
        FeedbackClient::new(address.tls(tls)).expect("valid settings")
    }

    /// Lets three people say that a phrase means a verb, which applies it. Returns the revision.
    async fn learns(&self, backend: &FeedbackClient, phrase: &str) -> Revision {
        let mut applied = None;
        for reporter in ["ana", "ben", "chloe"] {
            let submission = Submission::phrase_mapping("default", phrase, "send_courier")
                .reporter(reporter)
                .wait_evaluated();
            applied = backend
                .submit(submission)
                .await
                .expect("stored")
                .applied_revision();
        }
        applied.expect("three people are enough")
    }

    /// When the certificates expire that both services show, by service and certificate.
    fn expiries(&self) -> Vec<(String, i64)> {
        let rendered = self.metrics.iter().map(Metrics::render).collect::<String>();
        let shown = rendered.lines().filter_map(|line| {
            let series = line.strip_prefix("emend_certificate_not_after_timestamp_seconds{")?;
            let (labels, seconds) = series.split_once("} ")?;
            Some((labels.replace('"', ""), seconds.parse().expect("seconds")))
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort();
        shown
    }

    async fn nodes(&self, options: &[&str]) -> Completed {
        let address = self.learning.address().to_string();
        let asked = ["nodes", "--json", "--timeout=5s", "--learning-addr", &address];
        run(&[&asked, options].concat()).await
    }

    async fn stop(self) {
        let ended = self.lifecycle.shutdown(TIMEOUT).await;
        assert_eq!((ended, self.lifecycle.failure()), (Shutdown::Graceful, None));
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

fn identity(directory: &Path, name: &str) -> ClientTls {
    let file = |extension| directory.join(format!("{name}.{extension}"));
    ClientTls::default()
        .ca(directory.join("ca.pem"))
        .identity(file("pem"), file("key"))
}

fn issued_by(authority: &Authority) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    fs::write(path.join("ca.pem"), authority.pem()).expect("written");
    authority.issue(1, &["127.0.0.1"]).write(path, "server");
    authority.issue(2, &["spiffe://emend/relay"]).write(path, "relay");
    authority.issue(3, &["node-1.example"]).write(path, "node");
    directory
}

/// How many streams a node has had.
#[derive(Debug, Default, PartialEq)]
struct Streams {
    begun: usize,
    ended: usize,
}

impl Streams {
    fn count(&mut self, observed: Option<Observed>) {
        match observed.expect("the node is there") {
            Observed::Event(event) => match &*event {
                SubscriberEvent::Connected => self.begun += 1,
                SubscriberEvent::Disconnected { .. } => self.ended += 1,
                _ => {}
            },
            Observed::Missed(missed) => panic!("{missed} events were missed"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_reaches_a_node_over_mutual_tls_while_all_certificates_are_replaced() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let pair = Secured::start(issued_by(&old)).await;
    let client = identity(pair.directory.path(), "node");
    let backend = pair.backend(client.clone());
    let address = ServerAddress::from(format!("https://{}", pair.learning.address()));
    let (node, mut events) = Subscriber::builder(address.tls(client.clone()), "node-1")
        .spawn_observed(&pair.lifecycle)
        .await
        .expect("valid settings");
    let revision = pair.learns(&backend, "before").await;
    timeout(TIMEOUT, node.view().wait_for_revision(revision))
        .await
        .expect("the node has it");

    let stranger = ClientTls::default().ca(pair.path("ca.pem"));
    let nobody = pair.backend(stranger).deadline(Duration::from_secs(2));
    let submission = Submission::phrase_mapping("default", "x", "y").reporter("eve");
    assert!(nobody.submit(submission).await.is_err(), "without a certificate");

    // Load on long-lived connections while the CA, certificates and keys are rotated step by step.
    let loaded = Arc::new(AtomicBool::new(true));
    let load = {
        let (backend, loaded) = (backend.clone(), Arc::clone(&loaded));
        tokio::spawn(async move {
            let mut stored = 0;
            while loaded.load(Ordering::SeqCst) {
                let submission =
                    Submission::phrase_mapping("default", format!("load {stored}"), "send_courier");
                backend.submit(submission.reporter("dora")).await.expect("stored");
                stored += 1;
            }
            stored
        })
    };
    fs::write(pair.path("ca.pem"), old.pem() + &new.pem()).expect("written");
    pair.tls.reload_if_changed();
    new.issue(4, &["127.0.0.1"])
        .write(pair.directory.path(), "server");
    pair.tls.reload_if_changed();
    new.issue(5, &["spiffe://emend/relay"])
        .write(pair.directory.path(), "relay");
    old.issue(6, &["late.example"])
        .write(pair.directory.path(), "late");
    new.issue(7, &["node-1.example"])
        .write(pair.directory.path(), "node");
    let revision = pair.learns(&backend, "between").await;
    timeout(TIMEOUT, node.view().wait_for_revision(revision))
        .await
        .expect("the node has it");
    let mut streams = Streams::default();
    while let Ok(observed) = timeout(Duration::ZERO, events.next()).await {
        streams.count(observed);
    }
    assert_eq!(streams, Streams { begun: 1, ended: 0 }, "the old CA is trusted");

    // What clients opened with certificates of the CA that goes is ended; they connect again with those they have now.
    fs::write(pair.path("ca.pem"), new.pem()).expect("written");
    pair.tls.reload_if_changed();
    while streams != (Streams { begun: 2, ended: 1 }) {
        let observed = timeout(TIMEOUT, events.next()).await;
        streams.count(observed.unwrap_or_else(|_| panic!("{streams:?}")));
    }

    // New connections trust only the new CA; a client whose certificate is from the old one is refused.
    let fresh = pair.backend(client);
    let revision = pair.learns(&fresh, "after").await;
    let late = pair
        .backend(identity(pair.directory.path(), "late"))
        .deadline(Duration::from_secs(2));
    let submission = Submission::phrase_mapping("default", "x", "y").reporter("eve");
    assert!(late.submit(submission).await.is_err(), "its CA was removed");
    let revision = revision.max(pair.learns(&backend, "after, by a client of before").await);
    timeout(TIMEOUT, node.view().wait_for_revision(revision))
        .await
        .expect("the node has it");
    loaded.store(false, Ordering::SeqCst);
    assert!(load.await.expect("no submission failed") > 0);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_shows_when_its_certificates_expire() {
    let authority = Authority::new("ca");
    let directory = issued_by(&authority);
    let path = directory.path().to_owned();
    let until = |year: i32| date_time_ymd(year, 1, 1).unix_timestamp();
    let issue = |serial: u64, name: &str, year: i32| {
        authority.issue_as(serial, &[name], |params| {
            params.not_after = date_time_ymd(year, 1, 1);
        })
    };
    issue(4, "127.0.0.1", 2060).write(&path, "server");
    issue(5, "spiffe://emend/relay", 2061).write(&path, "relay");
    let pair = Secured::start(directory).await;
    let expected = |server: i32, client: i32| {
        [
            (
                "service=feedback-svc,certificate=client".to_owned(),
                until(client),
            ),
            (
                "service=feedback-svc,certificate=server".to_owned(),
                until(server),
            ),
            (
                "service=learning-svc,certificate=server".to_owned(),
                until(server),
            ),
        ]
    };
    let shown = async |server: i32, client: i32| {
        let sampled = async {
            while pair.expiries() != expected(server, client) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(TIMEOUT, sampled).await;
        assert!(waited.is_ok(), "{server} and {client}: {:?}", pair.expiries());
    };
    shown(2060, 2061).await;

    // A certificate whose key is not there yet is not in force.
    let renewed = issue(6, "127.0.0.1", 2070);
    fs::write(pair.path("server.pem"), &renewed.cert).expect("written");
    issue(7, "spiffe://emend/relay", 2071).write(&path, "relay");
    assert!(!pair.tls.reload_if_changed());
    shown(2060, 2071).await;
    fs::write(pair.path("server.key"), &renewed.key).expect("written");
    pair.tls.reload_if_changed();
    shown(2070, 2071).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_shows_its_certificate_and_says_what_is_wrong_without() {
    let pair = Secured::start(issued_by(&Authority::new("ca"))).await;
    let option = |flag: &str, name: &str| format!("--{flag}={}", pair.path(name).display());
    let (ca, cert, key) = (
        option("ca", "ca.pem"),
        option("client-cert", "node.pem"),
        option("client-key", "node.key"),
    );
    pair.nodes(&[&ca, &cert, &key]).await.ok();
    for options in [&[][..], &[ca.as_str()], &[cert.as_str(), key.as_str()]] {
        let ran = pair.nodes(options).await;
        assert_ne!(ran.code, 0, "{options:?}: {ran:?}");
    }
    fs::write(pair.path("other.pem"), Authority::new("other").pem()).expect("written");
    let ran = pair.nodes(&[&option("ca", "other.pem"), &cert, &key]).await;
    let words = "the server's certificate was issued by none of the CAs that are trusted here";
    assert!(ran.code == 1 && ran.stderr.contains(words), "{ran:?}");
    assert!(!ran.stderr.contains("running"), "it is: {ran:?}");
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_protocol_at_the_port_is_is_said() {
    let operators = listener().await.local_addr().expect("an address").to_string();
    let up = Up::start(&["--ephemeral", &format!("--metrics-addr={operators}")]).await;
    let asked = async |address: &str, options: &[&str]| {
        let command = ["nodes", "--timeout=10s", "--learning-addr", address];
        run(&[&command, options].concat()).await
    };
    let ran = asked(&operators, &[]).await;
    assert_ne!(ran.code, 0);
    assert!(
        ran.stderr.contains("port for something else, such as metrics"),
        "{ran:?}"
    );
    let ran = asked(&format!("https://{}", up.learning), &[]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("not use TLS at this address"), "{ran:?}");
    let ran = asked(&up.feedback, &[]).await;
    assert!(
        ran.stderr.contains("does not know ListNodes") && ran.stderr.contains("--learning-addr"),
        "{ran:?}"
    );
    let watch = ["watch", "--until=9", "--timeout=3s", "--learning-addr"];
    let ran = run(&[&watch[..], &[&operators]].concat()).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(
        ran.stdout.starts_with("disconnected (the server ")
            && ran.stdout.contains("port for something else, such as metrics"),
        "{ran:?}"
    );
    let ran = run(&[&watch[..], &[&up.feedback]].concat()).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("does not know this call") && ran.stderr.contains("--learning-addr"),
        "{ran:?}"
    );
    let ran = asked("27402", &[]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("for example 127.0.0.1:27402"), "{ran:?}");
    asked(&format!("127.0.0.1:1,{}", up.learning), &[]).await.ok();
    let replicas = format!("127.0.0.1:1,{}", up.feedback);
    let submit = [
        "submit",
        "phrase",
        "book the trade",
        "book_trade",
        "--feedback-addr",
        &replicas,
    ];
    run(&submit).await.ok();
    let listed = run(&["feedback", "list", "--feedback-addr", &replicas])
        .await
        .ok()
        .stdout;
    assert!(listed.contains("book the trade"), "{listed}");
    let ran = asked(&format!("https://{operators}"), &[]).await;
    assert!(ran.stderr.contains("not use TLS at this address"), "{ran:?}");

    let authority = Authority::new("ca");
    let directory = issued_by(&authority);
    authority
        .issue_as(4, &["127.0.0.1"], |params| {
            params.not_after = date_time_ymd(2020, 1, 1);
        })
        .write(directory.path(), "server");
    let pair = Secured::start(directory).await;
    let ran = pair.nodes(&[]).await;
    assert!(
        ran.stderr.contains("uses TLS") && ran.stderr.contains("https://"),
        "{ran:?}"
    );
    let ca = format!("--ca={}", pair.path("ca.pem").display());
    let ran = pair.nodes(&[&ca]).await;
    assert!(
        ran.stderr
            .contains("the server's certificate has expired: it was valid until 2020-01-01"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_time_limit_says_that_the_correction_may_be_stored() {
    // Connections are accepted by the kernel and never answered.
    let silent = listener().await;
    let address = silent.local_addr().expect("an address").to_string();
    let command = ["submit", "phrase", "book the trade", "book_trade", "--json"];
    let limits = ["--timeout=300ms", "--request-id=r-1", "--feedback-addr", &address];
    let ran = run(&[&command[..], &limits].concat()).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("DEADLINE_EXCEEDED"), "{ran:?}");
    assert!(
        ran.stderr.contains("may be stored") && ran.stderr.contains("--request-id r-1"),
        "{ran:?}"
    );

    let backend = FeedbackClient::new(format!("http://{address}"))
        .expect("valid settings")
        .deadline(Duration::from_millis(300));
    let submission = Submission::phrase_mapping("default", "book the trade", "book_trade");
    let error = backend.submit(submission).await.expect_err("nobody answers");
    assert!(error.may_be_stored(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emend_up_serves_over_mutual_tls_and_reads_its_files_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = issued_by(&old);
    fs::write(directory.path().join("new.pem"), new.pem()).expect("written");
    let option = |flag: &str, name: &str| format!("--{flag}={}", directory.path().join(name).display());
    let operators = listener().await.local_addr().expect("an address").to_string();
    let served = [
        option("tls-cert", "server.pem"),
        option("tls-key", "server.key"),
        option("tls-client-ca", "ca.pem"),
        format!("--metrics-addr={operators}"),
    ];
    let served: Vec<&str> = served.iter().map(String::as_str).collect();
    let up = Up::start(&[&["--ephemeral"], &served[..]].concat()).await;
    let shown = [
        option("client-cert", "node.pem"),
        option("client-key", "node.key"),
    ];
    let shown = shown.each_ref().map(String::as_str);
    let authorities = [option("ca", "ca.pem"), option("ca", "new.pem")];
    let [by_old, by_new] = authorities.each_ref().map(String::as_str);

    let address = ServerAddress::from(format!("https://{}", up.learning));
    let lifecycle = Lifecycle::new();
    let client = identity(directory.path(), "node");
    let (node, _events) = Subscriber::builder(address.tls(client), "node-1")
        .spawn_observed(&lifecycle)
        .await
        .expect("valid settings");
    let submission = [
        "submit",
        "entity",
        "J. Smith",
        "jane.smith",
        "--reporter=ana",
        "--wait",
        "--json",
    ];
    let stored = up
        .run(&[&submission, &shown[..], &[by_old]].concat())
        .await
        .ok()
        .json();
    assert_eq!(
        stored["outcome"]["state"], "OUTCOME_STATE_APPLIED",
        "the relay needs no certificate: {stored}"
    );
    let revision = stored["outcome"]["revision"].as_i64().expect("a revision");
    timeout(TIMEOUT, node.view().wait_for_revision(Revision(revision)))
        .await
        .expect("the node has it");

    for unfit in [&[][..], &[by_old], &[by_new, shown[0], shown[1]]] {
        for command in [&submission[..], &["nodes"]] {
            let ran = up.run(&[command, &["--timeout=2s"], unfit].concat()).await;
            assert_ne!(ran.code, 0, "{unfit:?}: {ran:?}");
        }
    }
    let probe = async |arguments: &[&str]| run(&[&["up", "--probe"], arguments].concat()).await;
    let output = probe(&served).await.ok().stdout;
    assert_eq!(output, format!("/readyz at {operators}: ready\n"));
    let output = probe(&served[..3]).await;
    assert!(
        output.code == 1 && output.stdout.contains("--metrics-addr"),
        "{output:?}"
    );

    new.issue(4, &["127.0.0.1"]).write(directory.path(), "server");
    let replaced = async { while up.run(&[&["nodes"], &shown[..], &[by_new]].concat()).await.code != 0 {} };
    timeout(TIMEOUT, replaced)
        .await
        .expect("new connections get the new certificate");
    lifecycle.shutdown(TIMEOUT).await;
    up.signal("-TERM").await;
    assert_eq!(up.ended().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_certificates_are_fit() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: there is no openssl");
        return;
    }
    let page = include_str!("../../../../docs/tls.md");
    let typed = page
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let directory = tempfile::tempdir().expect("a directory");
    let ran = Command::new("sh")
        .args(["-euc", typed.expect("a block for a shell")])
        .current_dir(directory.path())
        .output()
        .expect("a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let pair = Secured::start(directory).await;
    let backend = pair.backend(identity(pair.directory.path(), "node"));
    pair.learns(&backend, "by openssl").await;
    pair.stop().await;
}
