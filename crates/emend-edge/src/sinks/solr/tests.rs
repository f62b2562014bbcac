use std::sync::{Arc, Mutex};

use emend_base::http_client::testing::{Reply, Server};
use percent_encoding::percent_decode_str;

use super::*;
use crate::sinks::{
    config::TargetConfig,
    content::Seen,
    testing::{entries, sink, wanted},
};

const SET: &str = "/c/schema/analysis/synonyms/own";

/// A Solr with one managed set.
#[derive(Default)]
struct Fake {
    set: Entries,
    /// What it answers by, since the last reload.
    loaded: Entries,
    /// How many more changes it takes; none: all.
    takes: Option<usize>,
}

impl Fake {
    fn answer(&mut self, request: &str) -> Reply {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let mut line = head.split(' ');
        let (method, path) = (line.next().unwrap(), line.next().unwrap());
        if matches!(method, "PUT" | "DELETE") {
            if self.takes == Some(0) {
                return Reply::Status(403, String::new(), r#"{"error": {"msg": "read only"}}"#);
            }
            self.takes = self.takes.map(|left| left - 1);
        }
        match (method, path.strip_prefix(SET)) {
            ("GET", Some(_)) => Reply::Json(json!({"synonymMappings": {"managedMap": self.set}})),
            ("PUT", Some(_)) => {
                let added: Entries = serde_json::from_str(body).unwrap();
                for (term, all) in added {
                    self.set.entry(term).or_default().extend(all);
                }
                Reply::Json(json!({}))
            }
            ("DELETE", Some(term)) => {
                let term = percent_decode_str(&term[1..]).decode_utf8().unwrap();
                match self.set.remove(&*term) {
                    Some(_) => Reply::Json(json!({})),
                    None => Reply::Status(404, String::new(), "{}"),
                }
            }
            _ => {
                assert!(path.contains("action=RELOAD"), "{path}");
                self.loaded = self.set.clone();
                Reply::Json(json!({}))
            }
        }
    }
}

/// A sink of a core or a collection of a Solr.
fn solr_of(server: &Server, place: &str) -> Solr {
    let settings = format!(
        "kind = \"solr\"\naddress = \"{}\"\n{place}\nset = \"own\"\nfield = \"t\"",
        server.url
    );
    let TargetConfig::Solr(config) = sink(&settings).1 else {
        panic!("{settings}");
    };
    Solr::new(config)
}

#[tokio::test]
async fn a_set_has_rather_too_much_than_too_little_wherever_solr_refuses_a_step() {
    let engine = Arc::new(Mutex::new(Fake::default()));
    let shared = engine.clone();
    let server = Server::answering(move |request| shared.lock().unwrap().answer(request)).await;
    let mut solr = solr_of(&server, "core = \"c\"");
    let before = wanted(
        &[
            ("notebook", &["laptop", "pc"]),
            ("tcp/ip", &["net"]),
            ("tv", &["television"]),
        ],
        1,
    );
    // One is gone, one means less, one is new.
    let after = wanted(
        &[
            ("notebook", &["laptop"]),
            ("slate", &["tablet"]),
            ("tv", &["television"]),
        ],
        2,
    );
    solr.write(&before).await.unwrap();
    assert_eq!(solr.read(&before).await, Ok(Seen::Intact(before.stamp())));
    let loaded = engine.lock().unwrap().loaded.clone();
    let mut refused = 0;
    for takes in 0.. {
        engine.lock().unwrap().takes = Some(takes);
        let written = solr.write(&after).await;
        let mut fake = engine.lock().unwrap();
        if written.is_ok() {
            break;
        }
        refused += 1;
        let error = written.unwrap_err();
        assert!(
            error.words.contains("read only") && error.words.contains("right"),
            "{error}"
        );
        assert_eq!(fake.loaded, loaded, "it is not loaded");
        assert_eq!(
            fake.set.get("tv"),
            Some(&entries(&[("tv", &["television"])])["tv"])
        );
        let has = |term: &str| fake.set.contains_key(term);
        assert!(
            has("slate") || (has("notebook") && has("tcp/ip")),
            "nothing goes before what is new is there: {:?}",
            fake.set
        );
        // The next one begins with what it finds.
        fake.set = synonyms::with_probe(before.synonyms(), &before.stamp());
    }
    assert!(refused > 4, "{refused}");
    assert_eq!(solr.read(&after).await, Ok(Seen::Intact(after.stamp())));
    let fake = engine.lock().unwrap();
    assert_eq!(fake.loaded, fake.set);
}

#[tokio::test]
async fn a_node_of_a_cloud_without_the_collection_is_named_as_such() {
    let other = json!({"status": {"c": {}, "d_shard1_replica_n1": {"cloud": {"collection": "d"}}}});
    let server = Server::answering(move |_| Reply::Json(other.clone())).await;
    let mut solr = solr_of(&server, "collection = \"c\"");
    let refused = solr.read(&wanted(&[], 1)).await.unwrap_err();
    assert!(
        refused.words.contains("no replica of the collection \"c\"")
            && refused.words.contains("load balancer"),
        "{refused}"
    );
}

#[tokio::test]
async fn all_steps_go_to_one_core_of_a_collection_and_the_collection_is_reloaded() {
    let of = |collection: &str| json!({"cloud": {"collection": collection}});
    let cores = json!({"status": {"a": of("others"), "c": of("products"), "d": of("products")}});
    let engine = Mutex::new(Fake::default());
    let server = Server::answering(move |request| {
        if request.starts_with("GET /admin/cores?action=STATUS&") {
            return Reply::Json(cores.clone());
        }
        engine.lock().unwrap().answer(request)
    })
    .await;
    let mut solr = solr_of(&server, "collection = \"products\"");
    let before = wanted(&[("notebook", &["laptop"]), ("tv", &["television"])], 1);
    let after = wanted(&[("tv", &["television", "telly"])], 2);
    for wanted in [&before, &after] {
        solr.write(wanted).await.unwrap();
        assert_eq!(solr.read(wanted).await, Ok(Seen::Intact(wanted.stamp())));
    }
    let asked = server.asked();
    let count = |of: &str| asked.iter().filter(|asked| asked.contains(of)).count();
    assert!(count(" /c/schema/") > 4, "{asked:?}");
    assert_eq!(count(" /c/schema/"), count("/schema/"), "{asked:?}");
    assert_eq!(count("GET /admin/collections?action=RELOAD&name=products&"), 2);
}
