//! What a phrase that nobody corrected most likely means, for those who ask the service. A model is made when somebody asks, of all
//! that everybody has been taught by then, and serves for a minute; what is learned and forgotten meanwhile counts at once. Nodes
//! keep models of their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::{Error, SharedClock};
use emend_core::{
    Epoch, Kind, Learned, Namespace, NearLookup, NearMethod,
    generalise::{Index, Method, Near, Vectors},
};
use emend_proto::learning::v1::{self as pb, NearStatus};
use emend_stream::{
    filter::Filter,
    state::{Entry, ReplicaState},
};
use jiff::{SignedDuration, Timestamp};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout_at},
};

use super::exact::{Answer, ResolveQuery, learned};

/// How long who looks something up waits for a model that is being made: programs give a call ten seconds, and what was learned for
/// the phrase itself is to arrive within them.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long who compares answers does.
const LONG_PATIENCE: Duration = Duration::from_secs(12);
/// How long a model serves though something was learned since.
const SERVES: SignedDuration = SignedDuration::from_mins(1);
/// Of how many phrases a model is made.
const MOST_PHRASES: usize = 20_000;
/// How many models a replica keeps.
const MOST_MODELS: usize = 8;

/// A namespace and a kind.
type Pair = (Namespace, Kind);

/// The models of one replica. Clones share them.
#[derive(Clone)]
pub struct NearModels(Arc<Inner>);

struct Inner {
    kept: Mutex<BTreeMap<Pair, Model>>,
    /// Held while a model is made: one at a time, in the order in which they were asked for.
    making: Arc<AsyncMutex<()>>,
    /// Held while a model is brought up to date.
    bringing: Arc<AsyncMutex<()>>,
    /// Those that are to be made though nobody waits for them.
    begun: Mutex<BTreeSet<Pair>>,
    vectors: Option<Arc<dyn Vectors>>,
    clock: SharedClock,
}

#[derive(Clone)]
struct Model {
    /// `None`: of too many phrases.
    index: Option<Index>,
    /// Up to which revision its index has everything.
    place: (Epoch, i64),
    /// When its phrases were fitted.
    made_at: Timestamp,
}

/// What a model is asked for: a namespace and a kind as of a state.
#[derive(Clone)]
struct Asked {
    state: Arc<ReplicaState>,
    pair: Pair,
    /// The revision that last changed what everybody has been taught there.
    place: (Epoch, i64),
    /// How phrases are to be compared there.
    method: Method,
}

/// What answers for a namespace and a kind.
#[derive(Clone)]
pub(crate) struct Answering {
    /// `None`: nothing; see the status.
    pub index: Option<Index>,
    /// Whether near answers are given.
    pub status: NearStatus,
    /// How they are given.
    pub setting: NearLookup,
}

impl fmt::Debug for NearModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearModels").finish_non_exhaustive()
    }
}

impl NearModels {
    /// No models yet. Where nodes are to add just these vectors, models do.
    pub fn new(clock: SharedClock, vectors: Option<Arc<dyn Vectors>>) -> Self {
        Self(Arc::new(Inner {
            kept: Mutex::default(),
            making: Arc::default(),
            bringing: Arc::default(),
            begun: Mutex::default(),
            vectors,
            clock,
        }))
    }

    /// The near answer to a query, given the exact one: none where anything was learned for the phrase itself.
    pub(crate) async fn resolve(
        &self,
        state: &Arc<ReplicaState>,
        query: &ResolveQuery,
        exact: &Answer,
    ) -> Result<(Option<Near>, NearStatus), Error> {
        let setting = setting(state, &query.namespace, query.kind)?;
        let model = if is_off(&setting) {
            None
        } else {
            self.model(state, &query.namespace, query.kind, PATIENCE).await?
        };
        let answering = Answering::new(model, setting);
        Ok((answering.near_beside(query, exact).await?, answering.status))
    }

    /// What answers for a namespace and a kind with each of these settings: by one model, whatever is learned meanwhile. It is for
    /// those who wait until one is made.
    pub(crate) async fn answering<const N: usize>(
        &self,
        state: &Arc<ReplicaState>,
        namespace: &Namespace,
        kind: Kind,
        settings: [NearLookup; N],
    ) -> Result<[Answering; N], Error> {
        let model = if settings.iter().all(is_off) {
            None
        } else {
            self.model(state, namespace, kind, LONG_PATIENCE).await?
        };
        Ok(settings.map(|setting| Answering::new(model.clone(), setting)))
    }

    /// What answers now, for those who can't wait until a model is made: it is begun, and they ask again.
    pub(crate) async fn answering_now(
        &self,
        state: &Arc<ReplicaState>,
        namespace: &Namespace,
        kind: Kind,
    ) -> Result<Answering, Error> {
        let setting = setting(state, namespace, kind)?;
        if is_off(&setting) {
            return Ok(Answering::new(None, setting));
        }
        let asked = self.asked(state, namespace, kind)?;
        if let Some(empty) = asked.empty() {
            return Ok(Answering::new(Some(empty), setting));
        }
        if !self.has_fresh(&asked) {
            self.begin(&asked);
        }
        Ok(Answering::new(self.kept_model(&asked).await?, setting))
    }

    fn asked(&self, state: &Arc<ReplicaState>, namespace: &Namespace, kind: Kind) -> Result<Asked, Error> {
        let setting = setting(state, namespace, kind)?;
        let vectors = self.0.vectors.as_ref();
        let vectors = vectors.filter(|vectors| vectors.hash() == setting.vectors());
        Ok(Asked {
            place: (state.epoch(), last_changed(state, namespace, kind)),
            pair: (namespace.clone(), kind),
            state: Arc::clone(state),
            method: vectors.map_or(Method::Lexical, |vectors| Method::Vectors(Arc::clone(vectors))),
        })
    }

    /// Has a model made while nobody waits for it, unless it is under way.
    fn begin(&self, asked: &Asked) {
        if !lock(&self.0.begun).insert(asked.pair.clone()) {
            return;
        }
        let (models, asked) = (self.clone(), asked.clone());
        tokio::spawn(async move {
            let (namespace, kind) = &asked.pair;
            if let Err(error) = models.model(&asked.state, namespace, *kind, LONG_PATIENCE).await {
                tracing::warn!(%error, %namespace, "a model of near answers can't be made");
            }
            lock(&models.0.begun).remove(&asked.pair);
        });
    }

    /// The model of a namespace and a kind, of what was learned as of `state`; `None`: it is not made after that long. It is made
    /// then though nobody waits for it any more.
    async fn model(
        &self,
        state: &Arc<ReplicaState>,
        namespace: &Namespace,
        kind: Kind,
        patience: Duration,
    ) -> Result<Option<Model>, Error> {
        let asked = self.asked(state, namespace, kind)?;
        if let Some(empty) = asked.empty() {
            return Ok(Some(empty));
        }
        if self.has_fresh(&asked) {
            return self.kept_model(&asked).await;
        }
        let until = Instant::now() + patience;
        let Ok(making) = timeout_at(until, Arc::clone(&self.0.making).lock_owned()).await else {
            self.begin(&asked);
            return self.kept_model(&asked).await;
        };
        // Another call may have had it made meanwhile.
        if !self.has_fresh(&asked) {
            let (models, made_for) = (self.clone(), asked.clone());
            let made = tokio::task::spawn_blocking(move || {
                let made = models.make(&made_for);
                drop(making);
                made
            });
            if let Ok(made) = timeout_at(until, made).await {
                made.map_err(|_| Error::internal("a model can't be made"))??;
            }
        }
        self.kept_model(&asked).await
    }

    /// Fits what was learned, and keeps the model.
    fn make(&self, asked: &Asked) -> Result<(), Error> {
        let index = asked.taught()?.map(|phrases| {
            let mut index = Index::new(asked.method.clone());
            index.replace(borrowed(&phrases));
            let fitted = index.refit();
            index.adopt(fitted);
            index
        });
        let model = Model {
            index,
            place: asked.place,
            made_at: self.0.clock.now(),
        };
        let mut kept = self.kept();
        kept.insert(asked.pair.clone(), model);
        if kept.len() > MOST_MODELS {
            let oldest = kept.iter().min_by_key(|(_, model)| model.made_at);
            if let Some(oldest) = oldest.map(|(pair, _)| pair.clone()) {
                kept.remove(&oldest);
            }
        }
        Ok(())
    }

    /// Whether the model that is kept need not be made anew.
    fn has_fresh(&self, asked: &Asked) -> bool {
        let kept = self.kept();
        let Some(model) = kept.get(&asked.pair) else {
            return false;
        };
        let is_compared = |index: &Index| index.method().hash() == asked.method.hash();
        if !model.index.as_ref().is_none_or(is_compared) {
            return false;
        }
        let has_all = model.place == asked.place && !model.index.as_ref().is_some_and(Index::is_behind);
        let is_new = self.0.clock.now().duration_since(model.made_at) < SERVES;
        model.place.0 == asked.place.0 && (has_all || is_new)
    }

    /// The model that is kept, however old, with what was learned and forgotten since counting as well: so its answers and the
    /// exact ones are of one state.
    async fn kept_model(&self, asked: &Asked) -> Result<Option<Model>, Error> {
        let find = || {
            let found = self.kept().get(&asked.pair).cloned();
            found.filter(|model| model.place.0 == asked.place.0)
        };
        let is_done = |model: &Model| model.place == asked.place || model.index.is_none();
        let found = find();
        if found.as_ref().is_none_or(is_done) {
            return Ok(found);
        }
        // Of those who ask at once, one brings it up to date.
        let bringing = Arc::clone(&self.0.bringing).lock_owned().await;
        let found = find();
        let Some(mut model) = found.filter(|model| !is_done(model)) else {
            return Ok(find());
        };
        let (models, asked) = (self.clone(), asked.clone());
        let brought = tokio::task::spawn_blocking(move || {
            let phrases = asked.taught()?;
            model.index = model.index.zip(phrases).map(|(mut index, phrases)| {
                index.replace(borrowed(&phrases));
                index
            });
            model.place = asked.place;
            let mut kept = models.kept();
            if let Some(known) = kept.get_mut(&asked.pair)
                && known.made_at == model.made_at
                && known.place.1 < asked.place.1
            {
                *known = model.clone();
            }
            drop((kept, bringing));
            Ok(Some(model))
        });
        brought
            .await
            .map_err(|_| Error::internal("a model can't be brought up to date"))?
    }

    /// As if a model were being made for as long as this is held.
    #[cfg(test)]
    pub(super) async fn hold(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.0.making).lock_owned().await
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Pair, Model>> {
        lock(&self.0.kept)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asked {
    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let (namespace, kind) = &self.pair;
        self.state
            .of_kind(namespace.as_str(), kind.number(), "", ("", ""), true)
    }

    /// The model of nothing, where nothing is learned: it is neither made nor kept.
    fn empty(&self) -> Option<Model> {
        self.entries().next().is_none().then(|| Model {
            index: Some(Index::default()),
            place: self.place,
            made_at: Timestamp::MIN,
        })
    }

    /// What everybody has been taught that phrases mean; `None`: too much for a model.
    fn taught(&self) -> Result<Option<BTreeMap<&str, String>>, Error> {
        let mut phrases = BTreeMap::new();
        for entry in self.entries() {
            if phrases.len() == MOST_PHRASES {
                return Ok(None);
            }
            phrases.insert(&*entry.key, learned(entry, self.pair.1)?.maps_to().to_owned());
        }
        Ok(Some(phrases))
    }
}

fn is_off(setting: &NearLookup) -> bool {
    setting.method() == NearMethod::Off
}

fn borrowed<'p>(phrases: &'p BTreeMap<&'p str, String>) -> impl Iterator<Item = (&'p str, &'p str)> {
    phrases.iter().map(|(phrase, choice)| (*phrase, &**choice))
}

impl Answering {
    /// By a model; `None`: it is not made yet.
    fn new(model: Option<Model>, setting: NearLookup) -> Self {
        let status = match &model {
            _ if is_off(&setting) => NearStatus::Off,
            None => NearStatus::Fitting,
            Some(Model { index: None, .. }) => NearStatus::TooMany,
            Some(Model {
                index: Some(index), ..
            }) if index.method().hash() != setting.vectors() && !index.is_empty() => {
                NearStatus::WithoutVectors
            }
            Some(_) => NearStatus::Ready,
        };
        let index = model.and_then(|model| model.index);
        Self {
            index: index.filter(|_| status != NearStatus::Off),
            status,
            setting,
        }
    }

    /// The near answer to a query, given the exact one: none where anything was learned for the phrase itself. Vectors may take
    /// milliseconds to make, for which no other call waits.
    pub(crate) async fn near_beside(
        &self,
        query: &ResolveQuery,
        exact: &Answer,
    ) -> Result<Option<Near>, Error> {
        if exact.found.is_some() || exact.found_prohibited {
            return Ok(None);
        }
        let method = self.index.as_ref().map(Index::method);
        if !matches!(method, Some(Method::Vectors(_))) {
            return Ok(self.near(query, &exact.prohibited));
        }
        let (answering, query, prohibited) = (self.clone(), query.clone(), exact.prohibited.clone());
        let near = tokio::task::spawn_blocking(move || answering.near(&query, &prohibited));
        near.await
            .map_err(|_| Error::internal("a near answer can't be given"))
    }

    /// The near answer to a query; never one of these choices, which are sorted.
    pub(crate) fn near(&self, query: &ResolveQuery, prohibited: &[String]) -> Option<Near> {
        let is_prohibited = |choice: &str| {
            prohibited
                .binary_search_by(|known| known.as_str().cmp(choice))
                .is_ok()
        };
        let min_confidence = self.setting.min_confidence();
        #[expect(clippy::cast_possible_truncation, reason = "0.0 to 1.0 in steps of 0.001")]
        let min_confidence = min_confidence as f32;
        let index = self.index.as_ref()?;
        index.near(query.phrase.as_str(), &is_prohibited, min_confidence)
    }
}

/// How near answers are given for a kind.
pub(crate) fn setting(state: &ReplicaState, namespace: &Namespace, kind: Kind) -> Result<NearLookup, Error> {
    let of = Kind::NearLookup;
    let Some(entry) = state.get(namespace.as_str(), of.number(), kind.name(), "", "") else {
        return Ok(NearLookup::default());
    };
    match learned(entry, of)? {
        Learned::NearLookup(Some(setting)) => Ok(setting),
        _ => Ok(NearLookup::default()),
    }
}

/// The revision that last changed what everybody has been taught of a kind.
fn last_changed(state: &ReplicaState, namespace: &Namespace, kind: Kind) -> i64 {
    let filter = Filter::new(std::slice::from_ref(namespace), &[kind.number()], false);
    let groups = state.groups(&filter);
    groups.first().map_or(0, |group| group.last_changed)
}

/// A near answer's message.
pub(crate) fn message(near: Near) -> pb::NearAnswer {
    pb::NearAnswer {
        choice: near.choice.to_string(),
        confidence: near.confidence.into(),
        because: near
            .because
            .into_iter()
            .map(|neighbour| pb::NearPhrase {
                phrase: neighbour.phrase.to_string(),
                choice: neighbour.choice.to_string(),
                similarity: neighbour.similarity.into(),
            })
            .collect(),
        model: near.revision.to_string(),
    }
}
