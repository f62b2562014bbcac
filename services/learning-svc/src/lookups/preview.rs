//! Which answers would differ if something else were learned: queries that were searched or judged, answered as things are and as
//! they would be.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use emend_base::Error;
use emend_core::{Key, Kind, Namespace, NearLookup, NormalizedKey, UserId, Violations};
use emend_proto::learning::v1::{self as pb, NearStatus};
use emend_stream::state::ReplicaState;
use learning_store::{
    Store,
    contests::{CandidateFilter, CandidatePosition, Involvement, Listing},
};

use super::{
    NearModels,
    exact::{self, Changes, ResolveQuery},
    near::{self, Answering},
};
use crate::stream::Stream;

/// The queries of one preview at most.
const MOST_QUERIES: usize = 1_000;
/// The choices that are right for a judged query, and their characters.
const MOST_RIGHT: usize = 10;
const LONGEST_CHOICE: usize = 512;
/// The answers that are listed of one.
const LISTED: usize = 100;
/// The phrases whose candidates are read at once, and the candidates of a page.
const KEYS: usize = 100;
const PAGE: u32 = 1_000;

/// A query that was searched or judged.
#[derive(Debug, Clone)]
pub(crate) struct Searched {
    text: String,
    phrase: NormalizedKey,
    searches: i64,
    up: i64,
    down: i64,
    /// The choices that were judged right; empty: it was not judged.
    right: Vec<String>,
}

/// What is to be tried.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The search application.
    pub namespace: Namespace,
    /// The kind that phrases are looked up as; of a prohibition each.
    pub kinds: Vec<Kind>,
    /// For whom; `None`: for everybody.
    pub user: Option<UserId>,
    /// What would be learned at these keys; `None`: nothing any more.
    pub changes: Changes,
    /// How near answers would be given; `None`: as they are.
    pub setting: Option<NearLookup>,
    /// What was searched and what was judged.
    pub queries: Vec<Searched>,
}

/// A choice, and whether only similar phrases were learned.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answered {
    choice: String,
    is_near: bool,
}

/// A query whose answer would change.
#[derive(Debug)]
struct Changed {
    searched: Searched,
    kind: Kind,
    before: Option<Answered>,
    after: Option<Answered>,
}

impl Changed {
    /// Whether it was judged and is right then and not now; whether the other way round.
    fn judged(&self) -> [bool; 2] {
        let is_right = |answer: &Option<Answered>| {
            let answer = answer.as_ref();
            answer.is_some_and(|answer| self.searched.right.contains(&answer.choice))
        };
        let (before, after) = (is_right(&self.before), is_right(&self.after));
        [after && !before, before && !after]
    }
}

/// What people said that phrases mean: of each kind and phrase the choices, and how many said so.
type Corrections = HashMap<(Kind, Key), Vec<(String, i64)>>;

/// The kinds whose answers depend on what is learned of a kind; none where no phrase is looked up by it.
pub(crate) fn kinds_of(kind: Kind) -> Vec<Kind> {
    let is_it = |answer: &Kind| answer.rules().is_answer && (*answer == kind || kind == Kind::Prohibition);
    Kind::ALL.into_iter().filter(is_it).collect()
}

/// The queries of a request, each once.
pub(crate) fn queries(queries: &[pb::PreviewQuery], violations: &mut Violations) -> Option<Vec<Searched>> {
    if queries.len() > MOST_QUERIES {
        let count = queries.len();
        violations.add("queries", format!("must be at most {MOST_QUERIES}, are {count}"));
        return None;
    }
    let mut seen = BTreeMap::<NormalizedKey, usize>::new();
    let mut all: Vec<Searched> = Vec::new();
    for (index, query) in queries.iter().enumerate() {
        let phrase = NormalizedKey::parse(&query.text);
        let phrase = violations.check(&format!("queries[{index}].text"), phrase)?;
        let counts = [query.search_count, query.rated_up_count, query.rated_down_count];
        if counts.iter().any(|count| *count < 0) {
            violations.add(format!("queries[{index}]"), "must have counts of 0 or more");
            return None;
        }
        let right = &query.right_choices;
        let is_choice = |choice: &String| (1..=LONGEST_CHOICE).contains(&choice.chars().count());
        if right.len() > MOST_RIGHT || !right.iter().all(is_choice) {
            violations.add(
                format!("queries[{index}].right_choices"),
                format!("must be at most {MOST_RIGHT} of 1 to {LONGEST_CHOICE} characters"),
            );
            return None;
        }
        let place = *seen.entry(phrase.clone()).or_insert(all.len());
        if place == all.len() {
            all.push(Searched {
                text: query.text.clone(),
                phrase,
                searches: 0,
                up: 0,
                down: 0,
                right: Vec::new(),
            });
        }
        let searched = &mut all[place];
        let times = query.search_count.max(i64::from(right.is_empty()));
        searched.searches = searched.searches.saturating_add(times);
        searched.right.extend(right.iter().cloned());
        searched.up = searched.up.saturating_add(query.rated_up_count);
        searched.down = searched.down.saturating_add(query.rated_down_count);
    }
    Some(all)
}

/// Compares answers. Clones share everything.
#[derive(Clone)]
pub struct Previews {
    stream: Stream,
    models: NearModels,
    store: Arc<dyn Store>,
}

impl fmt::Debug for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Previews").finish_non_exhaustive()
    }
}

impl Previews {
    /// Answers from a state of `stream` and by `models`; corrections are counted in `store`.
    pub fn new(stream: Stream, models: NearModels, store: Arc<dyn Store>) -> Self {
        Self {
            stream,
            models,
            store,
        }
    }

    /// What would be answered differently.
    pub(crate) async fn compare(&self, trial: Trial) -> Result<pb::PreviewedChanges, Error> {
        // What is tried was read from the database: both sides are answered from a state that is no older than that.
        let head = self.store.head().await?;
        let state = self.stream.wait_for(head.revision, None).await?;
        compare(&self.models, &*self.store, &state, trial).await
    }
}

async fn compare(
    models: &NearModels,
    store: &dyn Store,
    state: &Arc<ReplicaState>,
    trial: Trial,
) -> Result<pb::PreviewedChanges, Error> {
    let mut sides = Vec::new();
    let mut near_status = NearStatus::Ready;
    for kind in &trial.kinds {
        let now = near::setting(state, &trial.namespace, *kind)?;
        let then = trial.setting.clone().unwrap_or_else(|| now.clone());
        let [before, after] = models
            .answering(state, &trial.namespace, *kind, [now, then])
            .await?;
        near_status = after.status;
        sides.push((*kind, before, after));
    }
    let query_count = count(trial.queries.len());
    let (state_then, revision) = (Arc::clone(state), state.revision());
    let compared = tokio::task::spawn_blocking(move || {
        let changed = changed(&state_then, &trial, sides);
        changed.map(|changed| (changed, trial))
    });
    let (mut changed, trial) = compared
        .await
        .map_err(|_| Error::internal("the answers can't be compared"))??;
    changed.sort_by(|one, other| {
        let by_count = other.searched.searches.cmp(&one.searched.searches);
        by_count.then_with(|| one.searched.phrase.as_str().cmp(other.searched.phrase.as_str()))
    });
    let sum = |of: fn(&Searched) -> i64| {
        let each = changed.iter().map(|changed| of(&changed.searched));
        each.fold(0, i64::saturating_add)
    };
    let mut message = pb::PreviewedChanges {
        query_count,
        changed_query_count: count(changed.len()),
        changed_search_count: sum(|searched| searched.searches),
        rated_for_count: sum(|searched| searched.down),
        rated_against_count: sum(|searched| searched.up),
        near_status: near_status.into(),
        revision,
        ..pb::PreviewedChanges::default()
    };
    let corrections = corrections(store, &trial, &changed).await?;
    for (place, changed) in changed.into_iter().enumerate() {
        let answer = with_corrections(changed, &corrections);
        message.corrected_for_count += answer.corrected_for_count;
        message.corrected_against_count += answer.corrected_against_count;
        message.judged_for_count += answer.judged_for_count;
        message.judged_against_count += answer.judged_against_count;
        if place < LISTED {
            message.answers.push(answer);
        }
    }
    Ok(message)
}

/// The queries whose answers differ, of each kind.
fn changed(
    state: &ReplicaState,
    trial: &Trial,
    sides: Vec<(Kind, Answering, Answering)>,
) -> Result<Vec<Changed>, Error> {
    let nothing = Changes::new();
    let mut all = Vec::new();
    for (kind, before, mut after) in sides {
        if let Some(index) = &mut after.index {
            for (key, learned) in trial
                .changes
                .iter()
                .filter(|(key, _)| key.kind == kind && key.user.is_none())
            {
                let known = state.get(key.namespace.as_str(), kind.number(), key.key.as_str(), "", "");
                if let Some(known) = known {
                    index.forget(key.key.as_str(), exact::learned(known, kind)?.maps_to());
                }
                if let Some(learned) = learned {
                    index.learn(key.key.as_str(), learned.maps_to());
                }
            }
        }
        for searched in &trial.queries {
            let query = ResolveQuery {
                namespace: trial.namespace.clone(),
                kind,
                phrase: searched.phrase.clone(),
                user_id: trial
                    .user
                    .as_ref()
                    .map_or_else(String::new, |user| user.as_str().to_owned()),
                backend: Vec::new(),
            };
            let before = answered(state, &query, &nothing, &before)?;
            let after = answered(state, &query, &trial.changes, &after)?;
            if before != after {
                all.push(Changed {
                    searched: searched.clone(),
                    kind,
                    before,
                    after,
                });
            }
        }
    }
    Ok(all)
}

fn answered(
    state: &ReplicaState,
    query: &ResolveQuery,
    changes: &Changes,
    answering: &Answering,
) -> Result<Option<Answered>, Error> {
    let answer = exact::resolve_with(state, query, changes)?;
    if answer.found_prohibited && answer.found.is_none() {
        return Ok(None);
    }
    let exact = answer.found.map(|found| Answered {
        choice: found.value,
        is_near: false,
    });
    Ok(exact.or_else(|| {
        let near = answering.near(query, &answer.prohibited)?;
        Some(Answered {
            choice: near.choice.to_string(),
            is_near: true,
        })
    }))
}

/// What people said that the phrases of changed answers mean.
async fn corrections(store: &dyn Store, trial: &Trial, changed: &[Changed]) -> Result<Corrections, Error> {
    let mut corrections = Corrections::new();
    for &kind in &trial.kinds {
        let of_kind = changed.iter().filter(|changed| changed.kind == kind);
        let keys: Vec<Key> = of_kind
            .map(|changed| Key::from(changed.searched.phrase.clone()))
            .collect();
        for keys in keys.chunks(KEYS) {
            let filter = CandidateFilter {
                namespace: trial.namespace.clone(),
                kinds: vec![kind],
                statuses: Vec::new(),
                keys: keys.to_vec(),
                user: trial.user.clone(),
                reviewed: Involvement::default(),
            };
            let mut after = None;
            loop {
                let page = store
                    .list_candidates(&filter, &Listing::default(), after, PAGE)
                    .await?;
                after = page.last().map(CandidatePosition::of);
                let is_last = page.len() < PAGE as usize;
                for record in page.into_iter().filter(|record| record.key.user == trial.user) {
                    let choice = record.candidate.value.learned.maps_to().to_owned();
                    let reporters = i64::try_from(record.candidate.reporters).unwrap_or(i64::MAX);
                    let said = corrections.entry((kind, record.key.key)).or_default();
                    said.push((choice, reporters));
                }
                if is_last {
                    break;
                }
            }
        }
    }
    Ok(corrections)
}

/// The message of a changed answer, with how many people corrected its query and to what.
fn with_corrections(changed: Changed, corrections: &Corrections) -> pb::PreviewedAnswer {
    let [judged_for, judged_against] = changed.judged().map(i64::from);
    let Changed {
        searched,
        kind,
        before,
        after,
    } = changed;
    let said = corrections.get(&(kind, Key::from(searched.phrase)));
    let (mut towards, mut away) = (0_i64, 0_i64);
    for (choice, reporters) in said.into_iter().flatten() {
        let is_new = after.as_ref().is_some_and(|after| after.choice == *choice);
        let count = if is_new { &mut towards } else { &mut away };
        *count = count.saturating_add(*reporters);
    }
    let (before, before_is_near) = before.map_or_else(Default::default, |it| (it.choice, it.is_near));
    let (after, after_is_near) = after.map_or_else(Default::default, |it| (it.choice, it.is_near));
    pb::PreviewedAnswer {
        text: searched.text,
        search_count: searched.searches,
        before,
        before_is_near,
        after,
        after_is_near,
        rated_for_count: searched.down,
        rated_against_count: searched.up,
        corrected_for_count: towards,
        corrected_against_count: away,
        judged_for_count: judged_for,
        judged_against_count: judged_against,
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
