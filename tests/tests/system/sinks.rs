//! Sinks of an edge that need no engine: files, and a receiver of every revision. Both through kills.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use emend_base::{
    fail_point::FailPoint,
    http_client::testing::{Reply, Server},
};
use emend_edge::sinks::FAIL_POINTS;
use emend_tests::harness::{
    Database, Gateway, NAMESPACE, System,
    console::Console,
    edge::{self, applied, node, until_applied},
    process::Process,
    says::{
        alias_key, domain_key, domain_value, entity_value, prompt_key, prompt_value, synonym_key,
        synonym_value,
    },
    wait::{eventually, holds},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::epoch::{copy_files, new_epoch};

fn point(name: &str) -> FailPoint {
    let found = FAIL_POINTS.into_iter().find(|point| point.name() == name);
    found.expect("there is such a point")
}

/// An edge with these sinks.
fn config(system: &System, directory: &Path, sinks: &str) -> String {
    format!(
        "listen = [\"127.0.0.1:0\"]\n[node]\nid = \"edge\"\ncache_dir = \"{}\"\n[node.connection]\naddresses = [\"{}\"]\n{sinks}",
        directory.join("cache").display(),
        system.learning[0].front.address(),
    )
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// A sink for each kind of file, in a directory.
fn files(directory: &Path) -> String {
    let mut sinks = String::new();
    for (name, what, more) in [
        (
            "synonyms.txt",
            "synonyms",
            "command = [\"sh\", \"-c\", \"cp synonyms.txt seen.txt\"]",
        ),
        ("synonyms.json", "synonyms", "format = \"json\""),
        ("domains.txt", "domains", ""),
        ("hosts", "domains", "format = \"hosts\""),
        ("ublacklist.txt", "domains", "format = \"ublacklist\""),
        ("prompts", "prompts", ""),
    ] {
        let more = more.replace(
            "synonyms.txt",
            &directory.join("synonyms.txt").display().to_string(),
        );
        let more = more.replace("seen.txt", &directory.join("seen.txt").display().to_string());
        let _ = write!(
            sinks,
            "[[sink]]\nkind = \"file\"\nname = \"{name}\"\nnamespaces = [\"{NAMESPACE}\"]\nwhat = \"{what}\"\npath = \"{}\"\npace = 0\n\
             check = 0.2\n{more}\n",
            directory.join(name).display(),
        );
    }
    sinks
}

/// The row of a node on the page Fleet.
async fn row_of(console: &Console, id: &str) -> String {
    let page = console.visitor().open("fleet").await;
    assert_eq!(page.status, 200, "{page:?}");
    let mut rows = page.body.split("<tr>");
    let row = rows.find(|row| row.contains(&format!("class=\"strong\">{id} ")));
    row.unwrap_or_else(|| panic!("no {id} in {}", page.body))
        .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_say_what_is_learned_through_kills_and_changes_by_hand() {
    let system = System::sqlite().await;
    let learning = system.learning();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    learning
        .put(
            synonym_key("notebook", "laptop computer"),
            synonym_value("Laptop Computer"),
        )
        .await;
    learning
        .put(domain_key("bad.example.org"), domain_value("block"))
        .await;
    learning
        .put(domain_key("*.worse.example.org"), domain_value("block"))
        .await;
    learning
        .put(prompt_key("production"), prompt_value("Summarise."))
        .await;
    let config = config(&system, directory.path(), &files(directory.path()));
    // It dies after the first file was written, and before what is to run after that.
    let mut dying = edge::start(&config, directory.path(), Some(point("sink-written"))).await;
    assert!(!dying.ended().await.success(), "{}", dying.output());
    let mut edge = edge::start(&config, directory.path(), None).await;
    for name in [
        "synonyms.txt",
        "synonyms.json",
        "domains.txt",
        "ublacklist.txt",
        "prompts",
    ] {
        until_applied(&learning, &format!("file:{name}")).await;
    }
    let rules = read(&at("synonyms.txt"));
    for rule in [
        "\nnotebook => laptop computer, notebook\n",
        "\nlaptop computer => laptop computer, notebook\n",
    ] {
        assert!(rules.contains(rule), "{rules}");
    }
    assert_eq!(read(&at("seen.txt")), rules, "the command ran after it");
    let json: Value = serde_json::from_str(&read(&at("synonyms.json"))).unwrap();
    assert_eq!(
        json["synonyms"]["notebook"],
        serde_json::json!(["laptop computer", "notebook"])
    );
    let lines = |name: &str| -> Vec<String> { read(&at(name)).lines().skip(1).map(str::to_owned).collect() };
    assert_eq!(lines("domains.txt"), ["*.worse.example.org", "bad.example.org"]);
    assert_eq!(
        lines("ublacklist.txt"),
        ["*://*.bad.example.org/*", "*://*.worse.example.org/*"]
    );
    assert_eq!(read(&at("prompts/SUMMARIZE_DAILY.md")), "Summarise.");
    // What a format can't say is refused, and holds nothing back.
    let hosts = until_applied(&learning, "file:hosts").await;
    assert_eq!(lines("hosts"), ["0.0.0.0 bad.example.org"]);
    assert_eq!(hosts.rejected[0].key, Some(domain_key("*.worse.example.org")));
    let console = Console::beside(&system).await;
    let head = learning.head().await;
    let row = row_of(&console, "file:synonyms.txt").await;
    for cell in [
        ">connected</span>".to_owned(),
        format!("<td class=\"num\">{head}</td><td class=\"num\">0</td><td>0</td>"),
    ] {
        assert!(row.contains(&cell), "{cell} in {row}");
    }
    let row = row_of(&console, "file:hosts").await;
    let words = hosts.rejected[0].error.replace('\'', "&#39;");
    for said in [">*.worse.example.org</a>", &*words] {
        assert!(row.contains(said), "{said} in {row}");
    }

    fs::write(at("synonyms.txt"), format!("{rules}by hand => by hand, mine\n")).unwrap();
    fs::write(at("prompts/SUMMARIZE_DAILY.md"), "by hand").unwrap();
    eventually("what was changed by hand is put right", async || {
        let (found, prompt) = (read(&at("synonyms.txt")), read(&at("prompts/SUMMARIZE_DAILY.md")));
        holds(found == rules && prompt == "Summarise.", || {
            format!("{found}{prompt}")
        })
    })
    .await;
    let removed = learning.delete(synonym_key("notebook", "laptop computer")).await;
    removed.unwrap();
    until_applied(&learning, "file:synonyms.txt").await;
    assert!(!read(&at("synonyms.txt")).contains("notebook"));

    // What no sink wrote is left alone, and its sink says so.
    edge.kill().await;
    fs::write(at("domains.txt"), "mine.example.org\n").unwrap();
    let mut edge = edge::start(&config, directory.path(), None).await;
    eventually("the fleet shows the sink's problem", async || {
        let found = node(&learning, "file:domains.txt").await;
        holds(
            found.as_ref().is_some_and(|node| node.problem == "REFUSED"),
            || format!("{found:?}"),
        )
    })
    .await;
    assert_eq!(read(&at("domains.txt")), "mine.example.org\n");
    let row = row_of(&console, "file:domains.txt").await;
    assert!(row.contains("what it writes is refused"), "{row}");
    console.stop().await;
    edge.kill().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changed_is_left_where_that_is_said() {
    let system = System::sqlite().await;
    let learning = system.learning();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("domains.txt");
    let sink = format!(
        "[[sink]]\nkind = \"file\"\nname = \"domains\"\nnamespaces = [\"{NAMESPACE}\"]\nwhat = \"domains\"\npath = \"{}\"\ncheck = 0.2\n\
         on_drift = \"leave\"\n",
        file.display()
    );
    learning
        .put(domain_key("bad.example.org"), domain_value("block"))
        .await;
    let config = config(&system, directory.path(), &sink);
    let mut edge = edge::start(&config, directory.path(), None).await;
    until_applied(&learning, "file:domains").await;
    let changed = format!("{}mine.example.org\n", read(&file));
    fs::write(&file, &changed).unwrap();
    let drifts = async || {
        eventually("the fleet shows the change", async || {
            let found = node(&learning, "file:domains").await;
            holds(found.as_ref().is_some_and(|node| node.problem == "DRIFT"), || {
                format!("{found:?}")
            })
        })
        .await;
    };
    drifts().await;
    learning
        .put(domain_key("worse.example.org"), domain_value("block"))
        .await;
    // Also after a restart, by the file alone.
    edge.kill().await;
    let mut edge = edge::start(&config, directory.path(), None).await;
    drifts().await;
    assert_eq!(read(&file), changed);
    assert!(applied(&learning, "file:domains").await < learning.head().await);
    edge.kill().await;
    system.stop().await;
}

/// A receiver of deliveries, which may be killed, at an address that stays.
struct Receiver {
    road: Gateway,
    running: Option<Server>,
    /// With what it answers.
    status: Arc<AtomicU16>,
    /// What it was sent while it ran before.
    sent: Vec<String>,
}

impl Receiver {
    async fn start() -> Self {
        let mut receiver = Self {
            road: Gateway::open().await,
            running: None,
            status: Arc::new(AtomicU16::new(200)),
            sent: Vec::new(),
        };
        receiver.restart().await;
        receiver
    }

    async fn restart(&mut self) {
        let status = Arc::clone(&self.status);
        let server = Server::start(move |_| match status.load(Ordering::SeqCst) {
            200 => Reply::Json(Value::Null),
            status => Reply::Status(status, String::new(), "{\"message\": \"not now\"}"),
        })
        .await;
        let address = server.url.trim_start_matches("http://").parse().unwrap();
        self.road.lead_to(address);
        self.running = Some(server);
    }

    fn kill(&mut self) {
        self.road.close();
        self.sent
            .extend(self.running.take().into_iter().flat_map(|server| server.asked()));
    }

    /// Everything that it was sent: the id that the head names, and the body.
    fn received(&self) -> Vec<(String, Value)> {
        let now = self.running.iter().flat_map(Server::asked);
        let all = self.sent.iter().cloned().chain(now);
        all.map(|request| {
            let (head, body) = request.split_once("\r\n\r\n").expect("a request");
            let header = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_else(|| panic!("no {name} in {head}"))
                    .trim()
                    .to_owned()
            };
            assert!(header("webhook-signature:").starts_with("v1,"));
            assert!(header("webhook-timestamp:").parse::<i64>().is_ok());
            let body: Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(body["id"], header("webhook-id:"));
            (header("webhook-id:"), body)
        })
        .collect()
    }
}

/// A file with the secret that signs deliveries.
fn secret_in(directory: &Path) -> PathBuf {
    let secret = directory.join("secret");
    fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    secret
}

/// The sink of a receiver.
fn webhook(receiver: &Receiver, secret: &Path) -> String {
    format!(
        "[[sink]]\nkind = \"webhook\"\nname = \"audit\"\nnamespaces = [\"{NAMESPACE}\"]\naddress = \"http://{}/hook\"\nsecret_file = \"{}\"\n",
        receiver.road.address(),
        secret.display()
    )
}

/// Checks that every revision came, in order, each of its parts at least once and a repeat with the same content; answers how many
/// repeats there were.
async fn is_complete(receiver: &Receiver, system: &System) -> usize {
    let mut first = BTreeMap::new();
    let mut order = Vec::new();
    let deliveries = receiver.received();
    for (id, body) in &deliveries {
        if let Some(before) = first.insert(id.clone(), body.clone()) {
            assert_eq!(before, *body, "a repeat of {id}");
        } else {
            order.push((
                body["revision"]["revision"].as_i64().unwrap(),
                body["part"].as_i64().unwrap(),
            ));
        }
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(order, sorted, "in order");
    let mut changes = BTreeMap::new();
    for body in first.values() {
        let count = body["revision"]["changes"].as_array().unwrap().len();
        *changes
            .entry(body["revision"]["revision"].as_i64().unwrap())
            .or_insert(0) += count;
    }
    let learned = system.learning().revisions().await;
    let mut expected = BTreeMap::new();
    for revision in learned {
        *expected.entry(revision.revision).or_insert(0) += revision.changes.len();
    }
    assert_eq!(changes, expected, "every change of every revision");
    deliveries.len() - first.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_every_revision_in_order_through_kills_of_both() {
    let system = System::sqlite().await;
    let learning = system.learning();
    let directory: TempDir = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::start().await;
    let secret = secret_in(directory.path());
    let config = config(&system, directory.path(), &webhook(&receiver, &secret));
    let mut number = 0;
    let mut learn = async |count: usize| {
        for _ in 0..count {
            number += 1;
            let name = format!("fund {number}");
            learning
                .put(alias_key(&name), entity_value(&format!("f{number}")))
                .await;
        }
    };
    learn(3).await;
    for name in ["sink-delivered", "sink-kept"] {
        let mut dying = edge::start(&config, directory.path(), Some(point(name))).await;
        assert!(!dying.ended().await.success(), "{}", dying.output());
        assert!(applied(&learning, "webhook:audit").await < learning.head().await);
    }
    let mut edge = edge::start(&config, directory.path(), None).await;
    until_applied(&learning, "webhook:audit").await;
    assert!(
        is_complete(&receiver, &system).await > 0,
        "what was not kept came again"
    );

    // More than a page of the log, while the receiver is away.
    receiver.kill();
    learn(60).await;
    let shows = async |problem: &str, edge: &Process| {
        eventually("the fleet shows the problem", async || {
            let found = node(&learning, "webhook:audit").await;
            holds(found.as_ref().is_some_and(|node| node.problem == problem), || {
                format!("{found:?}\n{}", edge.output())
            })
        })
        .await;
    };
    shows("AWAY", &edge).await;
    edge.kill().await;
    receiver.status.store(422, Ordering::SeqCst);
    receiver.restart().await;
    let mut edge = edge::start(&config, directory.path(), None).await;
    shows("REFUSED", &edge).await;
    let refused = node(&learning, "webhook:audit").await.unwrap().rejected;
    assert!(refused[0].error.contains("not now"), "{refused:?}");
    receiver.status.store(200, Ordering::SeqCst);
    until_applied(&learning, "webhook:audit").await;
    is_complete(&receiver, &system).await;
    edge.kill().await;
    system.stop().await;
}

/// The log goes back to a backup, and gives the numbers that it lost to other revisions: after a new epoch was begun, as the
/// documents say, or without one.
async fn gets_everything_again(is_begun: bool, reason: &str) {
    let mut system = System::sqlite().await;
    let Database::Sqlite(data) = &system.database else {
        unreachable!("it is SQLite")
    };
    let (data, backup) = (data.path().to_owned(), tempfile::tempdir().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let config = config(
        &system,
        directory.path(),
        &webhook(&receiver, &secret_in(directory.path())),
    );
    let learn = async |system: &System, names: &[&str]| {
        for name in names {
            system.learning().put(alias_key(name), entity_value(name)).await;
        }
    };
    let delivered = async |system: &System| {
        let mut edge = edge::start(&config, directory.path(), None).await;
        until_applied(&system.learning(), "webhook:audit").await;
        edge.kill().await;
        receiver.received()
    };
    learn(&system, &["kept one", "kept two"]).await;
    system.stop_feedback().await;
    system.stop_learning().await;
    copy_files(&data, backup.path());
    system.start_learning().await;
    learn(&system, &["lost one", "lost two"]).await;
    let before = delivered(&system).await;
    assert_eq!(before.len(), 4, "{before:?}");
    system.stop_learning().await;
    copy_files(backup.path(), &data);
    if is_begun {
        new_epoch(&["--data-dir", &data.display().to_string()]).await;
    }
    system.start_learning().await;
    learn(&system, &["other one", "other two", "other three"]).await;
    let after = delivered(&system).await.split_off(before.len());
    assert_eq!(after[0].1["type"], "emend.epoch", "{after:?}");
    assert_eq!(after[0].1["reason"], reason, "{after:?}");
    let told = after[1..]
        .iter()
        .map(|(_, body)| body["revision"]["revision"].as_i64().unwrap());
    assert_eq!(told.collect::<Vec<_>>(), [1, 2, 3, 4, 5], "{after:?}");
    let mut by_id = BTreeMap::new();
    for (id, body) in before.iter().chain(&after) {
        let known = by_id.entry(id).or_insert(body);
        assert_eq!(*known, body, "an id of two contents");
    }
    // What is the same in both logs has the same id in one epoch alone.
    let same = before
        .iter()
        .filter(|(id, _)| after.iter().any(|(other, _)| other == id));
    assert_eq!(same.count(), if is_begun { 0 } else { 2 });
    let again = delivered(&system).await;
    assert_eq!(
        again.len(),
        before.len() + after.len(),
        "nothing comes again after a restart"
    );
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_a_restored_log_from_its_first_revision_on_and_is_told() {
    gets_everything_again(true, "other_log").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_a_restored_log_also_where_nobody_began_a_new_epoch() {
    gets_everything_again(false, "revisions_lost").await;
}
