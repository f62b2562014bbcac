//! HTTP/1.1 as a scraper or an operator speaks it, and reading of metrics.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::wait::{eventually, holds, within};

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The lines before the body.
    pub head: String,
    /// The body.
    pub body: String,
}

/// Sends a request on a connection of its own.
///
/// # Panics
/// If there is no answer.
pub async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    ask_with(address, method, path, &[("Host", "emend")], body).await
}

/// The same with these headers, `Host` among them.
///
/// # Panics
/// If there is no answer.
pub async fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let asking = async {
        let mut connection = TcpStream::connect(address).await?;
        let headers: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let headers = headers.concat();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within("an HTTP request is answered", asking).await;
    let answer = answer.unwrap_or_else(|error| panic!("{method} {path} at {address}: {error}"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// The metrics of a process at the time of the scrape.
#[derive(Debug, Clone)]
pub struct Scraped(pub String);

impl Scraped {
    /// Scrapes them.
    ///
    /// # Panics
    /// If they can't be scraped.
    pub async fn from(address: SocketAddr) -> Self {
        let answer = ask(address, "GET", "/metrics", "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        Self(answer.body)
    }

    /// The value of a series, given by its name with its labels in any order, such as `name{a="b"}`; `None` if it is
    /// absent.
    ///
    /// # Panics
    /// If the value is not a number.
    pub fn value(&self, series: &str) -> Option<f64> {
        let (name, labels) = split(series);
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let mut found = lines.filter_map(|line| {
            // An exemplar may follow the value.
            let sample = line.split(" # ").next()?;
            let (series, value) = sample.rsplit_once(' ')?;
            (split(series) == (name, labels.clone())).then_some(value)
        });
        found.next().map(|value| value.parse().expect("a number"))
    }

    /// The sum of all series of this name.
    ///
    /// # Panics
    /// If a value is not a number.
    pub fn sum(&self, name: &str) -> f64 {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| line.split(" # ").next()?.rsplit_once(' '));
        samples
            .filter(|(series, _)| split(series).0 == name)
            .map(|(_, value)| value.parse::<f64>().expect("a number"))
            .sum()
    }
}

/// The name, and the labels in sorted order. Label values with commas do not occur in these tests.
fn split(series: &str) -> (&str, Vec<&str>) {
    let Some((name, labels)) = series.split_once('{') else {
        return (series, Vec::new());
    };
    let mut labels: Vec<_> = labels.trim_end_matches('}').split(',').collect();
    labels.sort_unstable();
    (name, labels)
}

/// Waits until a series has a value that satisfies `is_right`.
pub async fn until_shown(address: SocketAddr, series: &str, is_right: impl Fn(f64) -> bool) {
    eventually(&format!("{series} is shown as it should be"), || async {
        let scraped = Scraped::from(address).await;
        let value = scraped.value(series);
        holds(value.is_some_and(&is_right), || format!("it is {value:?}"))
    })
    .await;
}

/// Waits until a series shows this whole number.
pub async fn until_counted(address: SocketAddr, series: &str, expected: u32) {
    until_shown(address, series, |found| {
        (found - f64::from(expected)).abs() < 1e-9
    })
    .await;
}
