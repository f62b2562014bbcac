//! For tests: a local server that answers in every way that servers do, and time that passes by waiting alone.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "for tests, where a panic is a failure"
)]

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

use super::Timer;
use crate::{
    Clock as _, ManualClock,
    tls::{files::provider, testing::Issued},
};

/// What the server does.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Answers JSON.
    Json(Value),
    /// Answers JSON, and closes the connection without having said that it will.
    JsonThenClose(Value),
    /// Answers with a status, a header and a body.
    Status(u16, String, &'static str),
    /// Answers 50 MB.
    Huge,
    /// Answers nothing.
    Hang,
    /// Closes the connection without an answer.
    Close,
    /// Closes the connection within the answer.
    CloseWithin,
}

/// A server on a free port, and the heads and bodies of what it was asked.
pub struct Server {
    /// Its address.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request by its path.
    pub async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::answering(move |request| reply(request.split(' ').nth(1).unwrap())).await
    }

    /// Answers each request by all of it: its head, an empty line and its body.
    pub async fn answering(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, reply).await
    }

    /// The same over TLS with this certificate, at the name `localhost`.
    pub async fn secured(issued: &Issued, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let chain = CertificateDer::from_pem_slice(issued.cert.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        Self::listen(Some(TlsAcceptor::from(Arc::new(config))), reply).await
    }

    async fn listen(tls: Option<TlsAcceptor>, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = match tls {
            None => format!("http://{address}"),
            Some(_) => format!("https://localhost:{}", address.port()),
        };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (log, reply) = (asked.clone(), Arc::new(reply));
        let count = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (log, reply, tls) = (log.clone(), reply.clone(), tls.clone());
                connections.spawn(async move {
                    let Some(tls) = tls else {
                        while serve(&mut stream, &log, &*reply).await {}
                        return;
                    };
                    // A client that does not trust it goes.
                    if let Ok(mut stream) = tls.accept(stream).await {
                        while serve(&mut stream, &log, &*reply).await {}
                    }
                });
            }
        });
        Self {
            url,
            asked,
            connections,
            _tasks: tasks,
        }
    }

    /// The heads and bodies of what it was asked.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Answers a request; returns whether there may be another one.
async fn serve(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    log: &Mutex<Vec<String>>,
    reply: &(dyn Fn(&str) -> Reply + Send + Sync),
) -> bool {
    let mut request = Vec::new();
    let is_whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return false;
        };
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        length.is_none_or(|length| body.len() >= length.parse().unwrap())
    };
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return false;
        }
    }
    let request = String::from_utf8(request).unwrap();
    log.lock().unwrap().push(request.clone());
    let answer = |status: u16, header: &str, body: &str| {
        format!(
            "HTTP/1.1 {status} X\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let reply = reply(&request);
    let goes_on = matches!(reply, Reply::Json(_) | Reply::Status(..));
    let bytes = match reply {
        Reply::Json(json) | Reply::JsonThenClose(json) => answer(200, "", &json.to_string()),
        Reply::Status(status, header, body) => answer(status, &header, body),
        Reply::Hang => std::future::pending().await,
        Reply::Close => return false,
        Reply::CloseWithin => "HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n{\"data\":".into(),
        Reply::Huge => {
            let head = "HTTP/1.1 200 X\r\ncontent-length: 50000000\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            let part = vec![b' '; 100_000];
            for _ in 0..500 {
                if stream.write_all(&part).await.is_err() {
                    return false;
                }
            }
            return false;
        }
    };
    // Whoever has given up does not read it.
    stream.write_all(bytes.as_bytes()).await.is_ok() && goes_on
}

/// Time that passes only by waiting, and waits that take none.
pub struct Fake {
    /// Its time.
    pub clock: ManualClock,
    timeout: Duration,
    waits: Mutex<Vec<Duration>>,
    is_slow: bool,
}

impl Fake {
    /// `timeout` is the wait that attempts may take: it ends only if all are slow.
    pub fn new(timeout: Duration, is_slow: bool) -> Self {
        Self {
            timeout,
            clock: ManualClock::default(),
            waits: Mutex::new(Vec::new()),
            is_slow,
        }
    }

    /// All other waits, in order.
    pub fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }
}

impl Timer for Fake {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if span == self.timeout {
                if !self.is_slow {
                    std::future::pending::<()>().await;
                }
                return;
            }
            self.waits.lock().unwrap().push(span);
            self.clock.advance(SignedDuration::try_from(span).unwrap());
        })
    }
}
