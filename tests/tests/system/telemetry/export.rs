//! Exporting traces does no harm: the last spans are sent when a process ends, and a receiver that does not answer
//! holds up neither calls nor shutdown.

use emend_tests::harness::{
    Feedback, alias, deployment::Up, otlp::Receiver, process::Process, rpc::answered, says,
};
use tokio::net::TcpListener;
use tonic::Request;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// `emend up` that exports to `endpoint`, of its own accord only once an hour.
async fn up(endpoint: &str) -> Up {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_off"),
    ];
    Up::start_under(&variables, &["--ephemeral"]).await
}

async fn submit_traced(up: &Up) {
    let mut request = Request::new(says("jane", alias("jd", "jane-doe")));
    let traceparent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    request
        .metadata_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    answered(Feedback::at(up.feedback).service.submit_feedback(request).await);
}

async fn end(process: &mut Process) {
    process.terminate().await;
    assert!(process.ended().await.success(), "{}", process.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_spans_are_sent_when_a_process_ends() {
    let receiver = Receiver::start().await;
    let mut up = up(&receiver.endpoint()).await;
    submit_traced(&up).await;
    end(&mut up.process).await;
    let spans = receiver.trace(TRACE);
    let call = spans
        .iter()
        .find(|seen| seen.span.name == "emend.feedback.v1.FeedbackService/SubmitFeedback");
    assert!(call.is_some_and(|call| call.service == "emend"), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_receiver_that_does_not_answer_delays_nothing() {
    // The system accepts connections, and nothing more ever happens on them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut up = up(&format!("http://{}", silent.local_addr().unwrap())).await;
    for _ in 0..10 {
        submit_traced(&up).await;
    }
    end(&mut up.process).await;
    let logged = up
        .process
        .logged(|line| line.contains("some spans were not exported").then_some(()));
    assert!(logged.is_some(), "{}", up.process.output());
}
