//! Traces: one trace from the backend's call to the node that applies the update, through both processes and the
//! outbox.

use emend_proto::feedback::v1::SubmitFeedbackRequest;
use emend_tests::harness::{
    Feedback, alias, eventually, http::Scraped, otlp::Seen, says, wait::holds, waterfall,
};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tonic::Request;

use super::pair::Traced;

/// The backend's span.
const BACKEND: &str = "00f067aa0ba902b7";

/// The picture of a trace in the documentation.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/images/trace.svg");

/// The name of the call's span.
const CALL: &str = "emend.feedback.v1.FeedbackService/SubmitFeedback";

fn trace(number: u8) -> String {
    format!("4bf92f3577b34da6a3ce929d0e0e47{number:02x}")
}

async fn submit(feedback: &Feedback, request: SubmitFeedbackRequest, trace: &str, flags: &str) {
    let mut request = Request::new(request);
    let traceparent = format!("00-{trace}-{BACKEND}-{flags}");
    request
        .metadata_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    feedback.service.clone().submit_feedback(request).await.unwrap();
}

/// The span with this service and name; the error lists all spans.
fn one<'a>(spans: &'a [Seen], service: &str, name: &str) -> Result<&'a Seen, String> {
    let mut found = spans
        .iter()
        .filter(|seen| seen.service == service && seen.span.name == name);
    let all: Vec<_> = spans
        .iter()
        .map(|seen| (&*seen.service, &*seen.span.name))
        .collect();
    found
        .next()
        .ok_or_else(|| format!("no span {name} of {service} among {all:?}"))
}

/// Waits until a trace is complete: from the call to the node that applied its effect.
async fn whole(traced: &Traced, id: &str) -> Vec<Seen> {
    eventually("the trace is whole", || async {
        let spans = traced.receiver.trace(id);
        one(&spans, "emend", "apply update")?;
        one(&spans, "learning-svc", "publish update")?;
        one(&spans, "learning-svc", "apply feedback")?;
        one(&spans, "feedback-svc", "deliver feedback")?;
        one(&spans, "feedback-svc", CALL)?;
        Ok(spans)
    })
    .await
}

/// Spans of libraries, and log lines as events of spans, would be a flood.
fn expect_nothing_else(spans: &[Seen]) {
    for seen in spans {
        let known = [
            CALL,
            "deliver feedback",
            "apply feedback",
            "publish update",
            "apply update",
        ];
        assert!(known.contains(&&*seen.span.name), "{seen:?}");
        let events: Vec<_> = seen.span.events.iter().map(|event| &*event.name).collect();
        let promoted = seen.span.name == "apply feedback";
        assert_eq!(
            events,
            if promoted { vec!["promoted"] } else { vec![] },
            "{seen:?}"
        );
        for attribute in &seen.span.attributes {
            let documented = ["rpc.", "messaging.", "emend."];
            let documented = documented.iter().any(|prefix| attribute.key.starts_with(prefix));
            assert!(documented, "{} of {seen:?}", attribute.key);
        }
    }
}

/// The documentation shows a trace as it is. With `EMEND_UPDATE_DOCS` its picture is drawn anew, of these spans.
fn expect_shown(spans: &[Seen]) {
    let picture = waterfall::draw("One correction, from SubmitFeedback to a search node", spans);
    if std::env::var_os("EMEND_UPDATE_DOCS").is_some() {
        std::fs::write(PICTURE, &picture).unwrap();
    }
    let shown = std::fs::read_to_string(PICTURE).unwrap();
    let sorted = |picture| {
        let mut labels: Vec<_> = waterfall::labels(picture)
            .into_iter()
            .map(str::to_owned)
            .collect();
        labels.sort();
        labels
    };
    assert_eq!(sorted(&*shown), sorted(&*picture), "EMEND_UPDATE_DOCS=1 draws it");
}

fn expect_joined(spans: &[Seen]) {
    let of = |service: &str, name: &str| one(spans, service, name).unwrap_or_else(|error| panic!("{error}"));
    let call = of("feedback-svc", CALL);
    let (delivered, applied) = (
        of("feedback-svc", "deliver feedback"),
        of("learning-svc", "apply feedback"),
    );
    let (published, effect) = (of("learning-svc", "publish update"), of("emend", "apply update"));
    assert_eq!(call.parent(), BACKEND);
    assert_eq!(
        delivered.parent(),
        call.id(),
        "what is stored is the context of the call's span"
    );
    assert_eq!(applied.parent(), call.id());
    assert_eq!(
        published.parent(),
        applied.id(),
        "what was changed was changed under that"
    );
    assert_eq!(effect.parent(), applied.id());
    for (seen, kind) in [
        (call, SpanKind::Server),
        (delivered, SpanKind::Producer),
        (applied, SpanKind::Consumer),
        (published, SpanKind::Producer),
        (effect, SpanKind::Consumer),
    ] {
        assert_eq!(seen.span.kind(), kind, "{seen:?}");
        assert!(!seen.failed(), "{seen:?}");
    }
    for (name, value) in [
        ("rpc.system", "grpc"),
        ("rpc.service", "emend.feedback.v1.FeedbackService"),
        ("rpc.method", "SubmitFeedback"),
        ("rpc.grpc.status_code", "0"),
    ] {
        assert_eq!(call.attribute(name).as_deref(), Some(value));
    }
    assert_eq!(
        applied.attribute("emend.outcome").as_deref(),
        Some("OUTCOME_STATE_APPLIED")
    );
    assert_eq!(
        applied.attribute("emend.revision"),
        effect.attribute("emend.revision"),
        "the node applied what was promoted"
    );
    assert_eq!(
        applied.attribute("messaging.message.id"),
        delivered.attribute("messaging.message.id")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_trace_covers_submission_to_node_even_after_an_outage() {
    let Some(mut traced) = Traced::start().await else {
        return;
    };
    let feedback = Feedback::at(traced.feedback_address);
    traced
        .node
        .says("that it has a snapshot", |line| {
            line.starts_with("snapshot").then_some(())
        })
        .await;
    // The picture is to show what a correction takes when it is not the first of all.
    for warming in ["a", "b", "c", "d", "e"] {
        submit(
            &feedback,
            says("jane", alias(warming, "jane-doe")),
            &trace(9),
            "00",
        )
        .await;
    }
    submit(&feedback, says("jane", alias("jd", "jane-doe")), &trace(1), "01").await;
    let spans = whole(&traced, &trace(1)).await;
    expect_joined(&spans);
    expect_shown(&spans);

    // Without learning-svc they wait in the outbox, from which they are delivered together.
    traced.stop_learning().await;
    submit(&feedback, says("jane", alias("gs", "goldman")), &trace(2), "01").await;
    submit(&feedback, says("jane", alias("ms", "morgan")), &trace(3), "01").await;
    submit(&feedback, says("jane", alias("db", "deutsche")), &trace(4), "00").await;
    traced.start_learning().await;
    for number in [2, 3] {
        expect_joined(&whole(&traced, &trace(number)).await);
    }
    let delivered = |number| {
        let spans = traced.receiver.trace(&trace(number));
        let seen = one(&spans, "feedback-svc", "deliver feedback").unwrap();
        (seen.attribute("messaging.batch.message_count"), seen.links())
    };
    let (first, second) = (delivered(2), delivered(3));
    assert_eq!(first, (Some("3".into()), Vec::new()), "the first of its batch");
    assert_eq!(
        second,
        (Some("3".into()), vec![trace(2)]),
        "it shared the batch with the first"
    );

    // What the backend does not trace is not traced anywhere, nor is anything it did not cause, such as streams.
    feedback
        .delivered(emend_tests::harness::NAMESPACE, &newest(&feedback).await)
        .await;
    let others: Vec<_> = traced.receiver.spans();
    let known: Vec<_> = (1..=3).map(trace).collect();
    for seen in &others {
        assert!(known.contains(&seen.trace()), "{seen:?}");
    }
    expect_nothing_else(&others);

    // The node reports how long which traces took; the log has each request id with its trace.
    eventually("an exemplar names a trace", || async {
        let scraped = Scraped::from(traced.admin[1]).await;
        let found = scraped.0.lines().any(|line| {
            line.starts_with("emend_time_to_effect_seconds_bucket")
                && line.contains("trace_id=\"4bf92f3577b34da6")
        });
        holds(found, || scraped.0.clone())
    })
    .await;
    let logged = traced.feedback.logged(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        (line["span"]["trace_id"] == trace(1).as_str() && line["span"]["span_id"].as_str()?.len() == 16)
            .then_some(())
    });
    assert!(logged.is_some(), "{}", traced.feedback.output());
}

async fn newest(feedback: &Feedback) -> String {
    let all = feedback
        .list(feedback.list_request(emend_tests::harness::NAMESPACE))
        .await;
    all[0].feedback_id.clone()
}
