//! Spans of distributed traces, only at the edges: a call, an event in transit, an event applied, an update made and
//! applied.
//!
//! They are spans of `tracing` with the target [`TARGET`], which the layer of `tracing-opentelemetry` exports. A program
//! that exports its traces (`telemetry`) has that layer, and so has an application that embeds a client, if it wants them.
//! Without the layer nobody asks for the target, and a span costs no more than the check of its call site. Apart from a
//! call's own, spans are made only under a sampled context.
//!
//! A span holds ids, counts and codes, never what people wrote.

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::traceparent::Traceparent;

/// The target of every span that is exported, and of nothing else. They have the level INFO.
pub const TARGET: &str = "emend::trace";

/// Whether anybody records these spans: to be asked before their contexts are looked for.
pub fn is_recorded() -> bool {
    tracing::span_enabled!(target: TARGET, Level::INFO)
}

/// Puts a new span into that trace. It must not have been asked for its context yet.
pub fn set_parent(span: &Span, traceparent: &Traceparent) {
    if !span.is_disabled()
        && let Some(parent) = remote_context(traceparent)
    {
        // Fails only where no layer exports the span.
        let _ = span.set_parent(parent);
    }
}

/// The context for work under this span; `None` if nobody exports it.
pub fn traceparent_of(span: &Span) -> Option<Traceparent> {
    if span.is_disabled() {
        return None;
    }
    to_traceparent(span.context().span().span_context())
}

/// The context of the application's current span, if any: the parent of its calls.
pub fn current() -> Option<Traceparent> {
    Context::map_current(|context| to_traceparent(context.span().span_context()))
}

/// Links all spans but the first to the first, which shows that they were processed together.
pub fn link_batch<'a>(spans: impl IntoIterator<Item = &'a Span>) {
    let mut spans = spans.into_iter().filter(|span| !span.is_disabled());
    let Some(first) = spans.next() else { return };
    let first = first.context().span().span_context().clone();
    for span in spans {
        span.add_link(first.clone());
    }
}

/// A span of something that may yet fail to happen. It is exported only if it is [confirmed](Pending::confirm).
#[derive(Debug)]
#[must_use]
pub struct Pending {
    span: Span,
    traceparent: Traceparent,
}

impl Pending {
    /// A span that will belong to that trace. It must be new.
    pub fn new(span: Span, traceparent: Traceparent) -> Self {
        // A span is made for OpenTelemetry when it ends, or is asked for its context; under this one it never is.
        let _ = span.set_parent(Context::new().with_telemetry_suppressed());
        Self { span, traceparent }
    }

    /// Puts the span into its trace. It ends when it is dropped.
    pub fn confirm(self) -> Span {
        set_parent(&self.span, &self.traceparent);
        self.span
    }
}

fn remote_context(traceparent: &Traceparent) -> Option<Context> {
    let (trace, parent) = (
        TraceId::from_hex(traceparent.trace_id()).ok()?,
        SpanId::from_hex(traceparent.parent_id()).ok()?,
    );
    let flags = TraceFlags::new(u8::from(traceparent.is_sampled()));
    let context = SpanContext::new(trace, parent, flags, true, TraceState::default());
    Some(Context::new().with_remote_span_context(context))
}

fn to_traceparent(context: &SpanContext) -> Option<Traceparent> {
    let flags = u8::from(context.is_sampled());
    let text = || format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
    context.is_valid().then(|| Traceparent::parse(&text()))?
}
