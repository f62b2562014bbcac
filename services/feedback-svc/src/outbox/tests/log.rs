//! What is logged while a test runs.

use std::cell::RefCell;

thread_local! {
    static LOGGED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines logged at warn or above, per thread. It is the subscriber of the whole process: with one per thread,
/// an event first logged by another thread would be cached as wanted by nobody.
pub(super) struct Log;

impl Log {
    pub(super) fn begin() {
        // Another test may have set it.
        let _ = tracing::subscriber::set_global_default(Self);
    }

    pub(super) fn lines() -> Vec<String> {
        LOGGED.take()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = vec![event.metadata().level().to_string()];
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                words.push(format!("{field}={value:?}"));
            },
        );
        LOGGED.with_borrow_mut(|lines| lines.push(words.join(" ")));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
