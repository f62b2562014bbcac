use std::sync::{Arc, Mutex};

use emend_base::{
    ManualClock, SharedClock, SystemClock,
    http_client::testing::{Reply, Server},
};

use super::*;
use crate::sinks::{
    config::TargetConfig,
    error::Problem,
    keeper::{Keeper, Standing, Step},
    metrics::SinkMetrics,
    testing::{sink, wanted},
};

/// What OpenSearch 2.19 answers where it can build no synonyms of rules.
const NO_SYNONYMS: &str = r#"{"error": {"root_cause": [{"type": "illegal_argument_exception", "reason": "Failed to build synonyms"}], "type": "illegal_argument_exception", "reason": "Failed to build synonyms"}, "status": 400}"#;

/// Answers a request whose rules these are; `None`: as an engine that takes them.
type Reading = Box<dyn Fn(&[String]) -> Option<Reply> + Send>;

/// An OpenSearch with one index.
struct Fake {
    rules: Vec<String>,
    is_closed: bool,
    was_closed: usize,
    reading: Reading,
    /// It answers as if it had other synonyms than it has.
    is_stale: bool,
    /// With what it answers a change of settings, if not as it should.
    changing: Option<Reply>,
}

fn status(status: u16, body: &'static str) -> Reply {
    Reply::Status(status, String::new(), body)
}

impl Fake {
    fn answer(&mut self, request: &str) -> Reply {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let mut line = head.split(' ');
        let (method, path) = (line.next().unwrap(), line.next().unwrap());
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let strings = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
        match (method, path.split('?').next().unwrap()) {
            ("GET", "/products/_settings") => {
                Reply::Json(json!({"products": {"settings": {"index": {"analysis": {
                    "filter": {"own": {"type": "synonym_graph", "synonyms": self.rules}},
                    "analyzer": {"own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "own"]}},
                }}}}}))
            }
            ("POST", "/products/_analyze") => {
                let rules = strings(&body["filter"][1]["synonyms"]);
                (self.reading)(&rules).unwrap_or_else(|| Reply::Json(json!({"tokens": []})))
            }
            ("POST", "/products/_close") => {
                (self.is_closed, self.was_closed) = (true, self.was_closed + 1);
                Reply::Json(json!({}))
            }
            ("PUT", "/products/_settings") => {
                assert!(self.is_closed);
                if let Some(reply) = self.changing.clone() {
                    return reply;
                }
                self.rules = strings(&body["index.analysis.filter.own.synonyms"]);
                Reply::Json(json!({}))
            }
            ("POST", "/products/_open") => {
                (self.is_closed, self.is_stale) = (false, false);
                Reply::Json(json!({}))
            }
            ("POST", "/products/_validate/query") => {
                let probe = self.rules.iter().find(|rule| rule.starts_with(PROBE));
                let probe = probe.filter(|_| !self.is_stale);
                Reply::Json(json!({"explanations": [{"explanation": probe.map_or(PROBE, |rule| rule)}]}))
            }
            ("POST", "/products/_search") => Reply::Json(json!({"_shards": {"failed": 0}})),
            _ => status(404, "{}"),
        }
    }
}

/// A sink into such an engine.
struct Kept {
    engine: Arc<Mutex<Fake>>,
    keeper: Keeper<OpenSearch>,
    _server: Server,
    _directory: tempfile::TempDir,
}

impl Kept {
    async fn start() -> Self {
        Self::with("always", SystemClock::shared()).await
    }

    /// One that may close its index in this window.
    async fn with(window: &str, clock: SharedClock) -> Self {
        let engine = Arc::new(Mutex::new(Fake {
            rules: Vec::new(),
            is_closed: false,
            was_closed: 0,
            reading: Box::new(|_| None),
            is_stale: false,
            changing: None,
        }));
        let shared = engine.clone();
        let server = Server::answering(move |request| shared.lock().unwrap().answer(request)).await;
        let (common, target) = sink(&format!(
            "kind = \"opensearch\"\naddress = \"{}\"\nindex = \"products\"\nfilter = \"own\"\nfield = \"title\"\n\
             window = \"{window}\"\npace = 0",
            server.url
        ));
        let TargetConfig::OpenSearch(config) = target else {
            panic!("{target:?}");
        };
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("opensearch:cards.note");
        Self {
            engine,
            keeper: Keeper::new(OpenSearch::new(config, Some(note)), &common, clock),
            _server: server,
            _directory: directory,
        }
    }

    async fn step(&mut self, terms: &[(&str, &[&str])], revision: i64) -> Result<Step, SinkError> {
        let standing = Standing {
            is_confirmed: false,
            is_connected: true,
        };
        let gauges = SinkMetrics::default().of("opensearch:cards");
        self.keeper.step(wanted(terms, revision), standing, &gauges).await
    }

    fn engine(&self) -> std::sync::MutexGuard<'_, Fake> {
        self.engine.lock().unwrap()
    }
}

const TERMS: [(&str, &[&str]); 3] = [
    ("notebook", &["laptop"]),
    ("slate", &["tablet"]),
    ("till", &["until"]),
];

#[tokio::test]
async fn what_is_no_word_on_a_rule_refuses_none_and_leaves_the_engine_as_it_is() {
    let no_filter = r#"{"error": {"reason": "Token filter [word_delimiter] cannot be used to parse synonyms"}, "status": 400}"#;
    for (answer, problem, named) in [
        (status(401, "{}"), Problem::Refused, "password_file"),
        (
            status(
                403,
                r#"{"error": {"reason": "no permissions for [indices:admin/analyze]"}}"#,
            ),
            Problem::Refused,
            "lacks the right",
        ),
        (status(404, "{}"), Problem::Refused, "see address"),
        (status(408, "{}"), Problem::Away, "408"),
        (status(409, "{}"), Problem::Refused, "409"),
        (status(413, ""), Problem::Refused, "larger requests"),
        (status(429, "{}"), Problem::Away, "429"),
        (status(503, "{}"), Problem::Away, "503"),
        (status(400, no_filter), Problem::Refused, "word_delimiter"),
        (status(400, "no such host"), Problem::Refused, "no such host"),
        // Not even the rule of the probe is taken.
        (status(400, NO_SYNONYMS), Problem::Refused, "no synonyms at all"),
    ] {
        let mut kept = Kept::start().await;
        let begun = kept.step(&TERMS[..1], 1).await;
        assert!(matches!(begun, Ok(Step::InForce(_))), "{begun:?}");
        let before = kept.engine().rules.clone();
        let reply = answer.clone();
        kept.engine().reading = Box::new(move |_| Some(reply.clone()));
        let failed = kept.step(&TERMS, 2).await.unwrap_err();
        assert_eq!(failed.problem, problem, "{failed}");
        assert!(failed.words.contains(named), "{failed}");
        assert_eq!(kept.engine().rules, before, "{failed}");
        assert_eq!(kept.engine().was_closed, 1, "{failed}");
        kept.engine().reading = Box::new(|_| None);
        let mended = kept.step(&TERMS, 2).await.unwrap();
        assert!(matches!(mended, Step::InForce(refused) if refused.is_empty()));
    }
}

#[tokio::test]
async fn what_the_engine_builds_no_synonyms_of_is_refused_and_the_others_are_written() {
    let mut kept = Kept::start().await;
    let reading = |rules: &[String]| {
        let is_refused = rules.iter().any(|rule| rule.contains("until"));
        is_refused.then(|| status(400, NO_SYNONYMS))
    };
    kept.engine().reading = Box::new(reading);
    let Step::InForce(refused) = kept.step(&TERMS, 1).await.unwrap() else {
        panic!("it is written");
    };
    // The term and what else is searched for are of one resource, or of two: here only the term has one.
    assert!(refused.is_empty(), "{refused:?}");
    let rules = kept.engine().rules.clone();
    assert_eq!(rules.len(), 3, "with the probe's: {rules:?}");
    assert!(!rules.concat().contains("until"), "{rules:?}");
}

#[tokio::test]
async fn rules_that_are_too_many_for_one_request_are_sent_in_several() {
    let mut kept = Kept::start().await;
    kept.engine().reading = Box::new(|rules| (rules.len() > 1).then(|| status(413, "")));
    let written = kept.step(&TERMS, 1).await.unwrap();
    assert!(matches!(written, Step::InForce(refused) if refused.is_empty()));
    assert_eq!(kept.engine().rules.len(), 4);
}

#[tokio::test]
async fn an_index_that_refuses_its_settings_is_opened_as_it_was() {
    let mut kept = Kept::start().await;
    kept.step(&TERMS[..1], 1).await.unwrap();
    let before = kept.engine().rules.clone();
    kept.engine().changing = Some(Reply::Status(429, "retry-after: 90\r\n".into(), "{}"));
    let failed = kept.step(&TERMS, 2).await.unwrap_err();
    assert_eq!(
        (failed.problem, failed.after),
        (Problem::Away, Some(Duration::from_secs(90)))
    );
    assert!(!kept.engine().is_closed);
    assert_eq!(kept.engine().rules, before);
    kept.engine().changing = None;
    let written = kept.step(&TERMS, 2).await;
    assert!(matches!(written, Ok(Step::InForce(_))), "{written:?}");
}

#[tokio::test]
async fn an_index_is_never_closed_outside_its_window() {
    let at = |time: &str| time.parse::<Timestamp>().unwrap();
    let clock = ManualClock::new(at("2026-03-01T00:30:00Z"));
    let mut kept = Kept::with("02:00-04:00", clock.shared()).await;
    for (time, closed, terms, wait) in [
        ("2026-03-01T00:30:00Z", 0, 1, Some(90 * 60)),
        ("2026-03-01T01:59:59Z", 0, 1, Some(1)),
        ("2026-03-01T02:00:00Z", 1, 1, None),
        ("2026-03-01T03:59:59Z", 2, 2, None),
        ("2026-03-01T04:00:00Z", 2, 3, Some(22 * 3_600)),
        ("2026-03-01T23:59:59Z", 2, 3, Some(2 * 3_600 + 1)),
        ("2026-03-02T02:00:00Z", 3, 3, None),
    ] {
        clock.set(at(time));
        let stepped = kept.step(&TERMS[..terms], 1).await;
        match (&stepped, wait) {
            (Ok(Step::InForce(_)), None) => {}
            (Ok(Step::Later(found)), Some(wait)) => assert_eq!(*found, Duration::from_secs(wait), "{time}"),
            _ => panic!("{time}: {stepped:?}"),
        }
        assert_eq!(kept.engine().was_closed, closed, "{time}");
    }
    // Neither to have loaded what is there already, nor to put right what somebody changed.
    clock.set(at("2026-03-02T05:00:00Z"));
    kept.engine().is_stale = true;
    assert!(matches!(kept.step(&TERMS, 2).await, Ok(Step::Later(_))));
    kept.engine().is_stale = false;
    kept.engine().rules.push("by hand => mine".into());
    assert!(matches!(kept.step(&TERMS, 3).await, Ok(Step::Later(_))));
    assert_eq!(kept.engine().was_closed, 3);
    clock.set(at("2026-03-03T02:00:00Z"));
    assert!(matches!(kept.step(&TERMS, 3).await, Ok(Step::InForce(_))));
    assert_eq!(kept.engine().was_closed, 4);
    assert!(!kept.engine().rules.contains(&"by hand => mine".to_owned()));
}
