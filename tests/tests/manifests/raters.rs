//! The component `rating-http`: pods that take ratings from browsers, started as the manifests say.

use std::{collections::BTreeMap, net::SocketAddr};

use emend_tests::harness::{Database, Feedback, eventually, process::Process};
use serde_json::Value;

use crate::{
    objects::{Objects, Workload, list, render, render_own, text},
    pod::Pod,
    running::{RATING_KEY, ask, ends_well, get, is_true, secrets},
    secured::patches_with,
};

/// The variable with the addresses of raters.
pub(super) const BINDING: &str = "EMEND_RATING_HTTP";

/// What the manifest says of the addresses of raters, but at another address.
pub(super) fn bound_to(workload: &Workload, address: SocketAddr) -> String {
    let environment = workload.environment();
    let (_, of) = environment[BINDING].split_once('=').expect("a binding");
    format!("{address}={of}")
}

/// The workload that takes ratings.
fn rated(objects: &Objects) -> Workload {
    let mut workloads = objects.workloads();
    workloads.retain(|workload| workload.ports().contains_key("http-ratings"));
    assert_eq!(workloads.len(), 1, "learning-svc takes none");
    workloads.remove(0)
}

/// The address in the message of the log that begins so.
async fn address_in(process: &Process, message: &str) -> SocketAddr {
    eventually(message, || async {
        let told = process.logged(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let address = line.get("address")?.as_str()?.parse().ok()?;
            text(&line, "/message").starts_with(message).then_some(address)
        });
        told.ok_or_else(|| process.output())
    })
    .await
}

/// Rates from a page of this origin; answers with the status.
async fn rate(raters: SocketAddr, origin: &str) -> String {
    let headers = format!("Origin: {origin}\r\n");
    let body = r#"{"query_id": "q-1", "rating": -1}"#;
    let answer = ask(raters, "POST /v1/feedback", &headers, body)
        .await
        .expect("an answer");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_take_ratings_of_one_namespace_from_the_pages_that_the_manifest_names() {
    for (overlay, components) in [
        ("dev", &["rating-http"][..]),
        ("prod", &["rating-http", "open-network", "first-start"]),
    ] {
        let Some(objects) = render(overlay, components) else {
            return;
        };
        let workload = rated(&objects);
        let mut brought = BTreeMap::from([(("emend-rating-key", "key"), RATING_KEY.to_owned())]);
        let database = if overlay == "prod" {
            Database::postgres().await
        } else {
            None
        };
        match &database {
            Some(database) => brought.extend(secrets(database)),
            None if overlay == "prod" => return,
            None => {}
        }
        let Some(pod) = Pod::make(&objects, &workload, &brought).await else {
            return;
        };
        is_true(&objects, &pod).await;
        let binding = bound_to(&workload, "127.0.0.1:0".parse().unwrap());
        let process = pod.start(&[
            ("EMEND_FEEDBACK_ADDR", "127.0.0.1:0"),
            ("EMEND_FEEDBACK_LISTEN", "127.0.0.1:0"),
            // Of prod there is none, and ratings need none.
            (
                "EMEND_LEARNING_ADDR",
                if overlay == "dev" {
                    "127.0.0.1:0"
                } else {
                    "127.0.0.1:1"
                },
            ),
            (BINDING, &binding),
        ]);
        let raters = address_in(&process, "ratings are taken over HTTP").await;
        for path in served_by_ingress(&objects) {
            let served = get(raters, &path).await.unwrap();
            assert!(!served.starts_with("HTTP/1.1 404"), "{path}: {served}");
        }
        let page = workload.environment()["EMEND_RATING_ORIGINS"].clone();
        assert_eq!(rate(raters, &page).await, "201");
        assert_eq!(rate(raters, "https://elsewhere.example").await, "403");

        let (_, of) = binding.split_once('=').unwrap();
        let (namespace, caller) = of.split_once('/').unwrap();
        let feedback = Feedback::at(address_in(&process, "feedback-svc is ready").await);
        let stored = feedback.list(feedback.list_request(namespace)).await;
        let stored: Vec<(&str, &str)> = stored.iter().map(|one| (&*one.caller, &*one.query_id)).collect();
        assert_eq!(stored, [(caller, "q-1")]);
        ends_well(process).await;
    }
}

/// The paths that the Ingress hands on.
fn served_by_ingress(objects: &Objects) -> Vec<String> {
    let ingress = objects.named("Ingress", "emend-ratings").expect("an Ingress");
    let paths = list(ingress, "/spec/rules/0/http/paths");
    paths.iter().map(|path| text(path, "/path")).collect()
}

#[test]
fn an_overlay_says_what_is_rated_and_where_as_the_page_shows() {
    let page = patches_with(BINDING);
    let Some(objects) = render_own("prod", &["open-network", "rating-http"], page) else {
        return;
    };
    let environment = rated(&objects).environment();
    for variable in [BINDING, "EMEND_RATING_ORIGINS", "EMEND_RATING_TRUSTED_PROXIES"] {
        let value = &environment[variable];
        assert!(
            page.contains(&format!("name: {variable}, value: \"{value}\"")),
            "{variable}={value}"
        );
    }
    assert!(environment.contains_key("EMEND_RATING_KEY_FILE"));
    let ingress = objects.named("Ingress", "emend-ratings").expect("an Ingress");
    let hosts = ["/spec/tls/0/hosts/0", "/spec/rules/0/host"].map(|host| text(ingress, host));
    assert_eq!(hosts, ["ratings.you.example", "ratings.you.example"]);
}

#[tokio::test]
async fn raters_are_not_served_beyond_loopback_where_nobody_said_who_may_connect() {
    let Some(objects) = render("prod", &["rating-http"]) else {
        return;
    };
    let nowhere = "postgres://emend@127.0.0.1:1/emend".to_owned();
    let brought = BTreeMap::from([
        (("emend-database", "feedback-url"), nowhere),
        (("emend-rating-key", "key"), RATING_KEY.to_owned()),
    ]);
    let Some(pod) = Pod::make(&objects, &rated(&objects), &brought).await else {
        return;
    };
    let (code, _, printed) = pod.run(&["--check-config"], &[]).await;
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("--rating-http: refusing to listen on 0.0.0.0:7403"),
        "{printed}"
    );
}
