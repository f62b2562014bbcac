//! Citations, fetched from a local server that speaks the formats of both sources.

use std::process::Stdio;

use emend_proto::learning::v1::{
    EvidencePage, ListEdgesRequest, UpsertEvidenceRequest, evidence_service_client::EvidenceServiceClient,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::Command,
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use tonic::transport::Channel;

use crate::harness::{TIMEOUT, Up, command};

/// Serves Semantic Scholar below /s2 and OpenAlex below /oa. Nothing else is answered, and each path that was asked for is sent.
async fn sources() -> (String, mpsc::UnboundedReceiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (asked, paths) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap_or(0) > 0 {}
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            if let Some(answer) = answer(&path) {
                let body = answer.to_string();
                let length = body.len();
                let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                stream
                    .write_all(text.as_bytes())
                    .await
                    .expect("the command reads");
            } else {
                open.push(stream);
            }
            let _ = asked.send(path);
        }
    });
    (address, paths, tasks)
}

fn answer(path: &str) -> Option<Value> {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        "/s2/graph/v1/paper/DOI:10.1000/p" => {
            Some(json!({"paperId": "p", "title": "On a new theory", "abstract": "a new theory"}))
        }
        "/s2/graph/v1/paper/p/references" => Some(json!({"data": [
            {"isInfluential": true, "citedPaper": {
                "paperId": "r", "title": "Old theory", "abstract": "an old theory",
                "externalIds": {"DOI": "10.1000/r"},
            }},
            {"isInfluential": false, "citedPaper": {"paperId": "u", "title": "Unread"}},
        ]})),
        "/s2/graph/v1/paper/p/citations" => Some(json!({"data": []})),
        "/oa/works/doi:10.1000/p" => Some(json!({
            "id": "https://openalex.org/W1", "title": "On a new theory", "ids": {"doi": "https://doi.org/10.1000/p"},
            "referenced_works": [],
        })),
        "/oa/works" => Some(json!({"results": [{
            "id": "https://openalex.org/W2", "title": "Old theory", "ids": {"doi": "https://doi.org/10.1000/r"},
            "abstract_inverted_index": {"theory": [0]},
        }]})),
        _ => None,
    }
}

async fn client(up: &Up) -> EvidenceServiceClient<Channel> {
    EvidenceServiceClient::connect(format!("http://{}", up.learning))
        .await
        .expect("learning-svc answers")
}

async fn edges(up: &Up) -> Vec<(String, String)> {
    let request = ListEdgesRequest {
        namespace: "default".into(),
        ..ListEdgesRequest::default()
    };
    let answer = client(up)
        .await
        .list_edges(request)
        .await
        .expect("edges")
        .into_inner();
    answer
        .edges
        .into_iter()
        .map(|edge| (format!("{:?}", edge.source), format!("{:?}", edge.target)))
        .collect()
}

#[tokio::test]
async fn the_best_related_papers_become_pages_and_whoever_stops_it_leaves_nothing() {
    let up = Up::ephemeral().await;
    let (address, mut paths, _tasks) = sources().await;
    let (scholar, alex) = (format!("{address}/s2"), format!("{address}/oa/"));
    let run = |page: &'static str, doi: &'static str| {
        let words = [
            "evidence",
            "citations",
            "run",
            "--page",
            page,
            "--doi",
            doi,
            "--rate",
            "100",
            "--json",
            "--semantic-scholar-url",
            scholar.as_str(),
            "--openalex-url",
            alex.as_str(),
        ];
        words.to_vec()
    };
    let unknown = up.run(&run("p1", "10.1000/p")).await;
    assert_eq!(unknown.code, 3, "{unknown:#?}");

    let page = EvidencePage {
        page_id: "p1".into(),
        url: "https://doi.org/10.1000/p".into(),
        ..EvidencePage::default()
    };
    let request = UpsertEvidenceRequest {
        namespace: "default".into(),
        pages: vec![page],
        ..UpsertEvidenceRequest::default()
    };
    client(&up).await.upsert_evidence(request).await.unwrap();

    // A source that does not answer, and Ctrl-C.
    while paths.try_recv().is_ok() {}
    let args = up.args(&run("p1", "10.1000/away"));
    let child = command()
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    paths.recv().await.unwrap();
    let id = child.id().unwrap();
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -INT {id}")])
        .status();
    assert!(sent.await.unwrap().success());
    let stopped = timeout(TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(stopped.status.code(), Some(1));
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert!(said.contains("stopped; nothing was written"), "{said}");
    assert_eq!(edges(&up).await, []);

    let ranked = up.run(&run("p1", "10.1000/p")).await.ok().json();
    assert_eq!(ranked["ranked"][0]["pageId"], "doi:10.1000/r");
    assert_eq!(ranked["ranked"][0]["title"], "Old theory");
    assert_eq!(ranked["toBeFetched"], json!(["semanticscholar:u"]));
    assert_eq!((&ranked["merged"], &ranked["failures"]), (&json!(1), &json!([])));
    let written = edges(&up).await;
    assert_eq!(
        written.len(),
        2,
        "OpenAlex says that it also cites the paper: {written:?}"
    );
    assert_eq!(up.run(&run("p1", "10.1000/p")).await.ok().json(), ranked);
    assert_eq!(edges(&up).await, written);
}
