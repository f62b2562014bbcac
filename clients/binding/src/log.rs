//! What this library logs, for the logging of the language: records wait in a bounded queue until a thread of the language
//! takes them, so that no thread in the background ever waits for the language.

use std::{
    fmt::{self, Write as _},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

/// How many records wait at most.
const ROOM: usize = 1_000;

static QUEUE: OnceLock<Mutex<Receiver<Record>>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: &'static str,
    /// The part of the library.
    pub target: String,
    /// The message, and behind it the fields: `reconnecting retry_in=3s`.
    pub message: String,
}

/// Begins to collect records of this level and above. Once for a process; later calls change nothing.
pub fn collect(least: Level) {
    QUEUE.get_or_init(|| {
        let (sender, receiver) = sync_channel(ROOM);
        let subscriber = tracing_subscriber::registry().with(Collecting { sender, least });
        // Fails if a program that embeds this has a subscriber already: then that one has the records.
        let _ = tracing::subscriber::set_global_default(subscriber);
        Mutex::new(receiver)
    });
}

/// Waits so long for the next record; `None`: there is none. Blocks its thread.
pub fn next(within: Duration) -> Option<Record> {
    let queue = QUEUE.get()?.lock().ok()?;
    let lost = LOST.swap(0, Ordering::Relaxed);
    if lost > 0 {
        return Some(Record {
            level: Level::WARN.as_str(),
            target: "emend".to_owned(),
            message: format!("{lost} records were lost: they came faster than they were taken"),
        });
    }
    queue.recv_timeout(within).ok()
}

struct Collecting {
    sender: SyncSender<Record>,
    least: Level,
}

impl<S: Subscriber> Layer<S> for Collecting {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.least && metadata.target().starts_with("emend")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let record = Record {
            level: event.metadata().level().as_str(),
            target: event
                .metadata()
                .target()
                .replace("::", ".")
                .replace("emend_", "emend."),
            message: text.message + &text.fields,
        };
        if self.sender.try_send(record).is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
