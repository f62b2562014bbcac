//! What a phrase that nobody corrected most likely means, by what was learned for similar ones: asking for it, and the indexes
//! that a state answers from.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use emend_core::{
    Invalid, Kind, Namespace, NearLookup, NearMethod, NormalizedKey, UserId,
    generalise::{Index, Near},
};
use tokio::sync::Notify;

use super::{LearnedView, Lookup, LookupKey, Origin, Reading, Resolution, entry::Found};

/// Whether near answers are given for a kind, and if not, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NearStatus {
    /// The caller did not ask for one.
    #[default]
    NotAsked,
    /// They are: where there is none, nothing that was learned is similar enough.
    Ready,
    /// They are, by words alone: nodes are to add vectors, and this one has other ones or none, or has no model with them yet.
    WithoutVectors,
    /// Not yet: the first model is being made. It takes seconds after the first call that asks.
    Fitting,
    /// Somebody set that none are given.
    Off,
    /// More was learned than a node makes models of.
    TooMany,
}

impl NearStatus {
    /// The name that bindings and the wire have for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::Ready => "ready",
            Self::WithoutVectors => "without_vectors",
            Self::Fitting => "fitting",
            Self::Off => "off",
            Self::TooMany => "too_many",
        }
    }
}

/// Whether anybody wants near answers.
#[derive(Debug, Default)]
pub(super) struct NearWish {
    is_wanted: AtomicBool,
    woken: Notify,
}

/// The indexes of a state, by namespace and kind.
#[derive(Debug, Default)]
pub(crate) struct NearIndexes(pub(super) HashMap<Arc<str>, Vec<(Kind, NearHere)>>);

/// What answers for one namespace and kind.
#[derive(Debug, Clone)]
pub(super) enum NearHere {
    /// This.
    Index(Index),
    /// Nothing yet.
    Fitting,
    /// Nothing: there is too much.
    TooMany,
}

impl NearIndexes {
    fn of(&self, namespace: &str, kind: Kind) -> Option<&NearHere> {
        let here = self.0.get(namespace)?;
        here.iter()
            .find(|(known, _)| *known == kind)
            .map(|(_, here)| here)
    }
}

impl LearnedView {
    /// As [`resolve`](Self::resolve). Where nothing was learned for the phrase itself, it also answers by what was learned for
    /// similar ones, for everybody ([`Resolution::near`]): never with a choice that is prohibited for the phrase, and only from the
    /// confidence on that is set for the kind (by default 0.8). The first such call has the node make its models; until they are
    /// there, [`Resolution::near_status`] says so.
    pub fn resolve_near<'c>(
        &self,
        namespace: &Namespace,
        kind: Kind,
        phrase: &str,
        user: Option<&UserId>,
        candidates: impl IntoIterator<Item = (&'c str, f64)>,
    ) -> Result<Resolution, Invalid> {
        self.keep_near();
        let phrase = NormalizedKey::parse(phrase)?;
        let reading = self.read();
        let key = LookupKey {
            namespace,
            phrase: &phrase,
        };
        let found = reading.lookup(key, kind, user);
        let (near, status) = reading.near(key, kind, &found);
        let mut resolution = Resolution::new(&found, phrase.clone(), candidates, reading.revision());
        (resolution.near, resolution.near_status) = (near, status);
        Ok(resolution)
    }

    /// Has the node make the models of near answers, and keep them current. The first call that asks for a near answer does so,
    /// too; this is for those who want to be answered from the first one on.
    pub fn keep_near(&self) {
        if !self.keeps_near() {
            self.0.near.is_wanted.store(true, Ordering::Relaxed);
            self.0.near.woken.notify_one();
        }
    }

    pub(crate) fn keeps_near(&self) -> bool {
        self.0.near.is_wanted.load(Ordering::Relaxed)
    }

    /// Returns once somebody wants near answers.
    pub(crate) async fn near_is_wanted(&self) {
        while !self.keeps_near() {
            self.0.near.woken.notified().await;
        }
    }

    /// Waits until there is a state and near answers are by models of all that it shows. Has them made if nobody asked for them before. There
    /// is no timeout; add your own.
    pub async fn wait_until_near(&self) {
        self.keep_near();
        self.wait_until(|status| status.near_is_current && status.origin != Origin::Nothing)
            .await;
    }
}

impl Reading<'_> {
    /// The near answer for a phrase, given what was learned for the phrase itself: none where anything was. See
    /// [`LearnedView::resolve_near`], which has the models made.
    pub fn near(&self, key: LookupKey<'_>, kind: Kind, found: &Lookup<'_>) -> (Option<Near>, NearStatus) {
        let setting = self.near_setting(key.namespace, kind);
        if setting.is_some_and(|setting| setting.method() == NearMethod::Off) {
            return (None, NearStatus::Off);
        }
        let Some(indexes) = &self.state.near else {
            return (None, NearStatus::Fitting);
        };
        let index = match indexes.of(key.namespace.as_str(), kind) {
            Some(NearHere::Index(index)) => index,
            Some(NearHere::Fitting) => return (None, NearStatus::Fitting),
            Some(NearHere::TooMany) => return (None, NearStatus::TooMany),
            None => return (None, NearStatus::Ready),
        };
        let status = if index.method().hash() == setting.map_or("", NearLookup::vectors) {
            NearStatus::Ready
        } else {
            NearStatus::WithoutVectors
        };
        if found.found().is_some() || found.found_prohibited() {
            return (None, status);
        }
        let min_confidence = setting.map_or_else(
            || NearLookup::default().min_confidence(),
            NearLookup::min_confidence,
        );
        let is_prohibited = |choice: &str| found.is_prohibited(choice);
        let near = index.near(key.phrase.as_str(), &is_prohibited, to_f32(min_confidence));
        (near, status)
    }

    fn near_setting(&self, namespace: &Namespace, kind: Kind) -> Option<&NearLookup> {
        self.of_id(namespace, kind.name()).and_then(Found::near)
    }
}

/// A confidence in thousandths, which `f32` tells apart.
#[expect(clippy::cast_possible_truncation, reason = "0.0 to 1.0 in steps of 0.001")]
fn to_f32(confidence: f64) -> f32 {
    confidence as f32
}
