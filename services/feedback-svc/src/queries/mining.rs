//! Proposes synonyms from what users did: a query that found nothing, and the wording that then led to a click in the same
//! session, or another spelling that led to clicks in others; and tells learning-svc, again and again, of queries that find nothing
//! in several sessions, which proposes what similar phrases mean. Nothing is learned from it until a person says so, or ordinary
//! votes do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use emend_base::{Entropy, Error};
use emend_core::{
    Namespace, normalize,
    search::{Rewrite, Searched, Successes, rewrites},
};
use emend_proto::common::v1 as pb;
use emend_wire::parse;
use feedback_store::{
    ports::QueryStore,
    records::{
        event,
        mining::{ClickedQuery, MIN_SESSIONS, NewMined, Seen, SessionQuery, Unanswered},
    },
};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{ids::Ids, metrics::QueryMetrics, outbox::dispatch::Dispatch};

/// Queries looked at in one namespace.
const MAX_QUERIES: u32 = 50_000;
/// Queries of one session looked at together.
const MAX_SESSION: usize = 200;
/// The longest query that can be a phrase, in characters.
const LONGEST: usize = 512;
/// The queries without results of one namespace that are told of in one round.
const MOST_UNANSWERED: usize = 500;
/// After how long a query that still finds nothing is told again: what was learned meanwhile may be near to it.
const TOLD_AGAIN: Duration = Duration::from_hours(1);
/// How often it looks, give or take a fifth.
const INTERVAL: Duration = Duration::from_mins(5);
/// After how long it looks again where it could not, give or take a fifth.
const RETRY: Duration = Duration::from_secs(10);

/// Counts in how many sessions rewordings worked, in queries that are given session by session. It holds the rewordings, which
/// are short, and a part of one session.
#[derive(Debug, Default)]
struct Counting {
    /// Of one session, in order of time.
    session: Vec<SessionQuery>,
    /// What was counted of it, in normal form.
    seen: BTreeSet<(String, String)>,
    counts: BTreeMap<(String, String), (Rewrite, usize)>,
    /// What found nothing in it, in normal form, and whether something was clicked after.
    seen_unanswered: BTreeMap<String, bool>,
    unanswered: BTreeMap<String, Unanswered>,
    /// How many of the session were counted.
    counted: usize,
}

impl Counting {
    fn add(&mut self, query: SessionQuery) {
        let is_other = |last: &SessionQuery| last.session_id != query.session_id;
        if self.session.last().is_some_and(is_other) {
            self.count();
            self.session.clear();
            self.seen.clear();
            self.seen_unanswered.clear();
            self.counted = 0;
        } else if self.session.len() >= 2 * MAX_SESSION {
            self.count();
            // The newest may have been reworded since.
            self.session.drain(..MAX_SESSION);
            self.counted = self.session.len();
        }
        self.session.push(query);
    }

    fn count(&mut self) {
        self.count_unanswered(self.counted);
        self.counted = self.session.len();
        let searched = self.session.iter().map(|query| Searched {
            text: &query.text,
            at: query.at,
            found_nothing: query.found_nothing,
            clicked_at: query.clicked_at,
        });
        for rewrite in rewrites(&searched.collect::<Vec<_>>()) {
            let key = (normalize(&rewrite.failed), normalize(&rewrite.worked));
            if self.seen.insert(key.clone()) {
                self.counts.entry(key).or_insert((rewrite, 0)).1 += 1;
            }
        }
    }

    /// Counts what found nothing; the queries of a part that was counted before are not counted again.
    fn count_unanswered(&mut self, from: usize) {
        for (place, query) in self
            .session
            .iter()
            .enumerate()
            .skip(from)
            .filter(|(_, query)| query.found_nothing)
        {
            let Some(phrase) = phrase(&query.text) else {
                continue;
            };
            let clicked = self.session[place + 1..]
                .iter()
                .any(|later| later.clicked_at.is_some());
            let known = self
                .unanswered
                .entry(phrase.clone())
                .or_insert_with(|| Unanswered {
                    text: query.text.clone(),
                    queries: 0,
                    sessions: 0,
                    clicks: 0,
                });
            known.queries += 1;
            let is_new = !self.seen_unanswered.contains_key(&phrase);
            let seen = self.seen_unanswered.entry(phrase).or_insert(false);
            known.sessions += usize::from(is_new);
            known.clicks += usize::from(clicked && !*seen);
            *seen |= clicked;
        }
    }

    /// What found nothing, the most frequent first.
    fn take_unanswered(&mut self) -> Vec<Unanswered> {
        let mut all: Vec<_> = std::mem::take(&mut self.unanswered).into_values().collect();
        all.sort_by(|one, other| {
            other
                .sessions
                .cmp(&one.sessions)
                .then_with(|| one.text.cmp(&other.text))
        });
        all
    }

    /// The rewordings, each with in how many sessions it worked; the most frequent first.
    fn finish(&mut self) -> Vec<(Rewrite, usize)> {
        self.count();
        let mut counted: Vec<_> = std::mem::take(&mut self.counts).into_values().collect();
        counted.sort_by(|(one, often), (other, as_often)| as_often.cmp(often).then_with(|| one.cmp(other)));
        counted
    }
}

/// A text in normal form, if it can be a phrase: what is masked stands in brackets.
fn phrase(text: &str) -> Option<String> {
    let phrase = normalize(text);
    let is_short = (1..=LONGEST).contains(&phrase.chars().count()) && text.chars().count() <= LONGEST;
    (is_short && !text.contains('[')).then_some(phrase)
}

/// What led to clicks: as it is written, the first in order, and the sessions, by its normal form.
#[derive(Debug, Default)]
struct Clicked(BTreeMap<String, (String, BTreeSet<String>)>);

impl Clicked {
    fn add(&mut self, query: ClickedQuery) {
        let Some(phrase) = phrase(&query.text) else {
            return;
        };
        let (text, sessions) = self
            .0
            .entry(phrase)
            .or_insert_with(|| (query.text.clone(), BTreeSet::new()));
        if query.text < *text {
            *text = query.text;
        }
        sessions.insert(query.session_id);
    }

    /// The wordings that led to clicks in enough sessions, with in how many.
    fn finish(self) -> Vec<(String, usize)> {
        let all = self.0.into_values();
        all.map(|(text, sessions)| (text, sessions.len()))
            .filter(|(_, sessions)| *sessions >= MIN_SESSIONS)
            .collect()
    }
}

/// The worker.
#[derive(Debug)]
pub(crate) struct Miner {
    pub(crate) store: Arc<dyn QueryStore>,
    pub(crate) dispatch: Dispatch,
    pub(crate) ids: Ids,
    pub(crate) metrics: QueryMetrics,
    pub(crate) entropy: Entropy,
}

impl Miner {
    /// Proposes rewordings and other spellings that were not proposed before, and tells what found nothing and was not told lately;
    /// returns how many.
    pub(crate) async fn run_once(&self) -> Result<u64, Error> {
        let (mut synonyms, mut told) = (0, 0);
        for namespace in self.store.namespaces().await? {
            let mut counting = Counting::default();
            self.store
                .failed_sessions(&namespace, MAX_QUERIES, &mut |query| counting.add(query))
                .await?;
            let is_enough = |sessions: usize| sessions >= MIN_SESSIONS;
            let reworded = counting.finish().into_iter();
            let mut mined: Vec<NewMined> = reworded
                .take_while(|(_, sessions)| is_enough(*sessions))
                .filter_map(|(rewrite, sessions)| {
                    self.new_mined(&namespace, &rewrite, Seen::Reworded(sessions))
                })
                .collect();
            let unanswered = counting.take_unanswered().into_iter();
            let unanswered: Vec<Unanswered> =
                unanswered.take_while(|query| is_enough(query.sessions)).collect();
            if !unanswered.is_empty() {
                mined.extend(self.respelled(&namespace, &unanswered).await?);
            }
            if !mined.is_empty() {
                synonyms += self.store.propose(&mined).await?;
            }
            let unanswered: Vec<NewMined> = unanswered
                .iter()
                .map(|query| self.new_unanswered(&namespace, query))
                .collect();
            if !unanswered.is_empty() {
                told += self
                    .store
                    .tell(&namespace, &unanswered, TOLD_AGAIN, MOST_UNANSWERED)
                    .await?;
            }
        }
        self.metrics.mined(synonyms);
        let proposed = synonyms + told;
        if proposed > 0 {
            self.dispatch.due();
        }
        Ok(proposed)
    }

    /// What found nothing and is another spelling of what led to clicks.
    async fn respelled(
        &self,
        namespace: &Namespace,
        unanswered: &[Unanswered],
    ) -> Result<Vec<NewMined>, Error> {
        let mut clicked = Clicked::default();
        self.store
            .clicked_queries(namespace, MAX_QUERIES, &mut |query| clicked.add(query))
            .await?;
        // What is clicked at other times is spelled as it is meant. Of too many, others come first each time.
        let mut unanswered = unanswered.to_vec();
        unanswered.retain(|query| !clicked.0.contains_key(&normalize(&query.text)));
        let mut drawn = [0; 4];
        self.entropy.fill(&mut drawn);
        let drawn = usize::try_from(u32::from_le_bytes(drawn)).unwrap_or_default();
        let begin = drawn % unanswered.len().max(1);
        unanswered.rotate_left(begin);
        unanswered.truncate(MOST_UNANSWERED);
        // It may take seconds where there are many of both; who waits for it no longer ends it.
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        let respelled = spawn_blocking(move || {
            let successes = Successes::new(clicked.finish());
            let respelled = unanswered
                .iter()
                .take_while(|_| !ended.is_cancelled())
                .filter_map(|query| {
                    let respelled = successes.of(&query.text)?;
                    let seen = Seen::Respelled {
                        queries: query.queries,
                        sessions: query.sessions,
                        clicks: query.clicks,
                        clicked: respelled.sessions,
                    };
                    Some((respelled.rewrite, seen))
                });
            respelled.collect::<Vec<_>>()
        });
        let respelled = respelled
            .await
            .map_err(|error| Error::internal(format!("looking for other spellings: {error}")))?;
        drop(end);
        let respelled = respelled.iter();
        Ok(respelled
            .filter_map(|(rewrite, seen)| self.new_mined(namespace, rewrite, *seen))
            .collect())
    }

    /// Who searches for what failed shall also find what worked. `None`: it can be no synonym.
    fn new_mined(&self, namespace: &Namespace, rewrite: &Rewrite, seen: Seen) -> Option<NewMined> {
        let term = pb::TermCorrection {
            term: rewrite.worked.clone(),
            equivalents: vec![rewrite.failed.clone()],
            relation: pb::SynonymRelation::OneWay.into(),
        };
        let message = pb::Correction {
            correction: Some(pb::correction::Correction::Term(term)),
        };
        let correction = parse::correction(Some(&message)).ok()?;
        let id = self.ids.event();
        Some(NewMined {
            namespace: namespace.clone(),
            failed: normalize(&rewrite.failed),
            worked: normalize(&rewrite.worked),
            event: event::mined(id, namespace, &correction, seen),
        })
    }

    /// What it is near to, learning-svc says.
    fn new_unanswered(&self, namespace: &Namespace, query: &Unanswered) -> NewMined {
        NewMined {
            namespace: namespace.clone(),
            failed: normalize(&query.text),
            worked: String::new(),
            event: event::unanswered(self.ids.event(), namespace, query),
        }
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let rounds = async {
            loop {
                let pause = match self.run_once().await {
                    Ok(0) => INTERVAL,
                    Ok(proposed) => {
                        tracing::info!(proposed, "proposed what follows from queries");
                        INTERVAL
                    }
                    Err(error) => {
                        tracing::warn!(%error, "can't look for rewordings that worked; trying again soon");
                        RETRY
                    }
                };
                sleep(pause.mul_f64(self.entropy.jitter(0.2))).await;
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_session_of_any_length_counts_once_and_is_held_in_parts() {
        let mut counting = Counting::default();
        let second = |seconds: usize| Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap();
        for session in ["a", "b"] {
            for number in 0..5 * MAX_SESSION {
                // Each second query finds what the one before it did not.
                let worked = number % 2 == 1;
                counting.add(SessionQuery {
                    session_id: session.into(),
                    text: if worked { "return a card" } else { "bounce a card" }.into(),
                    at: second(number),
                    found_nothing: !worked,
                    clicked_at: worked.then(|| second(number)),
                });
                assert!(counting.session.len() <= 2 * MAX_SESSION);
            }
        }
        let [(rewrite, sessions)] = &counting.finish()[..] else {
            panic!("one rewording")
        };
        assert_eq!(
            (&*rewrite.failed, &*rewrite.worked, *sessions),
            ("bounce", "return", 2)
        );
    }
}
