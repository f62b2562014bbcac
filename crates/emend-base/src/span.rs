//! Spans of distributed traces, only at the edges: a call, an event in transit, an event applied, an update made and
//! applied.
//!
//! They go to OpenTelemetry's global tracer provider, a no-op until a process exports its traces
//! (`telemetry::export_traces`) or an application that embeds a client installs its own. Apart from a call's own, spans
//! are made only under a sampled context; an unsampled one costs no more than checking a flag. Without the feature
//! `traces` there are no spans, and nothing here does anything.
//!
//! A span holds ids, counts and codes, never what people wrote.

use crate::traceparent::Traceparent;

/// Which side of an exchange a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Answers a call.
    Server,
    /// Makes something that others process later.
    Producer,
    /// Processes something that others made.
    Consumer,
}

/// One item of a batch that is processed together.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// The trace context it arrived with, in wire form; may be empty.
    pub traceparent: &'a str,
    /// Its id.
    pub id: &'a str,
}

#[cfg(feature = "traces")]
mod on {
    use std::{
        borrow::Cow,
        fmt,
        sync::atomic::{AtomicBool, Ordering},
        time::SystemTime,
    };

    use opentelemetry::{
        Context, KeyValue, Value,
        global::{self, BoxedSpan},
        trace::{
            Link, Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
            TraceId, TraceState, Tracer as _,
        },
    };

    use super::{Item, Kind, Traceparent};

    /// The instrumentation scope of our spans.
    const SCOPE: &str = "emend";

    /// Whether this process exports spans of calls.
    static EXPORTED: AtomicBool = AtomicBool::new(false);

    /// From now on calls have spans of their own.
    #[cfg(feature = "program")]
    pub(crate) fn exported() {
        EXPORTED.store(true, Ordering::Relaxed);
    }

    /// Whether calls have spans of their own.
    pub fn is_exported() -> bool {
        EXPORTED.load(Ordering::Relaxed)
    }

    /// A span in progress; it ends when dropped.
    pub struct Span(Box<BoxedSpan>);

    impl fmt::Debug for Span {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("Span").field(&self.traceparent()).finish()
        }
    }

    impl From<Kind> for SpanKind {
        fn from(kind: Kind) -> Self {
            match kind {
                Kind::Server => Self::Server,
                Kind::Producer => Self::Producer,
                Kind::Consumer => Self::Consumer,
            }
        }
    }

    fn context_of(traceparent: &Traceparent) -> Option<SpanContext> {
        let flags = TraceFlags::new(u8::from(traceparent.is_sampled()));
        let (trace, parent) = (
            TraceId::from_hex(traceparent.trace_id()).ok()?,
            SpanId::from_hex(traceparent.parent_id()).ok()?,
        );
        Some(SpanContext::new(
            trace,
            parent,
            flags,
            true,
            TraceState::default(),
        ))
    }

    fn traceparent_of(context: &SpanContext) -> Option<Traceparent> {
        let flags = u8::from(context.is_sampled());
        let text = format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
        context.is_valid().then(|| Traceparent::parse(&text))?
    }

    fn begin(
        name: Cow<'static, str>,
        kind: Kind,
        parent: Option<&SpanContext>,
        link: Option<SpanContext>,
        since: Option<SystemTime>,
    ) -> Span {
        let tracer = global::tracer(SCOPE);
        let mut builder = tracer.span_builder(name).with_kind(kind.into());
        if let Some(link) = link {
            builder = builder.with_links(vec![Link::with_context(link)]);
        }
        if let Some(since) = since {
            builder = builder.with_start_time(since);
        }
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.clone()),
            None => Context::new(),
        };
        Span(Box::new(builder.start_with_context(&tracer, &context)))
    }

    impl Span {
        /// The span of a call. Its parent is the context that the call arrived with; without one it starts a trace.
        pub fn of_call(service: &str, method: &str, parent: Option<&Traceparent>) -> Self {
            let parent = parent.and_then(context_of);
            let name = format!("{service}/{method}").into();
            let mut span = begin(name, Kind::Server, parent.as_ref(), None, None);
            span.set("rpc.system", "grpc");
            span.set("rpc.service", service.to_owned());
            span.set("rpc.method", method.to_owned());
            span
        }

        /// A span under `traceparent` if that is sampled, else none.
        pub fn under(name: &'static str, kind: Kind, traceparent: &str) -> Option<Self> {
            Self::since(name, kind, traceparent, None)
        }

        /// The same, for work that began at `since`.
        pub fn since(
            name: &'static str,
            kind: Kind,
            traceparent: &str,
            since: Option<SystemTime>,
        ) -> Option<Self> {
            let parent = sampled(traceparent)?;
            Some(begin(name.into(), kind, Some(&parent), None, since))
        }

        /// One span per item whose context is sampled, each in the item's own trace, for work that began at `since`.
        /// All but the first link to the first, which shows that they were processed together.
        pub fn of_batch<'a>(
            name: &'static str,
            kind: Kind,
            items: impl ExactSizeIterator<Item = Item<'a>>,
            since: Option<SystemTime>,
        ) -> Vec<Option<Self>> {
            let together = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let mut first: Option<SpanContext> = None;
            let begun = items.map(|Item { traceparent, id }| {
                let parent = sampled(traceparent)?;
                let mut span = begin(name.into(), kind, Some(&parent), first.clone(), since);
                first.get_or_insert_with(|| span.0.span_context().clone());
                span.set("messaging.system", "emend");
                span.set("messaging.message.id", id.to_owned());
                span.set("messaging.batch.message_count", together);
                Some(span)
            });
            begun.collect()
        }

        /// Sets an attribute.
        pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
            self.0.set_attribute(KeyValue::new(name, value));
        }

        /// Marks the span as failed. `why` is from a small set, such as a code.
        pub fn fail(&mut self, why: &'static str) {
            self.0.set_status(Status::error(why));
        }

        /// Records an event.
        pub fn event(&mut self, name: &'static str) {
            self.0.add_event(name, Vec::new());
        }

        /// The context for work under this span.
        pub fn traceparent(&self) -> Option<Traceparent> {
            traceparent_of(self.0.span_context())
        }
    }

    fn sampled(traceparent: &str) -> Option<SpanContext> {
        let parsed = Traceparent::parse(traceparent).filter(Traceparent::is_sampled)?;
        context_of(&parsed)
    }

    /// The current time, in the clock of spans.
    pub fn now() -> Option<SystemTime> {
        Some(opentelemetry::time::now())
    }

    /// The context of the application's current span, if any: the parent of its calls.
    pub fn current() -> Option<Traceparent> {
        Context::map_current(|context| traceparent_of(context.span().span_context()))
    }
}

#[cfg(not(feature = "traces"))]
mod off {
    use std::{convert::Infallible, time::SystemTime};

    use super::{Item, Kind, Traceparent};

    /// No span exists.
    #[derive(Debug)]
    pub struct Span(Infallible);

    impl Span {
        /// Always none.
        pub fn under(_name: &'static str, _kind: Kind, _traceparent: &str) -> Option<Self> {
            None
        }

        /// Always none.
        pub fn since(
            _name: &'static str,
            _kind: Kind,
            _traceparent: &str,
            _since: Option<SystemTime>,
        ) -> Option<Self> {
            None
        }

        /// None for every item.
        pub fn of_batch<'a>(
            _name: &'static str,
            _kind: Kind,
            items: impl ExactSizeIterator<Item = Item<'a>>,
            _since: Option<SystemTime>,
        ) -> Vec<Option<Self>> {
            items.map(|_| None).collect()
        }

        /// Never called.
        pub fn set<V>(&mut self, _name: &'static str, _value: V) {
            match self.0 {}
        }

        /// Never called.
        pub fn fail(&mut self, _why: &'static str) {
            match self.0 {}
        }

        /// Never called.
        pub fn event(&mut self, _name: &'static str) {
            match self.0 {}
        }

        /// Never called.
        pub fn traceparent(&self) -> Option<Traceparent> {
            match self.0 {}
        }
    }

    /// Always none.
    pub fn now() -> Option<SystemTime> {
        None
    }

    /// Always none.
    pub fn current() -> Option<Traceparent> {
        None
    }
}

#[cfg(not(feature = "traces"))]
pub use self::off::{Span, current, now};
#[cfg(all(feature = "traces", feature = "program"))]
pub(crate) use self::on::exported;
#[cfg(feature = "traces")]
pub use self::on::{Span, current, is_exported, now};
