//! OpenSearch and Solr as processes.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use emend_base::testing::skipped;
use emend_tests::harness::{
    http::ask_with,
    wait::{eventually, within},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdin, Command},
};

/// Names the directory where the libraries of the engines are, by engine; `cargo xtask` fetches them.
const VARIABLE: &str = "EMEND_TEST_ENGINES";
/// The index that is searched, in Solr the core.
pub(crate) const INDEX: &str = "products";
/// Another one.
pub(crate) const BULK: &str = "bulk";
/// The field that is searched.
pub(crate) const FIELD: &str = "title";

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// OpenSearch, with two indexes.
    OpenSearch,
    /// Solr, with two cores.
    Solr,
    /// Solr with `ZooKeeper`, with a collection whose two shards are on one node.
    SolrCloud,
}

impl Kind {
    /// Its name in `expand?as=`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenSearch => "opensearch",
            Self::Solr | Self::SolrCloud => "solr",
        }
    }

    /// The program of ours that runs it.
    fn program(self) -> &'static str {
        match self {
            Self::OpenSearch | Self::Solr => "Engine.java",
            Self::SolrCloud => "Cloud.java",
        }
    }
}

/// An engine that runs. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Engine {
    kind: Kind,
    address: SocketAddr,
    home: TempDir,
    libraries: PathBuf,
    /// It ends when this is closed.
    input: ChildStdin,
    process: Child,
}

impl Engine {
    /// Starts one; `None`, after a line of output that says so, if its libraries are not there.
    pub(crate) async fn start(kind: Kind) -> Option<Self> {
        let Some(libraries) = env::var_os(VARIABLE).map(PathBuf::from) else {
            skipped(format_args!("{VARIABLE} is not set"));
            return None;
        };
        let home = tempfile::tempdir().expect("a directory");
        if kind == Kind::SolrCloud {
            let conf = home.path().join("conf");
            std::fs::create_dir(&conf).expect("a directory is made");
            copy(&ours(kind).join("home").join(INDEX).join("conf"), &conf);
        }
        if kind == Kind::Solr {
            copy(&ours(kind).join("home"), home.path());
            let (first, other) = (home.path().join(INDEX), home.path().join(BULK));
            std::fs::create_dir(&other).expect("a directory is made");
            copy(&first, &other);
            std::fs::write(other.join("core.properties"), format!("name={BULK}\n"))
                .expect("a file is written");
        }
        let (process, until, address) = launch(kind, &libraries, home.path()).await;
        let engine = Self {
            kind,
            address,
            home,
            libraries,
            input: until,
            process,
        };
        if kind == Kind::OpenSearch {
            engine.create(INDEX, &own_synonyms(&[])).await;
            engine.create(BULK, &own_synonyms(&[])).await;
        }
        Some(engine)
    }

    /// Where it answers.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The directory in which its files of synonyms are.
    pub(crate) fn config(&self) -> PathBuf {
        self.home.path().join("config")
    }

    /// Kills it without warning.
    pub(crate) async fn kill(&mut self) {
        self.process
            .kill()
            .await
            .expect("a running process can be killed");
    }

    /// Starts it again with what it stored, at another address.
    pub(crate) async fn restart(&mut self) {
        (self.process, self.input, self.address) = launch(self.kind, &self.libraries, self.home.path()).await;
        eventually("it has its index again", async || {
            self.search(&self.written("x")).await
        })
        .await;
    }

    /// Which it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes an index whose searches are analysed so.
    pub(crate) async fn create(&self, index: &str, analysis: &Value) {
        let settings = json!({
            "settings": {"number_of_shards": 1, "analysis": analysis},
            "mappings": {"properties": {FIELD: {
                "type": "text", "analyzer": "standard", "search_analyzer": "own",
            }}},
        });
        self.ask("PUT", &format!("/{index}"), &settings)
            .await
            .expect("the index is created");
    }

    /// Indexes these titles; their ids are their places.
    pub(crate) async fn index(&self, titles: &[&str]) {
        self.index_in(INDEX, titles).await;
    }

    /// The same in an index.
    pub(crate) async fn index_in(&self, index: &str, titles: &[&str]) {
        for (id, title) in titles.iter().enumerate() {
            let indexed = match self.kind {
                Kind::OpenSearch => {
                    let path = format!("/{index}/_doc/{id}?refresh=true");
                    self.ask("PUT", &path, &json!({FIELD: title})).await
                }
                Kind::Solr | Kind::SolrCloud => {
                    let document = json!([{"id": id.to_string(), FIELD: title}]);
                    let path = format!("/solr/{index}/update?commit=true");
                    self.ask("POST", &path, &document).await
                }
            };
            indexed.expect("it is indexed");
        }
    }

    /// The ids that a query finds, or why the engine refuses it.
    pub(crate) async fn search(&self, query: &Value) -> Result<Vec<String>, String> {
        self.search_in(INDEX, query).await
    }

    /// The same in an index.
    pub(crate) async fn search_in(&self, index: &str, query: &Value) -> Result<Vec<String>, String> {
        let (found, ids) = match self.kind {
            Kind::OpenSearch => {
                let found = self
                    .ask("POST", &format!("/{index}/_search"), &json!({"query": query}))
                    .await?;
                (found, ("/hits/hits", "_id"))
            }
            Kind::Solr | Kind::SolrCloud => {
                let found = self
                    .ask("POST", &format!("/solr/{index}/select"), &json!({"query": query}))
                    .await;
                (found?, ("/response/docs", "id"))
            }
        };
        let hits = found
            .pointer(ids.0)
            .and_then(Value::as_array)
            .ok_or("it has no hits")?;
        Ok(hits
            .iter()
            .filter_map(|hit| Some(hit.get(ids.1)?.as_str()?.to_owned()))
            .collect())
    }

    /// The query of a text as somebody writes it who knows no edge.
    pub(crate) fn written(&self, text: &str) -> Value {
        match self.kind {
            Kind::OpenSearch => json!({"match": {FIELD: {"query": text, "operator": "and"}}}),
            Kind::Solr | Kind::SolrCloud => json!(format!("{{!edismax qf={FIELD} q.op=AND}}{text}")),
        }
    }

    /// Teaches the engine itself that these terms stand for each other, as its documentation says.
    pub(crate) async fn teach(&self, terms: &[&str]) {
        match self.kind {
            Kind::OpenSearch => {
                let settings = json!({"analysis": own_synonyms(terms)});
                self.ask("POST", "/products/_close", &Value::Null)
                    .await
                    .expect("closed");
                self.ask("PUT", "/products/_settings", &settings)
                    .await
                    .expect("set");
                self.ask("POST", "/products/_open?wait_for_active_shards=1", &Value::Null)
                    .await
                    .expect("opened");
            }
            Kind::Solr | Kind::SolrCloud => {
                let path = "/solr/products/schema/analysis/synonyms/own";
                self.ask("PUT", path, &json!(terms)).await.expect("put");
                let reload = match self.kind {
                    Kind::SolrCloud => "/solr/admin/collections?action=RELOAD&name=products",
                    _ => "/solr/admin/cores?action=RELOAD&core=products",
                };
                self.ask("GET", reload, &Value::Null).await.expect("reloaded");
            }
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let host = self.address.to_string();
        let headers = [
            ("Host", &*host),
            ("Content-Type", "application/json"),
            ("Accept-Encoding", "identity"),
        ];
        let answer = ask_with(self.address, method, path, &headers, &body).await;
        if answer.status >= 300 {
            return Err(format!("{method} {path}: {} {}", answer.status, answer.body));
        }
        serde_json::from_str(unchunked(&answer.body).trim())
            .map_err(|error| format!("{error}: {}", answer.body))
    }
}

/// What these tests have of an engine.
fn ours(kind: Kind) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("engines")
        .join(kind.name())
}

/// Starts a process, and waits until it says its port.
async fn launch(kind: Kind, libraries: &Path, home: &Path) -> (Child, ChildStdin, SocketAddr) {
    let mut process = Command::new("java")
        .args(["-Xmx512m", "-cp"])
        .arg(libraries.join(kind.name()).join("*"))
        .arg(ours(kind).join(kind.program()))
        .arg(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("java starts");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let port = within("the engine says its port", async {
        while let Some(line) = lines.next_line().await.expect("it is read") {
            if let Some(port) = line.strip_prefix("ready ") {
                return port.parse::<u16>().expect("a port");
            }
        }
        panic!("{} ended before it was ready", kind.name());
    })
    .await;
    // What it says from now on nobody reads, and it must not wait for a reader.
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    let until = process.stdin.take().expect("it is piped");
    (process, until, ([127, 0, 0, 1], port).into())
}

/// The analysis of a field whose synonyms are the engine's own.
fn own_synonyms(terms: &[&str]) -> Value {
    let rules: Vec<String> = if terms.is_empty() {
        Vec::new()
    } else {
        vec![terms.join(", ")]
    };
    json!({
        "filter": {"own": {"type": "synonym_graph", "synonyms": rules}},
        "analyzer": {"own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "own"]}},
    })
}

/// A body that may have come in chunks.
fn unchunked(body: &str) -> String {
    if body.starts_with(['{', '[']) {
        return body.to_owned();
    }
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
        if size == 0 {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).expect("a directory is made");
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file is copied");
        }
    }
}
