//! Servers with certificates on real sockets: which clients are let in, and how that changes with the files.

use std::{convert::Infallible, fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use emend_base::{
    Entropy, Lifecycle,
    bearer::TokenFile,
    lifecycle::Shutdown,
    reload::{Reload as _, When},
    tls::{
        ClientTls, Remote, TrustError,
        testing::{Authority, ExtendedKeyUsagePurpose, date_time_ymd},
        why,
    },
};
use emend_core::Caller;
use futures::future::{Ready, ready};
use http::{Request, Response};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tonic::{Code, Status, body::Body, server::NamedService, transport::Channel};
use tower::Service;

use super::{PeerNames, TlsFiles, TlsServer};
use crate::{
    Server,
    auth::{Authenticator, Reaches, Role, TokenHash, rule},
    health::Readiness,
    library::{LIST, SERVICE, Text, call, descriptors},
};

/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(30);

/// Refuses every call with the caller's name or, for an unknown one, the names in its certificate.
#[derive(Clone)]
struct Names;

impl NamedService for Names {
    const NAME: &'static str = SERVICE;
}

impl Service<Request<Body>> for Names {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let caller = request.extensions().get::<Caller>();
        if let Some(caller) = caller.filter(|caller| **caller != Caller::anonymous()) {
            return ready(Ok(Status::aborted(caller.as_str()).into_http()));
        }
        let names = request.extensions().get::<PeerNames>();
        let names = names.map_or("nobody".to_owned(), |names| names.names.join(" "));
        ready(Ok(Status::aborted(names).into_http()))
    }
}

/// The files of a server and its clients: the server's are `server.pem`, `server.key`, `clients.pem`, `revoked.pem`.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Writes the server's certificate and, for its clients, its CA.
    fn serve_by(&self, authority: &Authority) {
        authority
            .issue(1, &["127.0.0.1", "localhost"])
            .write(self.0.path(), "server");
    }

    fn optional(&self, name: &str) -> Option<PathBuf> {
        Some(self.path(name)).filter(|path| path.exists())
    }

    fn server(&self) -> TlsFiles {
        TlsFiles {
            cert: self.path("server.pem"),
            key: self.path("server.key"),
            client_ca: self.optional("clients.pem"),
            client_crl: self.optional("revoked.pem"),
        }
    }

    /// A client that trusts this CA and presents that certificate.
    fn client(&self, authority: &Authority, identity: Option<&str>) -> ClientTls {
        let ca = format!("ca-{}.pem", authority.name());
        self.write(&ca, authority.pem());
        let client = ClientTls::default().ca(self.path(&ca));
        match identity {
            None => client,
            Some(name) => client.identity(
                self.path(&format!("{name}.pem")),
                self.path(&format!("{name}.key")),
            ),
        }
    }
}

struct Running {
    tls: Arc<TlsServer>,
    address: SocketAddr,
    lifecycle: Lifecycle,
}

impl Running {
    async fn start(files: &Files) -> Self {
        Self::start_knowing(files, None).await
    }

    async fn start_knowing(files: &Files, authenticator: Option<Authenticator>) -> Self {
        let lifecycle = Lifecycle::new();
        let tls = Arc::new(TlsServer::load(files.server()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Server::new(descriptors(), Readiness::new(), Entropy::seeded(1))
            .add_service(Names, &[])
            .tls(Some(Arc::clone(&tls)))
            .authenticator(
                authenticator.map(Arc::new),
                &[rule(LIST, Role::Reviewer, Reaches::One)],
            )
            .serve(listener, &lifecycle)
            .unwrap();
        Self {
            tls,
            address,
            lifecycle,
        }
    }

    fn client(&self, tls: ClientTls) -> Channel {
        let remote = Remote::new(&format!("https://{}", self.address)).unwrap();
        remote.tls(tls).unwrap().connect_lazy()
    }

    /// The names that the server sees; `None` if it or the client refuses.
    async fn names(&self, tls: ClientTls) -> Option<String> {
        names(&self.client(tls)).await
    }
}

async fn names(client: &Channel) -> Option<String> {
    let asked = call(client.clone(), LIST, Text::default());
    let refused = timeout(SOON, asked).await.expect("an answer").unwrap_err();
    (refused.code() == Code::Aborted).then(|| refused.message().to_owned())
}

/// Waits until this client's connection is closed, and it can open no other.
async fn lost(client: &Channel) {
    let lost = async { while names(client).await.is_some() {} };
    timeout(SOON, lost).await.expect("its connection ends");
}

#[tokio::test]
async fn new_connections_get_the_changed_certificate_and_open_ones_continue() {
    let (old, new, files) = (Authority::new("old"), Authority::new("new"), Files::new());
    files.serve_by(&old);
    let server = Running::start(&files).await;
    let (by_old, by_new) = (files.client(&old, None), files.client(&new, None));
    let open = server.client(by_old.clone());
    assert_eq!(names(&open).await.as_deref(), Some("nobody"));
    assert_eq!(server.names(by_new.clone()).await, None, "not yet");

    assert!(!server.tls.reload_if_changed(), "nothing has changed");
    assert!(server.tls.reload(When::Requested), "somebody asks for it");
    files.serve_by(&new);
    assert!(server.tls.reload_if_changed());
    assert!(server.names(by_new).await.is_some());
    assert_eq!(server.names(by_old).await, None);
    assert!(names(&open).await.is_some(), "it was open before");
    assert_eq!(
        server.lifecycle.shutdown(SOON).await,
        Shutdown::Graceful,
        "open connections are ended as plain ones are"
    );
}

#[tokio::test]
async fn unusable_files_change_nothing_and_a_half_written_change_is_completed_later() {
    let (old, new, files) = (Authority::new("old"), Authority::new("new"), Files::new());
    files.serve_by(&old);
    let server = Running::start(&files).await;
    let (by_old, by_new) = (files.client(&old, None), files.client(&new, None));
    let issued = new.issue(2, &["127.0.0.1"]);
    for unfit in [issued.cert.as_str(), "", "-----BEGIN CERTIFICATE-----\nxx"] {
        files.write("server.pem", unfit);
        assert!(!server.tls.reload_if_changed(), "{unfit}");
        assert!(server.names(by_old.clone()).await.is_some(), "{unfit}");
    }
    issued.write(files.0.path(), "server");
    assert!(server.tls.reload_if_changed());
    assert!(server.names(by_new).await.is_some());
}

#[tokio::test]
async fn a_client_certificate_is_required_and_its_names_reach_each_request() {
    let (authority, other, files) = (Authority::new("ca"), Authority::new("other"), Files::new());
    files.serve_by(&authority);
    files.write("clients.pem", authority.pem());
    let uri = "spiffe://emend.example/relay";
    authority
        .issue(7, &["relay.example", uri])
        .write(files.0.path(), "relay");
    other
        .issue(8, &["relay.example"])
        .write(files.0.path(), "stranger");
    let server = Running::start(&files).await;
    let seen = server.names(files.client(&authority, Some("relay"))).await;
    assert_eq!(seen, Some(format!("{uri} relay.example")));
    let without = server.names(files.client(&authority, None)).await;
    assert_eq!(without, None, "without a certificate");
    let stranger = server.names(files.client(&authority, Some("stranger"))).await;
    assert_eq!(stranger, None, "another CA's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_certificate_is_told_so_and_not_reset() {
    let authority = Authority::new("one");
    let files = Files::new();
    files.serve_by(&authority);
    files.write("clients.pem", authority.pem());
    let server = Running::start(&files).await;
    for _ in 0..50 {
        // In TLS 1.3 it has sent its request by then.
        let client = server.client(files.client(&authority, None));
        let asked = call(client.clone(), LIST, Text::default());
        let refused = timeout(SOON, asked).await.expect("an answer").unwrap_err();
        let why = format!("{refused:?}");
        // hyper gives no reason to a request that it has not begun to send.
        let texts = ["requires a client certificate", "operation was canceled"];
        assert!(texts.iter().any(|text| why.contains(text)), "{why}");
    }
}

#[tokio::test]
async fn a_token_takes_precedence_over_a_certificate() {
    let (authority, files) = (Authority::new("ca"), Files::new());
    files.serve_by(&authority);
    files.write("clients.pem", authority.pem());
    authority
        .issue(7, &["node.example"])
        .write(files.0.path(), "node");
    let hash = TokenHash::of("token-of-web");
    let grants = "grants = [{ roles = [\"reviewer\"], namespaces = \"*\" }]";
    files.write(
        "auth.toml",
        format!(
            "[[principals]]\nname = \"node\"\ncertificates = [\"node.example\"]\n{grants}\n\
             [[principals]]\nname = \"web\"\ntoken_sha256 = [\"{hash}\"]\n{grants}\n"
        ),
    );
    let authenticator = Authenticator::load(&files.path("auth.toml")).unwrap();
    let server = Running::start_knowing(&files, Some(authenticator)).await;
    let client = server.client(files.client(&authority, Some("node")));
    for (token, expected) in [
        (None, (Code::Aborted, "node")),
        (Some("token-of-web"), (Code::Aborted, "web")),
        (
            Some("guessed"),
            (Code::Unauthenticated, "the credentials are not accepted"),
        ),
    ] {
        let mut request = tonic::Request::new(Text::default());
        if let Some(token) = token {
            files.write("token", token);
            TokenFile::new(files.path("token")).authorize(&mut request);
        }
        let answer = timeout(SOON, call(client.clone(), LIST, request))
            .await
            .expect("an answer");
        let error = answer.unwrap_err();
        assert_eq!((error.code(), error.message()), expected, "{token:?}");
    }
}

#[tokio::test]
async fn a_client_that_is_revoked_or_whose_ca_is_removed_loses_its_connection_and_gets_no_other() {
    let (authority, other, files) = (Authority::new("ca"), Authority::new("other"), Files::new());
    files.serve_by(&authority);
    files.write("clients.pem", authority.pem());
    let (good, bad) = (authority.issue(7, &["good"]), authority.issue(8, &["bad"]));
    good.write(files.0.path(), "good");
    bad.write(files.0.path(), "bad");
    files.write("revoked.pem", authority.revoked(&[]));
    let server = Running::start(&files).await;
    let client = |name| files.client(&authority, Some(name));
    let open = server.client(client("bad"));
    assert_eq!(names(&open).await.as_deref(), Some("bad"));

    files.write("revoked.pem", authority.revoked(&[&bad]));
    assert!(server.tls.reload_if_changed());
    assert_eq!(server.names(client("bad")).await, None);
    assert_eq!(server.names(client("good")).await.as_deref(), Some("good"));
    lost(&open).await;

    let open = server.client(client("good"));
    assert_eq!(names(&open).await.as_deref(), Some("good"));
    files.write("clients.pem", other.pem());
    files.write("revoked.pem", other.revoked(&[]));
    assert!(server.tls.reload_if_changed());
    assert_eq!(server.names(client("good")).await, None);
    lost(&open).await;
}

#[tokio::test]
async fn a_client_reads_its_files_for_each_connection() {
    let (old, new, files) = (Authority::new("old"), Authority::new("new"), Files::new());
    files.serve_by(&old);
    let client = files.client(&old, None);
    let server = Running::start(&files).await;
    assert!(server.names(client.clone()).await.is_some());
    files.serve_by(&new);
    server.tls.reload_if_changed();
    assert_eq!(server.names(client.clone()).await, None);
    files.write("ca-old.pem", old.pem() + &new.pem());
    assert!(server.names(client).await.is_some());
}

#[tokio::test]
async fn in_process_calls_need_no_tls_and_end_when_the_server_stops() {
    let (authority, files) = (Authority::new("ca"), Files::new());
    files.serve_by(&authority);
    files.write("clients.pem", authority.pem());
    let lifecycle = Lifecycle::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (_, inside) = Server::new(descriptors(), Readiness::new(), Entropy::seeded(1))
        .add_service(Names, &[])
        .tls(Some(Arc::new(TlsServer::load(files.server()).unwrap())))
        .serve_inside(listener, &lifecycle)
        .unwrap();
    let client = inside.connect().await.unwrap();
    assert_eq!(names(&client).await.as_deref(), Some("nobody"));
    assert_eq!(
        lifecycle.shutdown(SOON).await,
        Shutdown::Graceful,
        "it is ended as others are"
    );
    assert!(inside.connect().await.is_err());
}

#[tokio::test]
async fn plain_text_is_closed_at_once() {
    let (authority, files) = (Authority::new("ca"), Files::new());
    files.serve_by(&authority);
    let server = Running::start(&files).await;
    for preface in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(preface.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // Less than the handshake's time limit. Reset or closed, the connection is gone either way.
        let read = timeout(Duration::from_secs(8), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "{preface:?} is left waiting");
        assert!(answer.len() < 10, "an alert at most: {answer:?}");
    }
}

#[tokio::test]
async fn an_untrusted_server_is_explained_in_plain_words() {
    let (authority, other, files) = (Authority::new("ca"), Authority::new("other"), Files::new());
    let here = &["127.0.0.1"];
    let cases = [
        (
            authority.issue(1, &["learning.example", "10.0.0.1"]),
            "the server's certificate is not for 127.0.0.1, but for learning.example, 10.0.0.1",
        ),
        (
            authority.issue_as(2, here, |params| params.not_after = date_time_ymd(2024, 2, 1)),
            "the server's certificate has expired: it was valid until 2024-02-01T00:00:00Z",
        ),
        (
            authority.issue_as(3, here, |params| params.not_before = date_time_ymd(3024, 2, 1)),
            "the server's certificate is not valid yet: it will be from 3024-02-01T00:00:00Z",
        ),
        (
            authority.issue_as(4, here, |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }),
            "the server's certificate is not for servers",
        ),
        (
            other.issue(5, here),
            "the server's certificate was issued by none of the CAs that are trusted here",
        ),
        (
            Authority::new("ca").issue(6, here),
            "the server's certificate is signed by a key other than that of the trusted CA of this name",
        ),
    ];
    for (issued, words) in cases {
        issued.write(files.0.path(), "server");
        let server = Running::start(&files).await;
        let remote = Remote::new(&format!("https://{}", server.address)).unwrap();
        let remote = remote.tls(files.client(&authority, None)).unwrap();
        let refused = remote.connect().await.unwrap_err();
        let error = TrustError::within(&refused).map(ToString::to_string);
        assert_eq!(error.as_deref(), Some(words));
        assert_eq!(why(&refused), words);
    }
    let away = Remote::new("https://127.0.0.1:1").unwrap();
    let away = away.tls(files.client(&authority, None)).unwrap();
    let refused = away.connect().await.unwrap_err();
    assert_eq!(TrustError::within(&refused), None, "that is another matter");
    assert!(why(&refused).contains("refused"), "{refused:?}");
}

#[tokio::test]
async fn half_open_handshakes_do_not_hold_up_a_soft_stop() {
    let (authority, files) = (Authority::new("ca"), Files::new());
    files.serve_by(&authority);
    let server = Running::start(&files).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    // The header of a record that never comes.
    half.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
        .await
        .unwrap();
    // A client accepted later has been served, so the handshakes of both are in progress.
    assert!(server.names(files.client(&authority, None)).await.is_some());
    let ended = timeout(Duration::from_secs(8), server.lifecycle.shutdown(SOON)).await;
    assert_eq!(
        ended,
        Ok(Shutdown::Graceful),
        "less than the time that a handshake has"
    );
    drop((silent, half));
}

#[test]
fn an_unusable_file_is_reported_by_name_without_its_content() {
    let (authority, files) = (Authority::new("ca"), Files::new());
    let issued = authority.issue(1, &["localhost"]);
    issued.write(files.0.path(), "server");
    assert_eq!(files.server().check(), Ok(()));
    files.write("server.key", authority.issue(2, &["localhost"]).key);
    let error = files.server().check().unwrap_err().to_string();
    assert!(error.contains("server.pem"), "another certificate's key: {error}");
    files.write("server.key", "secret");
    let error = files.server().check().unwrap_err().to_string();
    assert!(
        error.contains("server.key") && !error.contains("secret"),
        "{error}"
    );
    issued.write(files.0.path(), "server");
    files.write("clients.pem", "");
    let error = files.server().check().unwrap_err().to_string();
    assert!(
        error.contains("clients.pem") && error.contains("no certificate"),
        "{error}"
    );
}
