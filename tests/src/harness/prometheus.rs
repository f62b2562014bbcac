//! A real Prometheus beside a pair: it scrapes the pair every second and evaluates rules.

use std::{collections::BTreeSet, ffi::OsStr, fmt::Write as _, net::SocketAddr};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
};

use super::{
    process::{Process, free_port},
    wait::{eventually, holds, within},
};

/// A running Prometheus. Dropping this kills it.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    address: SocketAddr,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts `program` with the text of a rules file, and waits until it has scraped every target.
    ///
    /// # Panics
    /// If it can't be started.
    pub async fn start(program: impl AsRef<OsStr>, rules: &str, targets: &[SocketAddr]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [rules.yaml]\n\
             scrape_configs: [{{job_name: emend, static_configs: [{{targets: {targets:?}}}]}}]\n"
        );
        std::fs::write(directory.path().join("rules.yaml"), rules).expect("a file");
        std::fs::write(directory.path().join("prometheus.yaml"), configuration).expect("a file");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let mut command = Command::new(program);
        command
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            .arg("--log.level=warn")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(directory.path());
        let prometheus = Self {
            process: Process::spawn("prometheus", command),
            address,
            _directory: directory,
        };
        eventually("Prometheus scrapes the pair", || async {
            let up = prometheus.query("sum(up)").await;
            holds(
                up.first().is_some_and(|(_, up)| *up == targets.len().to_string()),
                || format!("{up:?}\n{}", prometheus.process.output()),
            )
        })
        .await;
        prometheus
    }

    /// A query's result: labels and values. Empty while Prometheus is not listening yet.
    ///
    /// # Panics
    /// If Prometheus rejects the query.
    pub async fn query(&self, query: &str) -> Vec<(Value, String)> {
        let Some(answer) = self.get(&format!("/api/v1/query?query={}", encoded(query))).await else {
            return Vec::new();
        };
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let samples = answer["data"]["result"].as_array().expect("a vector");
        let samples = samples.iter().map(|sample| {
            let value = sample["value"][1].as_str().expect("a value");
            (sample["metric"].clone(), value.to_owned())
        });
        samples.collect()
    }

    /// The alerts that fire: name and severity.
    ///
    /// # Panics
    /// If Prometheus can't tell.
    pub async fn firing(&self) -> BTreeSet<(String, String)> {
        let answer = self.get("/api/v1/alerts").await.expect("Prometheus answers");
        let alerts = answer["data"]["alerts"].as_array().expect("alerts");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| {
                (
                    text(&alert["labels"]["alertname"]),
                    text(&alert["labels"]["severity"]),
                )
            })
            .collect()
    }

    /// The names of all series that it knows.
    ///
    /// # Panics
    /// If Prometheus can't tell.
    pub async fn names(&self) -> BTreeSet<String> {
        let answer = self
            .get("/api/v1/label/__name__/values")
            .await
            .expect("Prometheus answers");
        let names = answer["data"].as_array().expect("names");
        names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }

    /// A response of its API; `None` while it is not listening yet.
    async fn get(&self, path: &str) -> Option<Value> {
        let asking = async {
            let mut connection = TcpStream::connect(self.address).await?;
            // HTTP/1.0, so that the body comes whole, not in chunks.
            let request = format!("GET {path} HTTP/1.0\r\nHost: prometheus\r\n\r\n");
            connection.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let answer = within("Prometheus answers", asking).await.ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

/// Percent-encoded for a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        // Writing into a String cannot fail.
        let _ = write!(encoded, "%{byte:02X}");
    }
    encoded
}
