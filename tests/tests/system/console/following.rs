//! What many open pages cost: learning-svc one watch for each account and namespace, and the console little memory.

use std::net::SocketAddr;

use emend_base::telemetry::Metrics;
use emend_tests::harness::{
    Database, NAMESPACE, System,
    console::{Console, Visitor, header},
    eventually,
    http::until_counted,
    process::{Process, free_port},
    start::Settings,
    wait::holds,
    within,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{everything_waits, waiting};
use crate::security::{EVERYWHERE, Guarded, token_of};

/// Pages that are open at once.
const PAGES: usize = 200;
/// What they may cost the console, in bytes.
const MEMORY: u64 = 50_000_000;
/// Namespaces that one account may follow.
const NAMESPACES: usize = 16;

/// An open page: what it was told so far.
struct Page {
    stream: TcpStream,
    told: String,
}

impl Page {
    async fn open(console: SocketAddr, namespace: &str, cookie: &str) -> Self {
        let mut stream = TcpStream::connect(console).await.expect("the console listens");
        let request =
            format!("GET /ns/{namespace}/live HTTP/1.1\r\nHost: {console}\r\nCookie: {cookie}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is asked");
        Self {
            stream,
            told: String::new(),
        }
    }

    /// Waits until it is told this, or there is nothing more to come.
    async fn is_told(&mut self, event: &str) {
        let event = format!("event: {event}\n");
        within(&event, async {
            while !self.told.contains(&event) {
                let mut read = [0; 4_096];
                let length = self.stream.read(&mut read).await.expect("it is read");
                assert!(length > 0, "it ends with {:?}", self.told);
                self.told.push_str(&String::from_utf8_lossy(&read[..length]));
            }
        })
        .await;
    }
}

/// How many watches are open at learning-svc.
fn watches(metrics: &Metrics) -> f64 {
    let rendered = metrics.render();
    let mut lines = rendered.lines();
    let in_flight =
        lines.find(|line| line.starts_with("grpc_server_in_flight{") && line.contains("\"WatchQueue\""));
    in_flight
        .and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_open_pages_of_one_account_cost_one_watch_and_little_memory() {
    let metrics = Metrics::new();
    let settings = Settings {
        learning_metrics: Some(metrics.clone()),
        ..Settings::default()
    };
    let system = System::start(Database::sqlite(), 1, 1, settings).await;
    everything_waits(&system).await;
    let operators = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    let arguments = [
        "console".to_owned(),
        "--console-addr=127.0.0.1:0".to_owned(),
        format!("--feedback-addr={}", system.feedback[0].address()),
        format!("--learning-addr={}", system.learning[0].address()),
        format!("--metrics-addr={operators}"),
    ];
    let mut process = Process::start("emend", &arguments).await;
    let console: SocketAddr = process
        .says("that it is ready", |line| {
            line.strip_prefix("emend: ready console=http://")?.parse().ok()
        })
        .await;
    let today = Visitor::at(console).open("today").await;
    let cookie = header(&today, "set-cookie").join("");
    let cookie = cookie.split(';').next().expect("a cookie");
    let before = process.resident();
    let mut pages = Vec::with_capacity(PAGES);
    for _ in 0..PAGES {
        pages.push(Page::open(console, NAMESPACE, cookie).await);
    }
    for page in &mut pages {
        page.is_told("open").await;
    }
    until_counted(operators, "emend_console_live_pages", 200).await;
    until_counted(operators, "emend_console_watches", 1).await;
    eventually("learning-svc has one watch", async || {
        let open = watches(&metrics);
        holds((open - 1.0).abs() < f64::EPSILON, || open.to_string())
    })
    .await;
    waiting(&system, 3).await;
    for page in &mut pages {
        page.is_told("queue").await;
    }
    let grown = process.resident().saturating_sub(before);
    println!("{PAGES} open pages take {} KB", grown / 1_000);
    assert!(grown < MEMORY, "{grown} bytes");

    // One account has so many namespaces and no more, and a page beyond that is told so, and that it may ask again.
    let mut others = Vec::new();
    for number in 1..NAMESPACES {
        let mut page = Page::open(console, &format!("other-{number}"), cookie).await;
        page.is_told("open").await;
        others.push(page);
    }
    let mut refused = Page::open(console, "one-too-many", cookie).await;
    refused.is_told("full").await;
    assert!(
        refused
            .told
            .contains("follows 16 namespaces, which is the maximum"),
        "{}",
        refused.told
    );
    assert!(refused.told.contains("retry: 30000"), "{}", refused.told);
    until_counted(
        operators,
        "emend_console_live_refused_total{reason=\"namespaces\"}",
        1,
    )
    .await;
    // Those that are followed still are.
    let mut one_more = Page::open(console, NAMESPACE, cookie).await;
    one_more.is_told("open").await;

    drop((pages, others, refused, one_more));
    until_counted(operators, "emend_console_live_pages", 0).await;
    until_counted(operators, "emend_console_watches", 0).await;
    process.terminate().await;
    assert!(process.ended().await.success());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_each_account_share_one_watch() {
    let callers = [("rita", "reviewer", EVERYWHERE), ("rob", "reviewer", EVERYWHERE)];
    Guarded::check(Database::sqlite(), &callers, async |guarded| {
        let console = Console::beside(&guarded.system).await;
        let mut pages = Vec::new();
        for (name, _, _) in callers {
            let signed_in = console.visitor().sign_in(&token_of(name)).await;
            let cookies = header(&signed_in, "set-cookie");
            let cookies: Vec<_> = cookies
                .iter()
                .filter_map(|cookie| cookie.split(';').next())
                .collect();
            for _ in 0..20 {
                pages.push(Page::open(console.address, NAMESPACE, &cookies.join("; ")).await);
            }
        }
        for page in &mut pages {
            page.is_told("open").await;
        }
        eventually("learning-svc has one watch for each", async || {
            let open = watches(&guarded.metrics);
            holds((open - 2.0).abs() < f64::EPSILON, || open.to_string())
        })
        .await;
        drop(pages);
        console.stop().await;
    })
    .await;
}
