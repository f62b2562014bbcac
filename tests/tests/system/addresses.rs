//! Several addresses where one is taken: feedback-svc's relay, an edge by its file and a console go on at whichever still leads to
//! learning-svc.

use std::net::SocketAddr;

use emend_tests::harness::{
    Feedback, Gateway, NAMESPACE, System,
    console::Visitor,
    edge, eventually,
    http::ask_with,
    process::{Process, free_port},
    says,
    says::phrase_key,
    verb,
    wait::holds,
};

/// Two roads to one learning-svc, of which one at most is open at a time.
struct Roads {
    ways: [Gateway; 2],
    target: SocketAddr,
}

impl Roads {
    async fn to(system: &System) -> Self {
        Self {
            ways: [Gateway::open().await, Gateway::open().await],
            target: system.learning[0].address(),
        }
    }

    fn addresses(&self) -> [String; 2] {
        [&self.ways[0], &self.ways[1]].map(|way| way.address().to_string())
    }

    /// Opens one, and ends what goes over the other.
    fn open_only(&self, which: usize) {
        self.ways[1 - which].close();
        self.ways[which].lead_to(self.target);
    }

    /// Opens one; the other takes connections, keeps them, and says nothing.
    fn hold_other_than(&self, which: usize) {
        self.ways[1 - which].hold();
        for way in &self.ways {
            way.lead_to(self.target);
        }
    }
}

/// The order in which roads are open: the one that is named last first, and back to it.
const OPEN: [usize; 3] = [1, 0, 1];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_delivers_to_whichever_of_its_addresses_answers() {
    let system = System::sqlite().await;
    let roads = Roads::to(&system).await;
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("feedback.db").display());
    let listen = format!("127.0.0.1:{}", free_port().await);
    let learning = roads.addresses().join(",");
    roads.open_only(OPEN[0]);
    let arguments = [
        "--listen",
        &listen,
        "--database-url",
        &url,
        "--learning-addr",
        &learning,
    ];
    let mut process = Process::start("feedback-svc", arguments).await;
    process.ready(&listen, "emend.feedback.v1.FeedbackService").await;
    for (number, open) in OPEN.into_iter().enumerate() {
        roads.open_only(open);
        let phrase = format!("set up a csa {number}");
        // Returns once learning-svc has said what it made of it.
        Feedback::at(&listen)
            .learn(says("jane", verb(&phrase, "create_csa")))
            .await;
        let candidates = system.learning().candidates_for(&phrase).await;
        assert_eq!(candidates.len(), 1, "{phrase}: {candidates:?}");
    }
    process.terminate().await;
    assert!(process.ended().await.success(), "{}", process.output());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_follows_whichever_of_its_addresses_answers() {
    let system = System::sqlite().await;
    let roads = Roads::to(&system).await;
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = roads.addresses();
    let listen = format!("127.0.0.1:{}", free_port().await);
    let config = format!(
        "listen = [\"{listen}\"]\n[node]\nid = \"edge\"\nnamespaces = [\"{NAMESPACE}\"]\n\
         [node.connection]\naddresses = [\"{first}\", \"{second}\"]\n"
    );
    roads.open_only(OPEN[0]);
    let mut process = edge::start(&config, directory.path(), None).await;
    for (number, open) in OPEN.into_iter().enumerate() {
        roads.open_only(open);
        let (phrase, choice) = (format!("set up a csa {number}"), format!("create_csa_{number}"));
        let value = says::verb_value(&choice);
        system.learning().put(phrase_key(&phrase), value).await;
        edge::until_applied(&system.learning(), "edge").await;
        let path = format!("/v1/{NAMESPACE}/resolve?phrase={}", phrase.replace(' ', "+"));
        let answer = ask_with(listen.parse().unwrap(), "GET", &path, &[("Host", &listen)], "").await;
        assert!(answer.body.contains(&choice), "{answer:?}\n{}", process.output());
    }
    process.terminate().await;
    assert!(process.ended().await.success(), "{}", process.output());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_leaves_an_address_that_says_nothing() {
    let system = System::sqlite().await;
    let value = says::verb_value("create_csa");
    system.learning().put(phrase_key("set up a csa"), value).await;
    let roads = Roads::to(&system).await;
    roads.hold_other_than(OPEN[0]);
    let arguments = [
        "console".to_owned(),
        "--console-addr=127.0.0.1:0".to_owned(),
        format!("--feedback-addr={}", system.feedback[0].address()),
        format!("--learning-addr={}", roads.addresses().join(",")),
    ];
    let mut process = Process::start("emend", &arguments).await;
    let console: SocketAddr = process
        .says("that it is ready", |line| {
            line.strip_prefix("emend: ready console=http://")?.parse().ok()
        })
        .await;
    eventually("the page shows what was learned", async || {
        let page = Visitor::at(console).open("learned?phrase=set+up+a+csa").await;
        holds(page.body.contains("create_csa"), || page.body)
    })
    .await;
    process.terminate().await;
    assert!(process.ended().await.success(), "{}", process.output());
    system.stop().await;
}
