//! What a node answers from: the local, up-to-date copy of what was learned, in a form made for look-ups.
//!
//! Any number of threads share a [`LearnedView`]. A look-up never locks and never waits, even while updates are
//! applied: a [`Reading`] is one published state, and the [`Publisher`] swaps in the next one as a whole.

mod domains;
mod entry;
mod evidence;
mod expand;
mod line;
mod lookup;
mod near;
mod near_index;
mod outputs;
mod publisher;
mod state;
pub(crate) mod status;
mod synonyms;
mod table;
mod taught;
mod terms;
#[cfg(test)]
mod tests;
mod tuning;

use std::{fmt, ops::Deref, sync::Arc};

use arc_swap::{ArcSwap, Cache, Guard};
use emend_base::{Entropy, SharedClock};
use emend_core::{
    Invalid, Kind, Namespace, NormalizedKey, Revision, Scope, TrustLevel, UserId,
    evidence::{Decided, Layers, deciding, host as host_name},
    generalise::Vectors,
    lookup::{Match, resolve},
};
use tokio::sync::watch;

pub use self::{
    domains::{DomainDecided, SourceTrust},
    evidence::{ClaimDecided, EdgeDecided},
    lookup::{LEARNED_SCORE, LearnedAnswer, Lookup, Resolution, Source},
    near::NearStatus,
    outputs::{PromptInForce, RenderOptions, Rendered},
    publisher::{Fact, Publisher},
    status::{Origin, Staleness},
    synonyms::{Expansion, StandsFor},
    taught::TaughtSynonym,
    tuning::tuning_to_try,
};
use self::{entry::Found, near::NearWish, state::ViewState, status::ViewStatus};
use crate::keyed_hash::KeyedHash;

/// What was learned. Clones share the same view.
#[derive(Clone)]
pub struct LearnedView(Arc<Shared>);

struct Shared {
    state: Arc<ArcSwap<ViewState>>,
    hash: Arc<KeyedHash>,
    status: watch::Sender<ViewStatus>,
    near: NearWish,
    vectors: Option<Arc<dyn Vectors>>,
    clock: SharedClock,
}

/// What to look up: a normalised phrase in one search application.
#[derive(Debug, Clone, Copy)]
pub struct LookupKey<'a> {
    /// The search application.
    pub namespace: &'a Namespace,
    /// The phrase.
    pub phrase: &'a NormalizedKey,
}

impl LearnedView {
    /// Creates an empty view and its publisher. Nodes get theirs from a [`Subscriber`](crate::Subscriber); this is for
    /// callers that get resources in another way, such as tests and benchmarks.
    pub fn new(entropy: &Entropy, clock: SharedClock) -> (Publisher, Self) {
        Self::with_vectors(entropy, clock, None)
    }

    /// As [`new`](Self::new); near answers are given by these vectors, too, where it is set that nodes add just these.
    pub fn with_vectors(
        entropy: &Entropy,
        clock: SharedClock,
        vectors: Option<Arc<dyn Vectors>>,
    ) -> (Publisher, Self) {
        let hash = Arc::new(KeyedHash::new(entropy));
        let view = Self(Arc::new(Shared {
            state: Arc::new(ArcSwap::from_pointee(ViewState::empty())),
            hash: Arc::clone(&hash),
            status: watch::Sender::new(ViewStatus::default()),
            near: NearWish::default(),
            vectors,
            clock,
        }));
        (Publisher::new(view.clone(), hash), view)
    }

    /// The current state. One reading answers everything from one state. Hold it for the length of a query and no
    /// longer: it keeps that state in memory.
    #[inline]
    pub fn read(&self) -> Reading<'_> {
        Reading {
            state: Held::Guarded(self.0.state.load()),
            hash: &self.0.hash,
        }
    }

    /// A reader for a thread that looks up all the time. It never writes to memory shared between threads.
    pub fn reader(&self) -> Reader {
        Reader {
            cache: Cache::new(Arc::clone(&self.0.state)),
            hash: Arc::clone(&self.0.hash),
        }
    }

    /// Answers for a phrase as written: normalises it, tries the user's own answer, then everybody's, and lists the
    /// choices to remove from the backend's own. `candidates` are what the backend would answer by itself: (value,
    /// score from 0.0 to 1.0). A phrase that is empty or too long is invalid.
    pub fn resolve<'c>(
        &self,
        namespace: &Namespace,
        kind: Kind,
        phrase: &str,
        user: Option<&UserId>,
        candidates: impl IntoIterator<Item = (&'c str, f64)>,
    ) -> Result<Resolution, Invalid> {
        let phrase = NormalizedKey::parse(phrase)?;
        let reading = self.read();
        let found = reading.lookup(
            LookupKey {
                namespace,
                phrase: &phrase,
            },
            kind,
            user,
        );
        Ok(Resolution::new(
            &found,
            phrase.clone(),
            candidates,
            reading.revision(),
        ))
    }

    /// What else to search for where a term stands, as written: its representatives, then the other terms of their sets; the
    /// user's own synonyms and everybody's. A term that is empty or too long is invalid.
    pub fn synonyms(
        &self,
        namespace: &Namespace,
        term: &str,
        user: Option<&UserId>,
    ) -> Result<Vec<String>, Invalid> {
        let phrase = NormalizedKey::parse(term)?;
        let key = LookupKey {
            namespace,
            phrase: &phrase,
        };
        let reading = self.read();
        let expansion = reading.synonyms(key, user);
        Ok(expansion.terms().map(str::to_owned).collect())
    }

    /// How far a source is trusted, by its host as written. A host that is no domain name is invalid.
    pub fn trust(&self, namespace: &Namespace, host: &str) -> Result<SourceTrust, Invalid> {
        let host = host_name(host)?;
        Ok(self.read().trust(namespace, &host))
    }

    /// Whether the sources of a host, as written, must not be shown. A host that is no domain name is invalid.
    pub fn is_blocked(&self, namespace: &Namespace, host: &str) -> Result<bool, Invalid> {
        let host = host_name(host)?;
        Ok(self.read().is_blocked(namespace, &host))
    }

    /// How stale the view may be.
    pub fn staleness(&self) -> Staleness {
        self.0.status.borrow().staleness(self.0.clock.now())
    }

    /// The revision at or below which everything has been applied.
    pub fn revision(&self) -> Revision {
        self.0.status.borrow().revision
    }

    /// Waits until everything at or below `revision` has been applied, for reading your own writes. A revision outside
    /// the node's filter counts as applied once a bookmark has passed it. There is no timeout; add your own.
    pub async fn wait_for_revision(&self, revision: Revision) {
        self.wait_until(|status| status.revision >= revision).await;
    }

    /// Waits until the view has a state to answer from: the copy on disk or the stream's first state, even an empty
    /// one.
    pub async fn wait_until_filled(&self) {
        self.wait_until(|status| status.origin != Origin::Nothing).await;
    }

    async fn wait_until(&self, reached: impl FnMut(&ViewStatus) -> bool) {
        // The view owns the sender, so this can't fail.
        let _ = self.0.status.subscribe().wait_for(reached).await;
    }

    pub(crate) fn update_status(&self, change: impl FnOnce(&mut ViewStatus)) {
        self.0.status.send_modify(change);
    }

    pub(crate) fn hash(&self) -> &Arc<KeyedHash> {
        &self.0.hash
    }

    fn state(&self) -> Arc<ViewState> {
        self.0.state.load_full()
    }

    fn swap(&self, next: Arc<ViewState>) -> Arc<ViewState> {
        self.0.state.swap(next)
    }
}

impl fmt::Debug for LearnedView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LearnedView")
            .field(&*self.0.status.borrow())
            .finish()
    }
}

/// One thread's access to a view, the fastest there is; see [`LearnedView::reader`]. It keeps the state it last read in
/// memory until it reads again.
pub struct Reader {
    cache: Cache<Arc<ArcSwap<ViewState>>, Arc<ViewState>>,
    hash: Arc<KeyedHash>,
}

impl Reader {
    /// The current state.
    #[inline]
    pub fn read(&mut self) -> Reading<'_> {
        Reading {
            state: Held::Cached(self.cache.load()),
            hash: &self.hash,
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// One state of a view.
pub struct Reading<'v> {
    state: Held<'v>,
    hash: &'v KeyedHash,
}

enum Held<'v> {
    Guarded(Guard<Arc<ViewState>>),
    Cached(&'v ViewState),
}

impl Deref for Held<'_> {
    type Target = ViewState;

    #[inline]
    fn deref(&self) -> &ViewState {
        match self {
            Self::Guarded(state) => state,
            Self::Cached(state) => state,
        }
    }
}

impl Reading<'_> {
    /// The revision of this state.
    pub fn revision(&self) -> Revision {
        self.state.revision
    }

    /// What was learned for a phrase: the user's own answer first, then everybody's, never a prohibited one. What is
    /// prohibited for everybody is prohibited for every user.
    #[inline]
    pub fn lookup(&self, key: LookupKey<'_>, kind: Kind, user: Option<&UserId>) -> Lookup<'_> {
        let state = &*self.state;
        let global_key = self.hash.namespace(key.namespace.as_str()) ^ self.hash.phrase(key.phrase.as_str());
        let own = match user {
            Some(user) if state.user_scoped => state.find(global_key ^ self.hash.user(user.as_str())),
            _ => None,
        };
        let global = state.find(global_key);
        let user_prohibited = own.map_or(&[][..], Found::prohibited);
        let global_prohibited = global.map_or(&[][..], Found::prohibited);
        let as_match = |scope| {
            move |(value, revision)| Match {
                value,
                revision,
                scope,
            }
        };
        let resolved = resolve(
            own.and_then(|found| found.answer(kind))
                .map(as_match(Scope::User)),
            global
                .and_then(|found| found.answer(kind))
                .map(as_match(Scope::Global)),
            |choice| lookup::contains(user_prohibited, choice) || lookup::contains(global_prohibited, choice),
        );
        Lookup {
            resolved,
            user_prohibited,
            global_prohibited,
        }
    }
}

impl Reading<'_> {
    /// What else to search for where a term stands: the user's own synonyms and everybody's.
    pub fn synonyms(&self, key: LookupKey<'_>, user: Option<&UserId>) -> Expansion<'_> {
        Expansion::of(key.phrase.as_str(), self.synonyms_of(key.namespace, user))
    }
}

impl Reading<'_> {
    /// How far a source is trusted, by its host in the form of [`emend_core::evidence::host`].
    pub fn trust(&self, namespace: &Namespace, host: &str) -> SourceTrust {
        let decided = self.decided(namespace, host);
        decided.as_ref().map(SourceTrust::by).unwrap_or_default()
    }

    /// Whether the sources of a host, in the form of [`emend_core::evidence::host`], must not be shown. Looks up each name
    /// above the host once, however many rules there are.
    #[inline]
    pub fn is_blocked(&self, namespace: &Namespace, host: &str) -> bool {
        self.trust_level(namespace, host) == TrustLevel::Blocked
    }

    #[inline]
    fn trust_level(&self, namespace: &Namespace, host: &str) -> TrustLevel {
        self.decided(namespace, host)
            .map_or(TrustLevel::default(), |decided| decided.level)
    }

    #[inline]
    fn decided<'h>(&self, namespace: &Namespace, host: &'h str) -> Option<Decided<'h, Revision>> {
        let state = &*self.state;
        let namespace = self.hash.namespace(namespace.as_str());
        deciding(host, Layers::All, |name| {
            state
                .find(namespace ^ self.hash.phrase(name))
                .and_then(Found::domains)
        })
    }
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
