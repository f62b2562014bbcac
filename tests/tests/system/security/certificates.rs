//! Certificates that expire after seconds, or are revoked, while their streams are open: at learning-svc as the
//! installed program.

use std::{fs, net::SocketAddr, time::Duration};

use emend_base::{
    SystemClock,
    tls::{
        ClientTls, Remote,
        testing::{Authority, Issued, date_time_ymd},
    },
};
use emend_proto::learning::v1::{SubscribeResponse, subscription_service_client::SubscriptionServiceClient};
use emend_tests::harness::{
    eventually,
    http::until_counted,
    process::{Process, free_port},
    within,
};
use tempfile::TempDir;
use tonic::{Code, Status, Streaming, transport::Channel};

use super::{
    jwt::{end_of, reason},
    messages::subscription,
};

/// How long the short certificate is valid: long enough to begin a stream with it.
const BRIEF: i64 = 6;

struct Certified {
    directory: TempDir,
    authority: Authority,
    address: String,
}

impl Certified {
    fn at(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// A client with a certificate of the principal of this name, whose files get that name too.
    fn client(&self, name: &str, issued: &Issued) -> SubscriptionServiceClient<Channel> {
        issued.write(self.directory.path(), name);
        let tls = ClientTls::default()
            .ca(self.at("ca.pem"))
            .identity(self.at(&format!("{name}.pem")), self.at(&format!("{name}.key")));
        let remote = Remote::new(&format!("https://{}", self.address)).unwrap();
        SubscriptionServiceClient::new(remote.tls(tls).unwrap().connect_lazy())
    }

    /// Opens a stream and reads its first message.
    async fn subscribe(
        client: &SubscriptionServiceClient<Channel>,
    ) -> Result<Streaming<SubscribeResponse>, Status> {
        let mut stream = client.clone().subscribe(subscription(&[])).await?.into_inner();
        stream.message().await?;
        Ok(stream)
    }
}

/// Waits until the client's next handshake is refused, and the log says why.
async fn is_locked_out(client: &SubscriptionServiceClient<Channel>, process: &Process, why: &str) {
    eventually("no connection is accepted", || async {
        if Certified::subscribe(client).await.is_ok() {
            return Err("a stream began".to_owned());
        }
        let refused = |line: &str| {
            let says = line.contains("certificate is refused") && line.to_lowercase().contains(why);
            says.then_some(())
        };
        process.logged(refused).ok_or_else(|| process.output())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_certificate_whether_that_expires_or_is_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("ca");
    authority
        .issue(1, &["127.0.0.1"])
        .write(directory.path(), "server");
    let operators = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    let here = Certified {
        address: format!("127.0.0.1:{}", free_port().await),
        directory,
        authority,
    };
    let write = |name: &str, content: &str| fs::write(here.directory.path().join(name), content).unwrap();
    write("ca.pem", &here.authority.pem());
    write("revoked.pem", &here.authority.revoked(&[]));
    let principals = ["brief", "good", "lost"].map(|name| {
        format!(
            "[[principals]]\nname = \"{name}\"\ncertificates = [\"{name}.example\"]\n\
             grants = [{{ roles = [\"subscriber\"], namespaces = \"*\" }}]\n"
        )
    });
    write("auth.toml", &principals.concat());
    let arguments = [
        format!("--listen={}", here.address),
        format!("--metrics-addr={operators}"),
        format!("--data-dir={}", here.at("data")),
        format!("--auth-config={}", here.at("auth.toml")),
        format!("--tls-cert={}", here.at("server.pem")),
        format!("--tls-key={}", here.at("server.key")),
        format!("--tls-client-ca={}", here.at("ca.pem")),
        format!("--tls-client-crl={}", here.at("revoked.pem")),
    ];
    let mut process = Process::start("learning-svc", &arguments).await;
    process
        .says("that it is ready", |line| line.contains("ready").then_some(()))
        .await;

    let time = |second: i64| date_time_ymd(1970, 1, 1) + Duration::from_secs(second.try_into().unwrap());
    let end = SystemClock::shared().now().as_second() + BRIEF;
    let brief = here
        .authority
        .issue_as(2, &["brief.example"], |params| params.not_after = time(end));
    let brief = here.client("brief", &brief);
    let mut expires = Certified::subscribe(&brief).await.unwrap();
    let far = date_time_ymd(2090, 1, 1).unix_timestamp();
    let good = here
        .authority
        .issue_as(3, &["good.example"], |params| params.not_after = time(far));
    let mut goes_on = Certified::subscribe(&here.client("good", &good)).await.unwrap();
    let lost = here
        .authority
        .issue_as(4, &["lost.example"], |params| params.not_after = time(far));
    let withdrawn = here.client("lost", &lost);
    let mut revokes = Certified::subscribe(&withdrawn).await.unwrap();

    let series = |principal: &str| {
        format!(
            "emend_client_certificate_not_after_timestamp_seconds{{service=\"learning-svc\",principal=\"{principal}\"}}"
        )
    };
    until_counted(operators, &series("good"), u32::try_from(far).unwrap()).await;
    until_counted(operators, &series("brief"), u32::try_from(end).unwrap()).await;

    let ended = end_of(&mut expires).await;
    assert_eq!(reason(&ended), (Code::Unauthenticated, "CERTIFICATE_EXPIRED"));
    assert!(
        SystemClock::shared().now().as_second() >= end,
        "not before its time"
    );
    is_locked_out(&brief, &process, "expired").await;

    write("revoked.pem", &here.authority.revoked(&[&lost]));
    let ended = end_of(&mut revokes).await;
    assert_eq!(reason(&ended), (Code::Unauthenticated, "CERTIFICATE_REVOKED"));
    is_locked_out(&withdrawn, &process, "revoked").await;

    // Others were not disturbed.
    let next = tokio::time::timeout(Duration::from_millis(100), goes_on.message()).await;
    assert!(!matches!(next, Ok(Err(_) | Ok(None))), "{next:?}");
    process.terminate().await;
    within("it ends", process.ended()).await;
}
