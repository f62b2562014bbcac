//! Keeps the indexes that near answers come from: what is learned or forgotten counts with the update that brings it; a thread in
//! the background fits the models anew, one after the other, and a later state has them. No update waits for one.
//!
//! Nothing is kept until somebody asks for a near answer. Only what everybody has been taught counts.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::Arc,
    thread::JoinHandle,
};

use emend_base::SharedClock;
use emend_core::{
    Kind, NearLookup, NearMethod,
    generalise::{Fitted, Index, Method, Vectors},
};
use jiff::{SignedDuration, Timestamp};

use super::near::{NearHere, NearIndexes};
use crate::background;

/// Of how many phrases a node makes models: their indexes then stay below 64 MB.
const MOST_PHRASES: usize = 20_000;
/// How many times as long as a fit took no model is fitted anew: so that where something changes all the time, most of a processor
/// is left to others. A first model does not wait for that.
const REST: i32 = 4;
/// How long what changed waits for that at most: then all that waits is fitted one after the other, within a minute of its change.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(30);

/// A namespace and a kind.
type Pair = (Arc<str>, Kind);

/// The indexes, and the one that is being fitted. The publisher keeps it, apart from what readers touch.
#[derive(Debug)]
pub(super) struct NearIndex {
    pairs: BTreeMap<Pair, Here>,
    /// While all is told anew: the indexes of what was told before.
    earlier: BTreeMap<Pair, Here>,
    current: Arc<NearIndexes>,
    is_changed: bool,
    working: Option<Working>,
    /// When the next model may be fitted anew.
    rests_until: Timestamp,
    /// How many have begun to wait so far.
    turns: u64,
    clock: SharedClock,
    vectors: Option<Arc<dyn Vectors>>,
}

/// What was learned in one namespace for one kind.
#[derive(Debug, Default)]
struct Here {
    /// For how many phrases.
    phrases: usize,
    state: State,
    /// Whether no near answers are given: then none of it is kept.
    is_off: bool,
    /// How its phrases are to be compared.
    method: Method,
    /// `None` if nothing changed since its last model was begun.
    turn: Option<Turn>,
}

/// Since when a model waits to be made.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// The longer it waits, the lower.
    number: u64,
    since: Timestamp,
}

#[derive(Debug)]
enum State {
    /// Its phrases and what they mean; an index of them is not made yet.
    Told(BTreeMap<String, String>),
    /// The index has it all. Whether its model does, it says.
    Kept(Index),
    /// There is too much in the node, or nothing is to be answered. Which phrases there are is not known any more.
    Left,
}

impl Default for State {
    fn default() -> Self {
        Self::Told(BTreeMap::new())
    }
}

/// What a thread is making.
#[derive(Debug)]
struct Working {
    pair: Pair,
    /// Ends by itself once it is done, whether anybody still wants it or not.
    thread: JoinHandle<(Made, SignedDuration)>,
}

#[derive(Debug)]
enum Made {
    /// An index with its model.
    Index(Box<Index>),
    /// A model.
    Fitted(Box<Fitted>),
}

impl NearIndex {
    /// Is to be told all that is learned; then [`all_is_told`](Self::all_is_told). What is known of it already is not made anew.
    /// Where nodes are to add just these vectors, it does.
    pub(super) fn new(clock: SharedClock, vectors: Option<Arc<dyn Vectors>>, before: Option<Self>) -> Self {
        let (earlier, working, rests_until, turns) = match before {
            Some(before) => (before.pairs, before.working, before.rests_until, before.turns),
            None => (BTreeMap::new(), None, Timestamp::MIN, 0),
        };
        Self {
            pairs: BTreeMap::new(),
            earlier,
            current: Arc::default(),
            is_changed: true,
            working,
            rests_until,
            turns,
            clock,
            vectors,
        }
    }

    /// Nothing else is learned than what was told since this was new: what is the same as before is answered by the index that
    /// there was, brought to what is learned now.
    pub(super) fn all_is_told(&mut self) {
        for (pair, earlier) in mem::take(&mut self.earlier) {
            let Some(here) = self.pairs.get_mut(&pair) else {
                continue;
            };
            if let (State::Told(phrases), State::Kept(mut index)) = (&here.state, earlier.state) {
                index.replace(borrowed(phrases));
                here.state = State::Kept(index);
            }
            here.turn = earlier.turn.or(here.turn).filter(|_| here.is_lacking());
        }
        self.is_changed = true;
    }

    /// What a phrase means to everybody from now on, and what it meant before; `None`: nothing.
    pub(super) fn note(
        &mut self,
        (namespace, kind): (&str, Kind),
        phrase: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) {
        if before == after {
            return;
        }
        let here = self.pairs.entry((namespace.into(), kind)).or_default();
        here.phrases =
            (here.phrases + usize::from(after.is_some())).saturating_sub(usize::from(before.is_some()));
        here.change(phrase, before, after);
        if here.is_off || here.phrases > MOST_PHRASES {
            here.state = State::Left;
        }
        here.wait(&mut self.turns, &self.clock);
        self.is_changed = true;
    }

    /// Near answers are given in this way from now on.
    pub(super) fn set(&mut self, (namespace, kind): (&str, Kind), setting: &NearLookup) {
        let vectors = self.vectors.as_ref();
        let vectors = vectors.filter(|vectors| vectors.hash() == setting.vectors());
        let here = self.pairs.entry((namespace.into(), kind)).or_default();
        here.method = vectors.map_or(Method::Lexical, |vectors| Method::Vectors(Arc::clone(vectors)));
        here.is_off = setting.method() == NearMethod::Off;
        if here.is_off {
            here.state = State::Left;
        }
        here.wait(&mut self.turns, &self.clock);
        self.is_changed = true;
    }

    /// The indexes as of the last refresh.
    pub(super) fn current(&self) -> Arc<NearIndexes> {
        Arc::clone(&self.current)
    }

    /// Whether every model is of all that was learned.
    pub(super) fn is_current(&self) -> bool {
        self.working.is_none() && !self.pairs.values().any(Here::is_lacking)
    }

    /// Whether there is anything to do: something is made, or is to be and may begin.
    pub(super) fn is_due(&self) -> bool {
        match &self.working {
            Some(working) => working.thread.is_finished(),
            None => self.next().is_some(),
        }
    }

    /// Whether there is room again for what was left, so that all must be told anew.
    pub(super) fn is_lacking(&self) -> bool {
        let admitted = self.admitted();
        let is_left =
            |(pair, here): (&Pair, &Here)| matches!(here.state, State::Left) && admitted.contains(pair);
        self.pairs.iter().any(is_left)
    }

    /// Takes what a thread has made, and begins what is next. Says whether other indexes answer now.
    pub(super) fn refresh(&mut self) -> bool {
        self.take();
        self.leave_what_is_too_much();
        if self.working.is_none() {
            self.begin();
        }
        self.republish()
    }

    /// Has what was noted answer. Says whether anything did change.
    pub(super) fn republish(&mut self) -> bool {
        if !mem::take(&mut self.is_changed) {
            return false;
        }
        let is_set = |here: &Here| here.is_off || matches!(here.method, Method::Vectors(_));
        self.pairs.retain(|_, here| here.phrases > 0 || is_set(here));
        let admitted = self.admitted();
        let mut indexes = HashMap::<Arc<str>, Vec<(Kind, NearHere)>>::new();
        for (pair, here) in self.pairs.iter().filter(|(_, here)| here.phrases > 0) {
            let answers = match &here.state {
                State::Kept(index) => NearHere::Index(index.clone()),
                State::Left if !admitted.contains(pair) => NearHere::TooMany,
                State::Told(_) | State::Left => NearHere::Fitting,
            };
            let (namespace, kind) = pair;
            indexes
                .entry(Arc::clone(namespace))
                .or_default()
                .push((*kind, answers));
        }
        self.current = Arc::new(NearIndexes(indexes));
        true
    }

    /// The pairs that there is room for, one after the other in their order; one that is too large takes no room from others.
    fn admitted(&self) -> BTreeSet<Pair> {
        let mut phrases = 0;
        let has_room = |(_, here): &(&Pair, &Here)| {
            let is_admitted = !here.is_off && phrases + here.phrases <= MOST_PHRASES;
            phrases += if is_admitted { here.phrases } else { 0 };
            is_admitted
        };
        self.pairs
            .iter()
            .filter(has_room)
            .map(|(pair, _)| pair.clone())
            .collect()
    }

    fn leave_what_is_too_much(&mut self) {
        let admitted = self.admitted();
        for (pair, here) in &mut self.pairs {
            if !admitted.contains(pair) && !matches!(here.state, State::Left) {
                here.state = State::Left;
                self.is_changed = true;
            }
        }
    }

    fn take(&mut self) {
        let is_done = |working: &mut Working| working.thread.is_finished();
        let Some(Working { pair, thread }) = self.working.take_if(is_done) else {
            return;
        };
        // A thread that panicked has said so; what it was to make is begun anew.
        let made = thread.join().ok();
        if let Some((_, took)) = &made {
            let rest = took.saturating_mul(REST);
            self.rests_until = self.clock.now().saturating_add(rest).unwrap_or(Timestamp::MAX);
        }
        if let Some(here) = self.pairs.get_mut(&pair) {
            match made {
                Some((made, _)) => here.take(made),
                None => here.wait(&mut self.turns, &self.clock),
            }
            self.is_changed = true;
        }
    }

    /// What is to be made next, if it may begin: what has waited the longest.
    fn next(&self) -> Option<&Pair> {
        let now = self.clock.now();
        let is_rested = now >= self.rests_until;
        let may_begin = |here: &Here| {
            let waits_too_long = |turn: Turn| now.duration_since(turn.since) >= LONGEST_WAIT;
            here.is_lacking()
                && (is_rested
                    || here.turn.is_some_and(waits_too_long)
                    || matches!(here.state, State::Told(_)))
        };
        self.pairs
            .iter()
            .filter(|(_, here)| may_begin(here))
            .min_by_key(|(_, here)| here.turn.map(|turn| turn.number))
            .map(|(pair, _)| pair)
    }

    fn begin(&mut self) {
        let Some(pair) = self.next().cloned() else {
            return;
        };
        let Some(here) = self.pairs.get_mut(&pair) else {
            return;
        };
        let Some(work) = here.work() else {
            return;
        };
        let clock = Arc::clone(&self.clock);
        let timed = move || {
            let began = clock.now();
            (work(), clock.now().duration_since(began))
        };
        match background::spawn("emend-near", timed) {
            Ok(thread) => self.working = Some(Working { pair, thread }),
            // The system has no thread for it now.
            Err(_) => here.wait(&mut self.turns, &self.clock),
        }
    }

    /// Makes all that is not made, here and now.
    pub(super) fn settle(&mut self) {
        self.leave_what_is_too_much();
        if let Some(Working { pair, thread }) = self.working.take()
            && let Some(here) = self.pairs.get_mut(&pair)
            && let Ok((made, _)) = thread.join()
        {
            here.take(made);
        }
        for here in self.pairs.values_mut() {
            if let Some(work) = here.work() {
                here.take(work());
            }
        }
        self.is_changed = true;
    }
}

impl Here {
    /// Whether there is something to make.
    fn is_lacking(&self) -> bool {
        match &self.state {
            State::Told(phrases) => !phrases.is_empty(),
            State::Kept(index) => index.is_behind() || self.is_compared_otherwise(index),
            State::Left => false,
        }
    }

    /// Whether an index compares phrases otherwise than they are to be.
    fn is_compared_otherwise(&self, index: &Index) -> bool {
        index.method().hash() != self.method.hash()
    }

    /// Waits from now on, if it does not yet.
    fn wait(&mut self, turns: &mut u64, clock: &SharedClock) {
        if self.turn.is_none() && self.is_lacking() {
            *turns += 1;
            self.turn = Some(Turn {
                number: *turns,
                since: clock.now(),
            });
        }
    }

    fn change(&mut self, phrase: &str, before: Option<&str>, after: Option<&str>) {
        match &mut self.state {
            State::Told(phrases) => {
                match after {
                    Some(after) => phrases.insert(phrase.to_owned(), after.to_owned()),
                    None => phrases.remove(phrase),
                };
            }
            State::Kept(index) => learn(index, phrase, before, after),
            State::Left => {}
        }
    }

    /// What a thread is to make next.
    fn work(&mut self) -> Option<Box<dyn FnOnce() -> Made + Send>> {
        self.turn = None;
        let method = self.method.clone();
        match &self.state {
            State::Told(phrases) if !phrases.is_empty() => {
                let phrases = phrases.clone();
                Some(Box::new(move || made(method, borrowed(&phrases))))
            }
            State::Kept(index) if self.is_compared_otherwise(index) => {
                let index = index.clone();
                Some(Box::new(move || made(method, index.phrases())))
            }
            State::Kept(index) if index.is_behind() => {
                let index = index.clone();
                Some(Box::new(move || Made::Fitted(Box::new(index.refit()))))
            }
            State::Told(_) | State::Kept(_) | State::Left => None,
        }
    }

    /// Takes what was made; what changed since counts.
    fn take(&mut self, made: Made) {
        match (made, &mut self.state) {
            (Made::Index(mut index), State::Told(phrases)) => {
                index.replace(borrowed(phrases));
                self.state = State::Kept(*index);
            }
            (Made::Index(mut index), State::Kept(before)) => {
                index.replace(before.phrases());
                *before = *index;
            }
            (Made::Fitted(fitted), State::Kept(index)) => index.adopt(*fitted),
            _ => {}
        }
        if !self.is_lacking() {
            self.turn = None;
        }
    }
}

/// An index of these phrases with its model.
fn made<'p>(method: Method, phrases: impl Iterator<Item = (&'p str, &'p str)>) -> Made {
    let mut index = Index::new(method);
    index.replace(phrases);
    let fitted = index.refit();
    index.adopt(fitted);
    Made::Index(Box::new(index))
}

fn borrowed(phrases: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    phrases.iter().map(|(phrase, choice)| (&**phrase, &**choice))
}

fn learn(index: &mut Index, phrase: &str, before: Option<&str>, after: Option<&str>) {
    if let Some(before) = before {
        index.forget(phrase, before);
    }
    if let Some(after) = after {
        index.learn(phrase, after);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use emend_base::{Clock as _, ManualClock};

    use super::*;

    const KIND: Kind = Kind::InvocationPhrase;

    fn index() -> (NearIndex, ManualClock) {
        let clock = ManualClock::default();
        (NearIndex::new(clock.shared(), None, None), clock)
    }

    fn tell(index: &mut NearIndex, namespace: &str, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let (phrase, choice) = (
                format!("a phrase with number {number}"),
                format!("c{}", number % 2),
            );
            index.note((namespace, KIND), &phrase, None, Some(&choice));
        }
    }

    /// What is being made.
    fn made(index: &NearIndex) -> Option<&str> {
        index.working.as_ref().map(|working| &*working.pair.0)
    }

    /// Waits until what is being made is made, and takes it.
    fn settled(index: &mut NearIndex) {
        let is_finished = |working: &Working| working.thread.is_finished();
        while !index.working.as_ref().is_none_or(is_finished) {
            thread::yield_now();
        }
        index.take();
    }

    /// Waits until what is being made is made, and takes it a minute later, when nothing rests any more.
    fn go_on(index: &mut NearIndex, clock: &ManualClock) {
        settled(index);
        clock.advance(SignedDuration::from_mins(1));
        index.refresh();
    }

    fn status(index: &NearIndex, namespace: &str) -> &'static str {
        let current = index.current.0.get(namespace).and_then(|here| here.first());
        match current.map(|(_, here)| here) {
            None => "none",
            Some(NearHere::Fitting) => "fitting",
            Some(NearHere::Index(_)) => "index",
            Some(NearHere::TooMany) => "too many",
        }
    }

    #[test]
    fn what_waits_the_longest_is_made_first_however_often_another_changes() {
        let (mut index, clock) = index();
        for namespace in ["a", "b", "c"] {
            tell(&mut index, namespace, 0..30);
        }
        index.refresh();
        let mut order = Vec::new();
        for number in 30..36 {
            order.push(made(&index).unwrap_or("nothing").to_owned());
            // The first namespace changes all the time, the second once.
            tell(&mut index, "a", number..number + 1);
            if number == 32 {
                tell(&mut index, "b", number..number + 1);
            }
            go_on(&mut index, &clock);
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
    }

    #[test]
    fn a_first_model_does_not_wait_until_the_last_fit_was_long_enough_ago() {
        let (mut index, clock) = index();
        tell(&mut index, "a", 0..30);
        index.refresh();
        go_on(&mut index, &clock);
        index.rests_until = clock.now().saturating_add(LONGEST_WAIT).unwrap();
        tell(&mut index, "a", 30..31);
        assert!(!index.is_due(), "it rests");
        tell(&mut index, "b", 0..30);
        assert!(index.is_due());
        index.refresh();
        assert_eq!(made(&index), Some("b"));
    }

    #[test]
    fn of_several_that_change_at_once_the_last_waits_no_longer_for_rest_than_the_first() {
        let (mut index, clock) = index();
        let namespaces = ["a", "b", "c", "d"];
        for namespace in namespaces {
            tell(&mut index, namespace, 0..30);
        }
        index.refresh();
        while !index.is_current() {
            go_on(&mut index, &clock);
        }
        let changed_at = clock.now();
        for namespace in namespaces {
            tell(&mut index, namespace, 30..31);
        }
        let mut order = Vec::new();
        while !index.is_current() {
            // After each fit rest is due that takes longer than anything may wait.
            index.rests_until = clock.now().saturating_add(LONGEST_WAIT * 2).unwrap();
            while !index.is_due() {
                clock.advance(SignedDuration::from_secs(1));
            }
            index.refresh();
            order.push(made(&index).unwrap_or("nothing").to_owned());
            settled(&mut index);
        }
        assert_eq!(order, namespaces);
        assert_eq!(clock.now().duration_since(changed_at), LONGEST_WAIT);
    }

    #[test]
    fn one_namespace_that_is_too_large_leaves_the_others_their_room() {
        let (mut index, clock) = index();
        tell(&mut index, "a", 0..MOST_PHRASES + 1);
        tell(&mut index, "b", 0..30);
        index.refresh();
        go_on(&mut index, &clock);
        assert_eq!([status(&index, "a"), status(&index, "b")], ["too many", "index"]);
        assert!(index.is_current() && !index.is_lacking());
        index.note(("a", KIND), "a phrase with number 1", Some("c1"), None);
        assert!(index.is_lacking(), "it has room now");
    }

    #[test]
    fn what_is_told_anew_keeps_its_models_and_begins_no_second_fit_beside_one() {
        let (mut index, clock) = index();
        tell(&mut index, "a", 0..30);
        tell(&mut index, "b", 0..30);
        index.refresh();
        go_on(&mut index, &clock);
        assert_eq!(made(&index), Some("b"));
        let mut index = NearIndex::new(clock.shared(), None, Some(index));
        tell(&mut index, "a", 0..30);
        tell(&mut index, "b", 0..31);
        index.all_is_told();
        index.republish();
        assert_eq!([status(&index, "a"), status(&index, "b")], ["index", "fitting"]);
        assert_eq!(made(&index), Some("b"), "its thread goes on");
        go_on(&mut index, &clock);
        assert_eq!(status(&index, "b"), "index");
        assert_eq!(made(&index), Some("b"), "one phrase came since");
        go_on(&mut index, &clock);
        assert!(index.is_current(), "and nothing else is to be made");
    }

    #[test]
    fn what_is_switched_off_takes_neither_memory_nor_room_until_it_is_switched_on() {
        let (mut index, clock) = index();
        tell(&mut index, "a", 0..MOST_PHRASES);
        index.set(("a", KIND), &"method=off".parse().unwrap());
        tell(&mut index, "a", MOST_PHRASES..MOST_PHRASES + 1);
        tell(&mut index, "b", 0..30);
        index.refresh();
        assert_eq!(made(&index), Some("b"));
        go_on(&mut index, &clock);
        assert!(index.is_current() && !index.is_lacking());
        assert!(matches!(index.pairs[&("a".into(), KIND)].state, State::Left));
        index.note(("a", KIND), "a phrase with number 0", Some("c0"), None);
        index.set(("a", KIND), &NearLookup::default());
        assert!(index.is_lacking(), "it must be told anew");
    }

    #[test]
    fn what_is_gone_holds_no_memory() {
        let (mut index, clock) = index();
        tell(&mut index, "a", 0..30);
        index.refresh();
        go_on(&mut index, &clock);
        for number in 0..30 {
            let (phrase, choice) = (
                format!("a phrase with number {number}"),
                format!("c{}", number % 2),
            );
            index.note(("a", KIND), &phrase, Some(&choice), None);
        }
        index.republish();
        assert_eq!(status(&index, "a"), "none");
        assert!(index.pairs.is_empty() && index.is_current());
    }
}
