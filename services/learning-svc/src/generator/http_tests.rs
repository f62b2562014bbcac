//! A model as served by a local server, which also fails in every way that servers do.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use emend_base::{
    Entropy,
    http_client::{
        model::bearer,
        testing::{Fake, Reply, Server},
    },
};
use emend_core::{
    FeedbackId, Prompt, RatingClass,
    outputs::{Activity, Profile, RatedOutput},
    ratings::RatedTexts,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(19);

fn model(server: &Server, waiting: &Arc<Fake>) -> Model {
    let endpoint = Endpoint {
        url: format!("{}/v1", server.url).parse().unwrap(),
        model: "small-1".into(),
        key: Some(bearer(" secret-key\n").unwrap()),
        timeout: TIMEOUT,
        attempts: 3,
        parameters: r#"{"max_tokens": 400}"#.parse().unwrap(),
    };
    let waiting: Arc<dyn Timer> = Arc::clone(waiting) as _;
    Model::new(&endpoint, waiting, Entropy::seeded(7))
}

fn material() -> Material {
    Material {
        target: "SUMMARIZE_DAILY".into(),
        language: emend_core::Language::En,
        prompt: Prompt::new("Summarise the day.", vec![], vec![]).unwrap(),
        ratings: vec![RatedOutput {
            feedback: FeedbackId(Uuid::nil()),
            class: RatingClass::Bad,
            texts: RatedTexts {
                input: "a long day".into(),
                output: "nothing".into(),
                issues: vec!["says nothing".into()],
                ..RatedTexts::default()
            },
        }],
    }
}

fn activities() -> SuggestionMaterial {
    SuggestionMaterial {
        profile: Profile::default(),
        activities: vec![Activity {
            source_type: "GITHUB".into(),
            source_id: "r1".into(),
            occurred_at: Timestamp::UNIX_EPOCH,
            summary: String::new(),
            technologies: vec!["Rust".into()],
            topics: vec![],
            goals: vec![],
            experience_years: None,
        }],
        include_experience: false,
    }
}

fn says(content: &str) -> Reply {
    Reply::Json(json!({"choices": [{"message": {"role": "assistant", "content": content}}]}))
}

fn ended(reason: &str, content: &str) -> Reply {
    Reply::Json(json!({"choices": [{"message": {"content": content}, "finish_reason": reason}]}))
}

#[tokio::test]
async fn a_model_is_asked_with_its_key_and_answers_a_prompt() {
    let answer =
        "```json\n{\"prompt\": \"Summarise the day in two sentences.\", \"reason\": \"Shorter.\"}\n```";
    let server = Server::start(|_| says(answer)).await;
    let waiting = Arc::new(Fake::new(TIMEOUT, false));
    let improved = model(&server, &waiting).improve(&material()).await.unwrap();
    assert_eq!(improved.text, "Summarise the day in two sentences.");
    assert_eq!(improved.reason, "Shorter.");
    let asked = server.asked();
    let (head, body) = asked[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    assert!(head.contains("authorization: Bearer secret-key"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["model"], "small-1");
    assert_eq!(body["max_tokens"], 400);
    assert_eq!(body["response_format"]["type"], "json_schema");
    assert_eq!(body["messages"][0]["role"], "system");
    let quoted = body["messages"][1]["content"].as_str().unwrap();
    assert!(quoted.contains("Issues:\n```\nsays nothing\n```"), "{quoted}");
}

#[tokio::test]
async fn whatever_an_endpoint_does_is_said() {
    let status = |status, header: &str| Reply::Status(status, header.to_owned(), "");
    // What is answered first, how often, and what comes of it.
    let cases: [(Reply, usize, Result<(), &str>); 26] = [
        (status(429, "retry-after: 7\r\n"), 1, Ok(())),
        (status(503, ""), 2, Ok(())),
        (Reply::Close, 1, Ok(())),
        (Reply::CloseWithin, 1, Ok(())),
        (
            status(429, "retry-after: 999\r\n"),
            1,
            Err("asks to wait 999s; at most 120s are waited"),
        ),
        (
            Reply::Status(
                401,
                String::new(),
                "{\"error\": {\"message\": \"Incorrect API key provided:\\n secret-key.\"}}",
            ),
            1,
            Err(
                "refuses the request: URL/v1/chat/completions: answered 401 Unauthorized: Incorrect API key provided: [key]. (see --generator-key-file and --generator-url)",
            ),
        ),
        (
            Reply::Status(
                404,
                String::new(),
                "{\"error\": \"model \\\"small-1\\\" not found\"}",
            ),
            1,
            Err(
                "refuses the request: URL/v1/chat/completions: answered 404 Not Found: model \"small-1\" not found (see --generator-url and --generator-model)",
            ),
        ),
        (
            Reply::Status(
                400,
                String::new(),
                "{\"detail\": [{\"msg\": \"max_tokens is too large\"}]}",
            ),
            3,
            Err(
                "refuses the request: URL/v1/chat/completions: answered 400 Bad Request: max_tokens is too large (see --generator-model and --generator-parameters)",
            ),
        ),
        // The format alone is what it does not know: asked without, it answers.
        (
            Reply::Status(400, String::new(), "'response_format' is not supported"),
            1,
            Ok(()),
        ),
        (
            Reply::Status(500, String::new(), "<html><h1>Internal Server Error</h1>"),
            3,
            Err("/v1/chat/completions: answered 500 Internal Server Error (attempt 3 of 3)"),
        ),
        (
            Reply::Huge,
            1,
            Err("/v1/chat/completions: answered more than 1 MiB"),
        ),
        (
            Reply::Status(200, String::new(), "\n<!doctype html><html>"),
            1,
            Err("refuses the request: URL/v1/chat/completions: answered "),
        ),
        (
            Reply::Status(200, String::new(), "<html>"),
            1,
            Err("/v1/chat/completions: answered a page for browsers, not JSON (see --generator-url)"),
        ),
        (
            status(307, "location: https://models.example/v1/chat/completions\r\n"),
            1,
            Err(
                "sends on to https://models.example/v1/chat/completions, which is not followed (see --generator-url)",
            ),
        ),
        (
            Reply::Status(200, String::new(), "[1"),
            1,
            Err("answered something else than expected"),
        ),
        // An error in an answer that is otherwise fine.
        (
            Reply::Json(json!({"error": {"message": "No credits left", "code": 402}})),
            1,
            Err("refuses the request: URL/v1/chat/completions: answered "),
        ),
        (
            Reply::Json(json!({"choices": [{"error": {"message": "Overloaded", "code": "529"}}]})),
            1,
            Err("/v1/chat/completions: answered with an error: Overloaded"),
        ),
        (
            Reply::Json(json!({"detail": "no such route"})),
            1,
            Err("answered no choice with a text, but: no such route"),
        ),
        (
            ended("length", "{\"prompt\": \"Summ"),
            1,
            Err("it is cut off at max_tokens 400; raise max_tokens in --generator-parameters"),
        ),
        (
            ended("content_filter", ""),
            1,
            Err("refuses the request: the endpoint's content filter held the answer back"),
        ),
        (
            Reply::Json(json!({"choices": [{"message": {"content": null, "refusal": "I can't\nhelp."}}]})),
            1,
            Err("refuses the request: the model says: I can't help."),
        ),
        (
            says("<think>\n{\"prompt\": \"A draft.\", \"reason\": \"x\"} or"),
            1,
            Err("it is thinking alone: <think> has no end"),
        ),
        (
            Reply::Json(json!({"choices": []})),
            1,
            Err("answered no choice with a text"),
        ),
        (
            says("Sure! Here it is."),
            1,
            Err("not the JSON object asked for: there is none in it"),
        ),
        (says("{\"prompt\": \"x\"}"), 1, Err("missing field `reason`")),
        (
            says("{\"prompt\": \"x\", \"reason\": \"\"}"),
            1,
            Err("its reason is required"),
        ),
    ];
    for (first, times, expected) in cases {
        let answers = AtomicUsize::new(0);
        let reply = first.clone();
        let server = Server::start(move |_| {
            if answers.fetch_add(1, Ordering::Relaxed) < times {
                reply.clone()
            } else {
                says("{\"prompt\": \"Better.\", \"reason\": \"It is.\"}")
            }
        })
        .await;
        let waiting = Arc::new(Fake::new(TIMEOUT, false));
        let improved = model(&server, &waiting).improve(&material()).await;
        match (improved, expected) {
            (Ok(improved), Ok(())) => assert_eq!(improved.text, "Better.", "{first:?}"),
            (Err(error), Err(message)) => {
                let said = error.to_string().replace(&server.url, "URL");
                assert!(said.contains(message), "{first:?}: {said}");
                assert!(!said.contains("secret"), "{said}");
            }
            (answer, _) => panic!("{first:?}: {answer:?}"),
        }
        if let Reply::Status(429, ..) = first
            && expected.is_ok()
        {
            assert_eq!(waiting.waits(), [Duration::from_secs(7)]);
        }
    }
}

#[tokio::test]
async fn what_models_say_around_the_json_is_passed_over() {
    let object = "{\"prompt\": \"Better.\", \"reason\": \"It is {short}.\"}";
    let content = |content: Value| Reply::Json(json!({"choices": [{"message": {"content": content}}]}));
    for answer in [
        says(&format!(
            "Sure, here it is:\n\n```json\n{object}\n```\nAnything else?"
        )),
        says(&format!(
            "<think>A first try: {{\"prompt\": \"Bad.\", \"reason\": \"x\"}} no.</think>\n{object}"
        )),
        says(&format!(
            "The set {{a}} of {{\"unrelated\": 1}} and {object} and {{\"more\": 2}}"
        )),
        content(json!([
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": &object[..9]},
            {"type": "text", "text": &object[9..]},
        ])),
    ] {
        let reply = answer.clone();
        let server = Server::start(move |_| reply.clone()).await;
        let waiting = Arc::new(Fake::new(TIMEOUT, false));
        let improved = model(&server, &waiting).improve(&material()).await.unwrap();
        assert_eq!(improved.text, "Better.", "{answer:?}");
        assert_eq!(improved.reason, "It is {short}.");
    }
}

#[tokio::test]
async fn an_endpoint_that_refused_a_format_is_asked_without_it_from_then_on() {
    let server = Server::start(|_| says("{\"prompt\": \"Better.\", \"reason\": \"It is.\"}")).await;
    let waiting = Arc::new(Fake::new(TIMEOUT, false));
    let with_formats = model(&server, &waiting);
    with_formats.improve(&material()).await.unwrap();
    with_formats.improve(&material()).await.unwrap();
    let asks_for_format = |asked: &String| asked.contains("response_format");
    assert!(server.asked().iter().all(asks_for_format));

    let answers = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        if answers.fetch_add(1, Ordering::Relaxed) == 0 {
            Reply::Status(400, String::new(), "unknown field response_format")
        } else {
            says("{\"prompt\": \"Better.\", \"reason\": \"It is.\"}")
        }
    })
    .await;
    let without_formats = model(&server, &waiting);
    without_formats.improve(&material()).await.unwrap();
    without_formats.improve(&material()).await.unwrap();
    let asked: Vec<bool> = server.asked().iter().map(asks_for_format).collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn one_bad_suggestion_leaves_the_good_ones() {
    let suggestion = |kind: &str, value: Value| {
        json!({"type": kind, "value": value, "reason": "seen twice", "source_type": "GITHUB", "source_id": "r1",
               "confidence": 0.5})
    };
    let answer = json!({"suggestions": [
        suggestion("ADD_TECHNOLOGY", json!("Rust")),
        suggestion("ADD_HOBBY", json!("chess")),
        {"type": "ADD_GOAL"},
        suggestion("ADD_GOAL", json!("Go")),
    ]});
    let server = Server::start(move |_| says(&answer.to_string())).await;
    let waiting = Arc::new(Fake::new(TIMEOUT, false));
    let made = model(&server, &waiting).suggest(&activities()).await.unwrap();
    let entries: Vec<String> = made
        .usable
        .iter()
        .map(|made| format!("{:?}", made.entry))
        .collect();
    assert!(
        entries[0].contains("Rust") && entries[1].contains("Go"),
        "{entries:?}"
    );
    assert_eq!(
        made.unusable,
        [
            "suggestions[1] has the type \"ADD_HOBBY\"",
            "suggestions[2] missing field `value`",
        ]
    );
}

#[tokio::test]
async fn a_slow_endpoint_is_given_up_after_its_attempts() {
    let server = Server::start(|_| Reply::Hang).await;
    let waiting = Arc::new(Fake::new(TIMEOUT, true));
    let error = model(&server, &waiting).improve(&material()).await.unwrap_err();
    assert_eq!(
        error,
        GeneratorError::Unavailable(format!(
            "{}/v1/chat/completions: no answer within 19s (attempt 3 of 3)",
            server.url
        ))
    );
}

#[tokio::test]
async fn suggestions_are_of_given_activities_and_fit_their_types() {
    let suggested = |kind: &str, value: Value, source: &str, confidence: f64| {
        json!({"suggestions": [{
            "type": kind, "value": value, "reason": "seen twice", "source_type": "GITHUB", "source_id": source,
            "confidence": confidence,
        }]})
        .to_string()
    };
    let cases: [(String, Result<u16, &str>); 7] = [
        (suggested("ADD_TECHNOLOGY", json!("Rust"), "r1", 0.75), Ok(750)),
        (
            suggested("ADD_TECHNOLOGY", json!(7), "r1", 0.5),
            Err("a value that is no text"),
        ),
        (
            suggested("ADD_HOBBY", json!("chess"), "r1", 0.5),
            Err("the type \"ADD_HOBBY\""),
        ),
        (
            suggested("UPDATE_EXPERIENCE", json!(7), "r1", 0.5),
            Err("the type \"UPDATE_EXPERIENCE\""),
        ),
        (
            suggested("ADD_GOAL", json!("Go"), "r2", 0.5),
            Err("an activity that was not given"),
        ),
        (
            suggested("ADD_GOAL", json!("Go"), "r1", 1.5),
            Err("the confidence 1.5"),
        ),
        (
            suggested("ADD_GOAL", json!(""), "r1", 0.5),
            Err("suggestions[0] is required"),
        ),
    ];
    for (answer, expected) in cases {
        let content = answer.clone();
        let server = Server::start(move |_| says(&content)).await;
        let waiting = Arc::new(Fake::new(TIMEOUT, false));
        let made = model(&server, &waiting).suggest(&activities()).await;
        match (made, expected) {
            (Ok(made), Ok(confidence)) => assert_eq!(made.usable[0].confidence, confidence),
            (Err(error), Err(message)) => assert!(error.to_string().contains(message), "{error}"),
            (made, _) => panic!("{answer}: {made:?}"),
        }
    }
}

#[tokio::test]
async fn a_run_is_what_the_model_makes_of_the_input() {
    let server = Server::start(|_| says("<think>\nWhat day?\n</think>\n A quiet day.\n")).await;
    let waiting = Arc::new(Fake::new(TIMEOUT, false));
    let made = model(&server, &waiting).run("Summarise.", "the day").await;
    assert_eq!(made, Some(Ok("A quiet day.".into())));
    let server = Server::start(|_| ended("length", "A quiet")).await;
    let cut_off = model(&server, &waiting).run("Summarise.", "the day").await;
    let cut_off = cut_off.unwrap().unwrap_err().to_string();
    assert!(cut_off.contains("cut off at max_tokens 400"), "{cut_off}");
}
