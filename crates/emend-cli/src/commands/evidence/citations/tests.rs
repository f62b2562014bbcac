//! Both sources and a scorer as served by a local server, which also fails in every way that servers do.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use clap::Parser as _;
use emend_base::{
    Entropy,
    http_client::testing::{Fake, Reply, Server},
};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::{Action, Args, Asking, Gathered, Keys, Run, gather};
use crate::failure::{Exit, Failure};

/// How long an attempt may take. No other wait is as long.
const TIMEOUT: Duration = Duration::from_secs(19);

fn arguments(more: &[&str], scholar: &str, alex: &str) -> Run {
    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }
    let mut arguments = vec!["citations", "run", "--page", "p1"];
    arguments.extend(["--semantic-scholar-url", scholar, "--openalex-url", alex]);
    arguments.extend(["--source-timeout", "19s"]);
    if !more.contains(&"--rate") {
        arguments.extend(["--rate", "100"]);
    }
    if !more.contains(&"--title") {
        arguments.extend(["--doi", "10.1000/p"]);
    }
    arguments.extend(more);
    let Action::Run(run) = Program::parse_from(arguments).args.action;
    *run
}

async fn gathered(run: &Run, waiting: &Fake) -> Result<Gathered, Failure> {
    let asking = Asking {
        waiting,
        entropy: Entropy::seeded(1),
        progress: ProgressBar::hidden(),
    };
    let keys = Keys {
        semantic_scholar: Some("secret-one".into()),
        openalex: Some("secret&two".into()),
    };
    gather(run, keys, &asking).await
}

/// Semantic Scholar.
fn scholar(path: &str) -> Reply {
    let paper = |id: &str, title: &str, summary: Value, ids: Value| json!({"paperId": id, "title": title, "abstract": summary, "externalIds": ids});
    Reply::Json(if path.contains("/references") {
        json!({"offset": 0, "data": [
            {"isInfluential": true, "citedPaper": paper("r1", "Old  theory", json!("the old\ntheory"), json!({"DOI": "10.1000/R1", "CorpusId": 5}))},
            {"isInfluential": false, "citedPaper": paper("r2", "Unread", Value::Null, Value::Null)},
            {"citedPaper": {"paperId": null, "title": "Withheld"}},
        ]})
    } else if path.contains("/citations") {
        json!({"data": [
            {"isInfluential": null, "citingPaper": paper("c1", "Critique", json!("against the new theory"), json!({"PubMed": "7", "ArXiv": "2101.00001"}))},
        ]})
    } else if path.contains("/search/match") {
        json!({"data": [paper("p", "On a new theory", json!("a new theory"), json!({"DOI": "10.1000/p"}))]})
    } else {
        paper(
            "p",
            "On a new theory",
            json!("a new theory"),
            json!({"DOI": "10.1000/p"}),
        )
    })
}

/// OpenAlex.
fn alex(path: &str) -> Reply {
    let work = |number: u32, title: &str, doi: Value, index: Value| json!({"id": format!("https://openalex.org/W{number}"), "title": title, "ids": {"doi": doi}, "abstract_inverted_index": index});
    let doi = |id: &str| json!(format!("https://doi.org/{id}"));
    Reply::Json(if path.contains("filter=openalex:") {
        json!({"results": [
            work(3, "Third", Value::Null, json!({"third": [0]})),
            work(2, "Old theory", doi("10.1000/r1"), json!({"theory": [1], "old": [0]})),
        ]})
    } else if path.contains("filter=cites:") {
        json!({"results": [work(1, "On a new theory", doi("10.1000/p"), Value::Null), work(4, "Later", doi("10.1000/l"), Value::Null)]})
    } else {
        let mut paper = work(
            1,
            "On a new theory",
            doi("10.1000/p"),
            json!({"new": [1], "a": [0], "theory": [2]}),
        );
        paper["referenced_works"] = json!(["https://openalex.org/W2", "https://openalex.org/W3", "bad"]);
        if path.contains("search=") {
            json!({"results": [paper]})
        } else {
            paper
        }
    })
}

#[tokio::test]
async fn both_sources_say_what_is_related_and_only_one_what_is_influential() {
    let (one, other) = (Server::start(scholar).await, Server::start(alex).await);
    let run = arguments(&["--references", "2", "--task", "t1"], &one.url, &other.url);
    let Gathered { request, failures } = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap();
    let request = request.unwrap();
    assert_eq!(
        (failures.len(), request.task_id.as_str(), request.keep),
        (0, "t1", 10)
    );
    let related: Vec<_> = request
        .related
        .iter()
        .map(|paper| {
            let page = paper.page.clone().unwrap();
            (
                page.page_id,
                page.title,
                paper.r#abstract.as_str(),
                paper.is_influential,
                paper.cites_the_paper,
            )
        })
        .collect();
    let expected = [
        ("doi:10.1000/r1", "Old theory", "the old theory", true, false),
        ("semanticscholar:r2", "Unread", "", false, false),
        ("pmid:7", "Critique", "against the new theory", false, true),
        ("doi:10.1000/r1", "Old theory", "old theory", false, false),
        ("openalex:W3", "Third", "third", false, false),
        ("doi:10.1000/l", "Later", "", false, true),
    ];
    let expected = expected.map(|(id, title, text, influential, cites)| {
        (id.to_owned(), title.to_owned(), text, influential, cites)
    });
    assert_eq!(related, expected, "without the paper itself");
    assert!(request.related[2].similarity > request.related[0].similarity);
    assert!(request.related[1].similarity.abs() < f64::EPSILON);

    let paths = |server: &Server| -> Vec<String> {
        let asked = server.asked();
        asked
            .iter()
            .map(|request| request.split(' ').nth(1).unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        paths(&one),
        [
            "/graph/v1/paper/DOI:10.1000/p?fields=title,abstract,externalIds,publicationVenue,openAccessPdf",
            "/graph/v1/paper/p/references?fields=title,abstract,externalIds,publicationVenue,openAccessPdf,isInfluential&limit=2",
            "/graph/v1/paper/p/citations?fields=title,abstract,externalIds,publicationVenue,openAccessPdf,isInfluential&limit=20",
        ]
    );
    let fields = "select=id,title,ids,abstract_inverted_index,primary_location";
    assert_eq!(
        paths(&other),
        [
            format!("/works/doi:10.1000/p?{fields},referenced_works&api_key=secret%26two"),
            format!("/works?filter=openalex:W2%7CW3&per_page=2&{fields}&api_key=secret%26two"),
            format!("/works?filter=cites:W1&per_page=20&{fields}&api_key=secret%26two"),
        ]
    );
    let asked = one.asked().remove(0);
    assert!(asked.contains("x-api-key: secret-one\r\n"), "{asked}");
    assert!(
        asked.contains(&format!("host: {}\r\n", &one.url["http://".len()..])),
        "{asked}"
    );
}

#[tokio::test]
async fn a_null_takes_no_list_away_and_deleted_works_are_left_out() {
    let one = Server::start(|_: &str| Reply::Status(404, String::new(), "")).await;
    let other = Server::start(|path: &str| {
        if !path.contains("filter=") {
            return alex(path);
        }
        if path.contains("filter=openalex:") {
            return Reply::Json(json!({"results": null}));
        }
        Reply::Json(json!({"results": [
            {"id": "https://openalex.org/W4285719527", "title": "Deleted Work", "ids": null},
            {"id": "https://openalex.org/W8", "title": " Deleted work ", "ids": {}},
            null,
            {"id": null, "title": "Nameless"},
            {"id": "https://openalex.org/W5", "title": null, "ids": null, "referenced_works": null,
             "abstract_inverted_index": {"read": [0], "lost": null},
             "primary_location": {"landing_page_url": "https://doi.org/10.1000/5",
                                  "source": {"homepage_url": "https://Journal.example.org/home"}}},
            {"id": "https://openalex.org/W6", "title": "Sixth", "ids": {"doi": "https://doi.org/10.1000/6", "pmid": null},
             "primary_location": {"landing_page_url": null, "source": null}},
        ]}))
    })
    .await;
    let run = arguments(&[], &one.url, &other.url);
    let found = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap();
    let related = found.request.unwrap().related;
    let pages: Vec<_> = related
        .iter()
        .map(|paper| {
            let page = paper.page.clone().unwrap();
            (page.page_id, page.domain, &paper.other_page_ids[..])
        })
        .collect();
    let of_sixth = ["openalex:W6".to_owned()];
    assert_eq!(
        pages,
        [
            (
                "openalex:W5".to_owned(),
                "journal.example.org".to_owned(),
                &[][..]
            ),
            ("doi:10.1000/6".to_owned(), String::new(), &of_sixth[..]),
        ]
    );
}

/// What a case expects of the failing source.
enum Expected {
    /// It answers after these waits, among those for the rate.
    After(&'static [u64]),
    /// It fails, and this is said.
    Fails(&'static str),
}

#[tokio::test]
async fn whatever_a_source_does_is_said_and_the_other_one_counts() {
    let status = |status, header: &str| Reply::Status(status, header.to_owned(), "");
    let cases = [
        // What is answered first, how often, and what comes of it.
        (
            Reply::Hang,
            99,
            Expected::Fails("no answer within 19s (attempt 4 of 4)"),
        ),
        (status(429, "retry-after: 7\r\n"), 2, Expected::After(&[7, 7])),
        (
            status(429, "retry-after: Thu, 01 Jan 2026 00:00:31 GMT\r\n"),
            1,
            Expected::After(&[31]),
        ),
        (
            status(429, ""),
            99,
            Expected::Fails("answered 429 Too Many Requests (attempt 4 of 4)"),
        ),
        (
            status(503, "retry-after: 3600\r\n"),
            1,
            Expected::Fails("and asks to wait 3600s; at most 120s are waited"),
        ),
        (status(500, ""), 1, Expected::After(&[])),
        (
            status(500, ""),
            99,
            Expected::Fails("answered 500 Internal Server Error (attempt 4 of 4)"),
        ),
        (Reply::Close, 2, Expected::After(&[])),
        (
            Reply::Close,
            99,
            Expected::Fails("the connection ended before an answer"),
        ),
        (
            Reply::CloseWithin,
            99,
            Expected::Fails("the connection ended within the answer"),
        ),
        (Reply::Huge, 1, Expected::Fails("answered more than 5 MiB")),
        (
            Reply::Status(200, String::new(), "<html>"),
            1,
            Expected::Fails("answered a page for browsers, not JSON"),
        ),
        (
            Reply::Json(json!([])),
            1,
            Expected::Fails("answered something else than expected"),
        ),
        (status(404, ""), 1, Expected::Fails("knows no paper with this id")),
        (status(403, ""), 1, Expected::Fails("answered 403 Forbidden")),
        (
            status(301, "location: /graph/v1/paper/moved\r\n"),
            1,
            Expected::After(&[]),
        ),
        (
            status(302, "location: http://elsewhere.example/x?y\r\n"),
            1,
            Expected::Fails("sends on to another host, elsewhere.example, which is not followed"),
        ),
        (
            status(302, "location: //elsewhere.example/x\r\n"),
            1,
            Expected::Fails("to another host"),
        ),
        (
            status(302, "location: /again\r\n"),
            99,
            Expected::Fails("sends on more than 3 times"),
        ),
    ];
    let other = Server::start(alex).await;
    for (reply, times, expected) in cases {
        let case = format!("{reply:?} {times} times");
        let is_slow = matches!(reply, Reply::Hang);
        let asked = AtomicUsize::new(0);
        let one = Server::start(move |path: &str| {
            if asked.fetch_add(1, Ordering::Relaxed) < times {
                reply.clone()
            } else {
                scholar(path)
            }
        })
        .await;
        let waiting = Fake::new(TIMEOUT, is_slow);
        let run = arguments(&[], &one.url, &other.url);
        // Where time is up at once, the other source has none either.
        let found = gathered(&run, &waiting).await;
        if is_slow {
            let failure = found.unwrap_err();
            assert_eq!(failure.exit(), Exit::Unavailable, "{case}");
            let Expected::Fails(what) = expected else {
                unreachable!("it fails")
            };
            assert!(
                failure.to_string().contains(&format!("Semantic Scholar: {what}")),
                "{failure}"
            );
            continue;
        }
        let found = found.unwrap();
        // To the whole second: the time that the rate takes has passed meanwhile.
        let rounded = |wait: &Duration| (*wait + Duration::from_millis(500)).as_secs();
        let waits: Vec<u64> = waiting.waits().iter().map(rounded).collect();
        let said: Vec<String> = found.failures.iter().map(ToString::to_string).collect();
        let related = found.request.unwrap().related.len();
        match expected {
            Expected::After(expected) => {
                assert_eq!((said, related), (Vec::<String>::new(), 6), "{case}");
                let asked: Vec<u64> = waits.into_iter().filter(|wait| *wait > 5).collect();
                assert_eq!(asked, expected, "{case}");
            }
            Expected::Fails(what) => {
                assert_eq!(said.len(), 1, "{case}: {said:?}");
                assert!(
                    said[0].starts_with("Semantic Scholar: ") && said[0].contains(what),
                    "{case}: {said:?}"
                );
                assert!(!said[0].contains("secret"), "{said:?}");
                assert_eq!(related, 3, "{case}: what the other one says");
            }
        }
    }
}

#[tokio::test]
async fn what_one_question_fails_at_does_not_take_the_rest() {
    let one = Server::start(|path: &str| {
        if path.contains("/references") {
            Reply::Status(400, String::new(), "")
        } else {
            scholar(path)
        }
    })
    .await;
    let other = Server::start(|_: &str| Reply::Status(404, String::new(), "")).await;
    let run = arguments(&[], &one.url, &other.url);
    let found = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap();
    let said: Vec<String> = found.failures.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "Semantic Scholar: references: answered 400 Bad Request",
            "OpenAlex: knows no paper with this id"
        ]
    );
    assert_eq!(found.request.unwrap().related.len(), 1);
}

#[tokio::test]
async fn where_nothing_is_left_the_exit_code_says_whether_later_helps() {
    for (status, other_status, exit) in [
        (404, 404, Exit::NotFound),
        (404, 503, Exit::Unavailable),
        (403, 404, Exit::Failed),
    ] {
        let one = Server::start(move |_: &str| Reply::Status(status, String::new(), "")).await;
        let other = Server::start(move |_: &str| Reply::Status(other_status, String::new(), "")).await;
        let run = arguments(&["--attempts", "1"], &one.url, &other.url);
        let failure = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap_err();
        assert_eq!(failure.exit(), exit, "{failure}");
        let text = failure.to_string();
        assert!(
            text.contains("Semantic Scholar: ") && text.contains("OpenAlex: "),
            "{text}"
        );
        assert!(text.contains("Nothing was written"), "{text}");
    }
    // A paper that is known, and has no relations, is an answer.
    let one = Server::start(|path: &str| match scholar(path) {
        Reply::Json(_) if path.contains("/references") || path.contains("/citations") => {
            Reply::Json(json!({"data": null}))
        }
        reply => reply,
    })
    .await;
    let other = Server::start(|_: &str| Reply::Status(404, String::new(), "")).await;
    let run = arguments(&[], &one.url, &other.url);
    let found = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap();
    assert!(found.request.is_none() && found.failures.len() == 1);
}

#[tokio::test]
async fn requests_to_a_source_are_spread_over_time() {
    let (one, other) = (Server::start(scholar).await, Server::start(alex).await);
    let run = arguments(&["--rate", "0.5"], &one.url, &other.url);
    let waiting = Fake::new(TIMEOUT, false);
    gathered(&run, &waiting).await.unwrap();
    let all: Duration = waiting.waits().iter().sum();
    // Three requests to each; the clock is shared, so that a wait for one source is one for the other too.
    assert!(all >= Duration::from_secs(4), "{:?}", waiting.waits());
    assert!(waiting.waits().iter().all(|wait| *wait <= Duration::from_secs(2)));
}

#[tokio::test]
async fn a_paper_is_found_by_its_title_and_not_by_a_similar_one() {
    let (one, other) = (Server::start(scholar).await, Server::start(alex).await);
    let run = arguments(&["--title", "on a NEW theory."], &one.url, &other.url);
    let found = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap();
    assert_eq!(
        (found.failures.len(), found.request.unwrap().related.len()),
        (0, 6)
    );
    assert!(one.asked()[0].contains("/search/match?query=on%20a%20NEW%20theory.&fields="));
    assert!(other.asked()[0].contains("/works?search=on%20a%20NEW%20theory.&per_page=5&"));

    let run = arguments(&["--title", "On a theory"], &one.url, &other.url);
    let failure = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap_err();
    assert_eq!(failure.exit(), Exit::NotFound);
    let text = failure.to_string();
    assert!(
        text.contains("knows no paper with this title; the nearest is \"On a new theory\""),
        "{text}"
    );
}

#[tokio::test]
async fn a_service_scores_the_texts_and_what_it_may_not_answer_is_refused() {
    let (one, other) = (Server::start(scholar).await, Server::start(alex).await);
    let answering =
        |scores: Value| Server::start(move |_: &str| Reply::Json(json!({"scores": scores.clone()})));
    let scorer = answering(json!([0.5, 1.0, 0.25, 0])).await;
    let url = format!("{}/v1/scores", scorer.url);
    let task = ["--scorer", &url, "--task-text", "does it hold?"];
    let found = gathered(
        &arguments(&task, &one.url, &other.url),
        &Fake::new(TIMEOUT, false),
    )
    .await
    .unwrap();
    let related = found.request.unwrap().related;
    let similarity: Vec<f64> = related.iter().map(|paper| paper.similarity).collect();
    assert_eq!(similarity, [0.5, 0.0, 1.0, 0.25, 0.0, 0.0]);
    let asked = scorer.asked();
    assert!(asked[0].starts_with("POST /v1/scores HTTP/1.1"), "{}", asked[0]);
    let body: Value = serde_json::from_str(asked[1].split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["query"], "does it hold?");
    assert_eq!(body["texts"][2], "Old theory\nold theory");
    assert!(!asked[0].contains("secret"), "{}", asked[0]);

    for (answer, what) in [
        (json!([0.5]), "the scorer: gave 1 scores for 4 texts"),
        (json!([0.5, 1.5, 0, 0]), "the scorer: gave a score of 1.5"),
        (json!([0, -0.1, 0, 0]), "the scorer: gave a score of -0.1"),
        (json!([0, null, 0, 0]), "the scorer: answered something else"),
    ] {
        let scorer = answering(answer).await;
        let run = arguments(&["--scorer", &scorer.url], &one.url, &other.url);
        let failure = gathered(&run, &Fake::new(TIMEOUT, false)).await.unwrap_err();
        assert!(failure.to_string().contains(what), "{failure}");
        assert_eq!(failure.exit(), Exit::Failed);
    }
}

#[test]
fn a_key_is_read_from_a_file_and_never_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, "abc\n").unwrap();
    assert_eq!(super::key(Some(&file), "NONE").unwrap().unwrap(), "abc");
    std::fs::write(&file, "two words").unwrap();
    let refused = super::key(Some(&file), "NONE").unwrap_err().to_string();
    assert!(
        refused.contains("must hold one key") && !refused.contains("words"),
        "{refused}"
    );
    assert_eq!(super::key(None, "NO_SUCH_VARIABLE_IS_SET").unwrap(), None);
}

#[test]
fn an_address_must_be_one_of_http() {
    for good in [
        "http://127.0.0.1:9",
        "https://mirror.example/openalex/",
        "https://[::1]/x",
    ] {
        assert!(super::base(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "mirror.example",
        "ftp://x",
        "https://x?key=1",
        "https://me@x",
        "https://",
    ] {
        assert!(super::base(bad).is_err(), "{bad}");
    }
}
