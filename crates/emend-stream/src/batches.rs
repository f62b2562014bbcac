//! Encoded batches, made once for all streams that need the same: equal filter, equal batch size, equal cursor.
//!
//! The first stream that needs a batch encodes it; the others block until it is ready. That takes milliseconds at most,
//! because only batches of about [`SHARED_BYTES`] are shared. Longer updates and snapshots are cut part by part
//! ([`transfer`](crate::transfer)); a snapshot's part is shared while some stream still sends it. All of it counts
//! towards one [`budget`](crate::budget): while that is spent, kept batches are dropped, and an update that takes more
//! than one small message is sent part by part.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use emend_base::{span, traceparent::Traceparent};
use emend_core::Epoch;
use tracing::{Span, info_span};

use crate::{
    budget::{Budget, Kept as KeptBytes},
    encode::{self, Encoded},
    filter::Filter,
    state::{Entry, ReplicaState},
};

/// An update longer than this is not kept whole; only its last message may exceed it. The oldest batches of an audience
/// are dropped until together they take no more than this.
pub const SHARED_BYTES: usize = 4 * 1024 * 1024;
/// How many batches an audience keeps. Few are needed: each batch brings the streams it serves to the same cursor.
const MAX_KEPT: usize = 16;

/// What brings a stream from one revision to another.
#[derive(Debug)]
pub enum Batch {
    /// Nothing the filter covers changed.
    Nothing,
    /// These messages, in order.
    Parts(Vec<Encoded>),
    /// Too long to be kept whole.
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

/// Filled by the first stream that needs it; the others block until it is.
type BatchCell = Arc<OnceLock<Arc<Batch>>>;
type ChunkCell = OnceLock<Option<Chunk>>;

/// Epoch, from revision, to revision.
type BatchKey = (Epoch, i64, i64);
/// Epoch, revision, address of the entry it follows, size limit. An address identifies an entry for as long as the
/// state that holds it lives.
type ChunkKey = (Epoch, i64, Option<usize>, usize);

/// What was recently encoded for one audience.
#[derive(Debug)]
pub struct Batches {
    recent: Mutex<VecDeque<Recent>>,
    chunks: Mutex<Vec<(ChunkKey, Weak<ChunkCell>)>>,
    encoded: AtomicU64,
    budget: Budget,
}

/// A kept batch.
#[derive(Debug)]
struct Recent {
    key: BatchKey,
    cell: BatchCell,
    /// Set once it is encoded.
    bytes: Option<KeptBytes>,
}

impl Batches {
    /// Empty. Everything encoded counts towards `budget`.
    pub fn new(budget: Budget) -> Self {
        Self {
            recent: Mutex::default(),
            chunks: Mutex::default(),
            encoded: AtomicU64::new(0),
            budget,
        }
    }

    /// What brings a stream from `from` to `state`.
    pub fn batch(&self, state: &ReplicaState, filter: &Filter, from: i64, max_bytes: usize) -> Arc<Batch> {
        let key = (state.epoch(), from, state.revision());
        let cell = self.batch_cell(key);
        let mut is_new = false;
        let batch = cell.get_or_init(|| {
            is_new = true;
            self.encoded.fetch_add(1, Ordering::Relaxed);
            Arc::new(encode_batch(state, filter, from, max_bytes, &self.budget))
        });
        if is_new {
            self.keep(key, batch.wire_len());
        }
        Arc::clone(batch)
    }

    fn batch_cell(&self, key: BatchKey) -> BatchCell {
        let mut recent = self.recent();
        if let Some(known) = recent.iter().rev().find(|known| known.key == key) {
            return Arc::clone(&known.cell);
        }
        let cell = BatchCell::default();
        recent.push_back(Recent {
            key,
            cell: Arc::clone(&cell),
            bytes: None,
        });
        trim(&mut recent);
        cell
    }

    /// Notes how large a batch is, unless it has been dropped already.
    fn keep(&self, key: BatchKey, bytes: usize) {
        if let Some(known) = self.recent().iter_mut().rev().find(|known| known.key == key) {
            known.bytes = Some(self.budget.keep(bytes));
        }
    }

    /// Drops all kept batches.
    pub fn forget(&self) {
        self.recent().clear();
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a snapshot of `state` after that entry. A stream holds it until it has the next one, so that streams
    /// side by side share it.
    pub fn chunk(
        &self,
        state: &ReplicaState,
        filter: &Filter,
        after: Option<&Arc<Entry>>,
        max_bytes: usize,
    ) -> Arc<OnceLock<Option<Chunk>>> {
        let max_bytes = self.budget.part_bytes(max_bytes);
        let after_address = after.map(|entry| Arc::as_ptr(entry).addr());
        let cell = self.chunk_cell((state.epoch(), state.revision(), after_address, max_bytes));
        cell.get_or_init(|| {
            self.encoded.fetch_add(1, Ordering::Relaxed);
            let (message, next) = encode::snapshot_chunk(state, filter, after, max_bytes)?;
            let message = message.counted(&self.budget);
            Some(Chunk { message, next })
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

    /// A part of a long update, encoded for one stream alone; like [`encode::update_part`].
    pub fn part(
        &self,
        state: &ReplicaState,
        filter: &Filter,
        from: i64,
        after: Option<&Arc<Entry>>,
        max_bytes: usize,
    ) -> Option<(Encoded, Option<Arc<Entry>>)> {
        let max_bytes = self.budget.part_bytes(max_bytes);
        let (part, next) = encode::update_part(state, filter, from, after, max_bytes)?;
        Some((part.counted(&self.budget), next))
    }

    /// How many batches and snapshot parts have been encoded.
    pub fn encoded(&self) -> u64 {
        self.encoded.load(Ordering::Relaxed)
    }
}

/// The most spans per update, so that encoding costs little more where everything is traced.
const MAX_SPANS: usize = 32;
/// How many changes are examined for their traces.
const MAX_EXAMINED: usize = 256;

/// A span for each trace that changed something in the batch, open while the batch is encoded.
fn spans(state: &ReplicaState, filter: &Filter, from: i64) -> Vec<Span> {
    let (mut spans, mut seen, mut examined) = (Vec::new(), BTreeSet::new(), 0);
    if !span::is_recorded() {
        return spans;
    }
    state.changes_since(filter, from, None, |entry| {
        examined += 1;
        if seen.insert(entry.traceparent.clone())
            && let Some(traceparent) = Traceparent::parse_sampled(&entry.traceparent)
        {
            let span = info_span!(
                target: span::TARGET,
                parent: None,
                "publish update",
                otel.kind = "producer",
                messaging.system = "emend",
                emend.revision = state.revision(),
            );
            span::set_parent(&span, &traceparent);
            spans.push(span);
        }
        if spans.len() >= MAX_SPANS || examined >= MAX_EXAMINED {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    spans
}

impl Batch {
    fn wire_len(&self) -> usize {
        match self {
            Self::Parts(parts) => parts.iter().map(Encoded::wire_len).sum(),
            Self::Nothing | Self::Long => 0,
        }
    }
}

fn encode_batch(
    state: &ReplicaState,
    filter: &Filter,
    from: i64,
    max_bytes: usize,
    budget: &Budget,
) -> Batch {
    // Dropping them when it is encoded ends the spans.
    let _spans = spans(state, filter, from);
    let whole = if budget.is_spent() { 0 } else { SHARED_BYTES };
    let max_bytes = budget.part_bytes(max_bytes);
    let (mut parts, mut bytes, mut after) = (Vec::new(), 0, None);
    loop {
        let Some((part, next)) = encode::update_part(state, filter, from, after.as_ref(), max_bytes) else {
            return Batch::Nothing;
        };
        bytes += part.wire_len();
        parts.push(part.counted(budget));
        after = next;
        if after.is_none() {
            return Batch::Parts(parts);
        }
        if bytes > whole {
            return Batch::Long;
        }
    }
}

fn trim(recent: &mut VecDeque<Recent>) {
    let size = |recent: &Recent| recent.bytes.as_ref().map_or(0, KeptBytes::bytes);
    let mut bytes: usize = recent.iter().map(size).sum();
    while recent.len() > MAX_KEPT || (bytes > SHARED_BYTES && recent.len() > 1) {
        let Some(oldest) = recent.pop_front() else {
            return;
        };
        bytes -= size(&oldest);
    }
}
