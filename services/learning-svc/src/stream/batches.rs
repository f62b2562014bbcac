//! Encoded batches, made once for all streams that get the same: equal filter, equal bound, equal cursor.
//!
//! Whoever needs a batch first encodes it, the others wait for it in place; that takes at most milliseconds, because only
//! what is bounded by [`SHARED_BYTES`] is shared. Longer updates and snapshots are cut part by part
//! ([`transfer`](super::transfer)), each part shared while somebody still sends it. It must know nothing of subscribers.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use emend_core::Epoch;
use emend_runtime::span::{self, Kind, Span};

use super::{
    encode::{self, Encoded},
    filter::Filter,
    state::{Entry, ReplicaState},
};

/// No batch that is kept whole is longer, and all that an audience keeps together is hardly longer.
pub const SHARED_BYTES: usize = 4 * 1024 * 1024;
/// How many batches an audience keeps: streams with different cursors are few, because each batch brings them together.
const KEPT: usize = 16;

/// What brings a stream from one revision to another.
#[derive(Debug)]
pub enum Batch {
    /// Nothing that the filter covers changed.
    Nothing,
    /// These messages, in their order.
    Parts(Vec<Encoded>),
    /// More than is kept whole.
    Long,
}

/// A part of a snapshot.
#[derive(Debug)]
pub struct Chunk {
    /// The message.
    pub message: Encoded,
    /// The last entry in it, if more follow.
    pub next: Option<Arc<Entry>>,
}

/// Made by whoever needs it first; the others wait for it in place.
type BatchCell = Arc<OnceLock<Arc<Batch>>>;
type ChunkCell = OnceLock<Option<Chunk>>;

/// The life of the log, from where, to where.
type BatchKey = (Epoch, i64, i64);
/// The life of the log, the revision, and after which entry: its address tells it apart from all others for as long as the
/// state that holds it lives.
type ChunkKey = (Epoch, i64, Option<usize>);

/// What was encoded for one audience lately.
#[derive(Debug, Default)]
pub struct Batches {
    recent: Mutex<VecDeque<(BatchKey, BatchCell)>>,
    chunks: Mutex<Vec<(ChunkKey, Weak<ChunkCell>)>>,
    encoded: AtomicU64,
}

impl Batches {
    /// What brings a stream from `from` to `state`.
    pub fn batch(&self, state: &ReplicaState, filter: &Filter, from: i64, max_bytes: usize) -> Arc<Batch> {
        let cell = self.batch_cell((state.epoch(), from, state.revision()));
        Arc::clone(cell.get_or_init(|| {
            self.encoded.fetch_add(1, Ordering::Relaxed);
            Arc::new(encode_batch(state, filter, from, max_bytes))
        }))
    }

    fn batch_cell(&self, key: BatchKey) -> BatchCell {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = recent.iter().rev().find(|(known, _)| *known == key) {
            return Arc::clone(cell);
        }
        let cell = BatchCell::default();
        recent.push_back((key, Arc::clone(&cell)));
        trim(&mut recent);
        cell
    }

    /// The part of a snapshot of `state` after that entry. Held until the next is asked for, so that streams side by side
    /// share it.
    pub fn chunk(
        &self,
        state: &ReplicaState,
        filter: &Filter,
        after: Option<&Arc<Entry>>,
        max_bytes: usize,
    ) -> Arc<OnceLock<Option<Chunk>>> {
        let after_address = after.map(|entry| Arc::as_ptr(entry).addr());
        let cell = self.chunk_cell((state.epoch(), state.revision(), after_address));
        cell.get_or_init(|| {
            self.encoded.fetch_add(1, Ordering::Relaxed);
            encode::snapshot_chunk(state, filter, after, max_bytes)
                .map(|(message, next)| Chunk { message, next })
        });
        cell
    }

    fn chunk_cell(&self, key: ChunkKey) -> Arc<ChunkCell> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.retain(|(_, cell)| cell.strong_count() > 0);
        let known = chunks.iter().find(|(known, _)| *known == key);
        if let Some(cell) = known.and_then(|(_, cell)| cell.upgrade()) {
            return cell;
        }
        let cell = Arc::<ChunkCell>::default();
        chunks.push((key, Arc::downgrade(&cell)));
        cell
    }

    /// How often something was encoded.
    pub fn encoded(&self) -> u64 {
        self.encoded.load(Ordering::Relaxed)
    }
}

/// Spans of an update at most: so what is encoded once costs little more where all of it is traced.
const TRACED: usize = 32;
/// How many changes are looked at for their traces.
const LOOKED_AT: usize = 256;

/// A span for each trace in which something changed that a batch brings, while it is made.
fn spans(state: &ReplicaState, filter: &Filter, from: i64) -> Vec<Span> {
    let (mut spans, mut seen, mut looked_at) = (Vec::new(), BTreeSet::new(), 0);
    if !span::is_exported() {
        return spans;
    }
    state.changes_since(filter, from, None, |entry| {
        looked_at += 1;
        if seen.insert(entry.traceparent.clone())
            && let Some(mut span) = Span::under("publish update", Kind::Producer, &entry.traceparent)
        {
            span.set("messaging.system", "emend");
            span.set("emend.revision", state.revision());
            spans.push(span);
        }
        if spans.len() >= TRACED || looked_at >= LOOKED_AT {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    spans
}

fn encode_batch(state: &ReplicaState, filter: &Filter, from: i64, max_bytes: usize) -> Batch {
    // They end when it is encoded.
    let _spans = spans(state, filter, from);
    let (mut parts, mut bytes, mut after) = (Vec::new(), 0, None);
    loop {
        let Some((part, next)) = encode::update_part(state, filter, from, after.as_ref(), max_bytes) else {
            return Batch::Nothing;
        };
        bytes += part.wire_len();
        parts.push(part);
        after = next;
        if after.is_none() {
            return Batch::Parts(parts);
        }
        if bytes > SHARED_BYTES {
            return Batch::Long;
        }
    }
}

fn trim(recent: &mut VecDeque<(BatchKey, BatchCell)>) {
    let size = |cell: &OnceLock<Arc<Batch>>| match cell.get().map(|batch| &**batch) {
        Some(Batch::Parts(parts)) => parts.iter().map(Encoded::wire_len).sum(),
        _ => 0,
    };
    let mut bytes: usize = recent.iter().map(|(_, cell)| size(cell)).sum();
    while recent.len() > KEPT || (bytes > SHARED_BYTES && recent.len() > 1) {
        let Some((_, oldest)) = recent.pop_front() else {
            return;
        };
        bytes -= size(&oldest);
    }
}
