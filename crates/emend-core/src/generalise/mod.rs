//! What a phrase that nobody corrected probably means, by what was learned for similar ones.
//!
//! An [`Index`] holds the learned phrases of one namespace and kind. A classifier and how sure it may be are fitted to all of
//! them at once, which takes seconds: [`Index::refit`] on a clone, away from look-ups, then [`Index::adopt`]. What is
//! learned after that is found by its nearest phrases until the next time; what is forgotten is no reason any more, and a
//! choice that no phrase has is not answered.
//!
//! Everything follows from the method, the phrases that were fitted and those in force, whatever their order and
//! whatever the machine: no platform mathematics, one order of summation. [`ModelRevision`] stands for all three. Equal
//! revisions give equal answers, byte for byte, where equal phrases have equal vectors: those of words and of static vectors do on
//! every machine, those of an encoder on machines of one kind.

mod arithmetic;
mod calibration;
mod classifier;
mod features;
mod model;
mod neighbours;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
};

use imbl::OrdMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use self::{
    features::Features,
    model::{Looked, MAX_CHARACTERS, MAX_PHRASES, Model},
    neighbours::{ByHash, Learned, Neighbours},
};
use crate::ids::length_prefixed;

/// Changes whenever the same phrases would be answered differently.
const VERSION: &[u8] = b"3";
/// Phrases that are named as reasons, at most.
const REASONS: usize = 3;

/// Vectors of phrases, from files that all nodes have.
pub trait Vectors: fmt::Debug + Send + Sync {
    /// What tells one set of files from another: a hash of their bytes.
    fn hash(&self) -> &str;

    /// The vector of a phrase in normal form, of the same length each time; none if nothing of it is known.
    fn vector(&self, phrase: &str) -> Option<Vec<f32>>;

    /// The same of a phrase that is learned, or of a choice's name: each fit asks for all of them again, so what takes long to make
    /// is to be kept.
    fn of_learned(&self, phrase: &str) -> Option<Vec<f32>> {
        self.vector(phrase)
    }
}

/// How phrases are compared.
#[derive(Debug, Clone, Default)]
pub enum Method {
    /// By their words and parts of words.
    #[default]
    Lexical,
    /// By these vectors, too.
    Vectors(Arc<dyn Vectors>),
}

impl Method {
    /// What tells one set of files from another; empty: by words alone.
    pub fn hash(&self) -> &str {
        match self {
            Self::Lexical => "",
            Self::Vectors(vectors) => vectors.hash(),
        }
    }

    /// The vector of a phrase that is looked up, if there are any.
    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        match self {
            Self::Lexical => None,
            Self::Vectors(vectors) => vectors.vector(phrase),
        }
    }

    /// The same of a phrase that is learned, or of a choice's name.
    fn vector_of_learned(&self, phrase: &str) -> Option<Vec<f32>> {
        match self {
            Self::Lexical => None,
            Self::Vectors(vectors) => vectors.of_learned(phrase),
        }
    }
}

/// Identifies what near answers follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModelRevision(u128);

impl fmt::Display for ModelRevision {
    /// 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A learned phrase that is similar.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// In normal form.
    pub phrase: Arc<str>,
    /// What was learned for it.
    pub choice: Arc<str>,
    /// 0 to 1, of equal wording.
    pub similarity: f32,
}

/// An answer to a phrase that was not learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The verb or entity id, never a prohibited one.
    pub choice: Arc<str>,
    /// The probability that it is right, above 0 and below 1.
    pub confidence: f32,
    /// The nearest phrases that were learned for it, the nearest first; at most three, and none if no word is alike.
    pub because: Vec<Neighbour>,
    /// What the answer follows from.
    pub revision: ModelRevision,
}

/// What [`Index::refit`] made of the phrases that were in force.
#[derive(Debug, Clone)]
pub struct Fitted {
    model: Arc<Model>,
    digest: u128,
    /// Where more were learned than are fitted: phrases whose hash is above it are left out.
    limit: u64,
}

/// The learned phrases of one namespace and kind. Cheap to clone: clones share what they hold until one changes.
#[derive(Debug, Clone, Default)]
pub struct Index {
    method: Method,
    /// What is in force.
    learned: OrdMap<Arc<str>, Arc<str>>,
    /// How many phrases have each choice.
    choices: OrdMap<Arc<str>, usize>,
    digest: u128,
    fitted: Option<Fitted>,
    /// What was learned since, by its features.
    pending: Arc<Pending>,
    /// Whether all fitted phrases are still in force.
    intact: bool,
}

#[derive(Debug, Clone, Default)]
struct Pending {
    neighbours: Neighbours<ByHash>,
    known: HashSet<Learned>,
}

impl Index {
    /// An index of nothing.
    pub fn new(method: Method) -> Self {
        Self {
            method,
            intact: true,
            ..Self::default()
        }
    }

    /// A phrase in normal form means this choice from now on.
    pub fn learn(&mut self, phrase: &str, choice: &str) {
        if self
            .learned
            .get(phrase)
            .is_some_and(|learned| **learned == *choice)
        {
            return;
        }
        if let Some(before) = self.learned.get(phrase).cloned() {
            self.forget(phrase, &before);
        }
        let learned = Learned {
            phrase: phrase.into(),
            choice: choice.into(),
        };
        self.digest = self.digest.wrapping_add(hash(&learned));
        *self.choices.entry(learned.choice.clone()).or_default() += 1;
        self.learned
            .insert(learned.phrase.clone(), learned.choice.clone());
        self.add_pending(learned);
        self.drop_pending_once_fitted();
    }

    /// A phrase no longer means this choice. Nothing happens if it did not.
    pub fn forget(&mut self, phrase: &str, choice: &str) {
        let Some((phrase, choice)) = self
            .learned
            .get_key_value(phrase)
            .filter(|(_, learned)| ***learned == *choice)
            .map(|(phrase, choice)| (phrase.clone(), choice.clone()))
        else {
            return;
        };
        self.learned.remove(&*phrase);
        match self.choices.get_mut(&*choice) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.choices.remove(&*choice);
            }
        }
        let forgotten = Learned { phrase, choice };
        self.digest = self.digest.wrapping_sub(hash(&forgotten));
        self.intact &= !self
            .fitted
            .as_ref()
            .is_some_and(|fitted| fitted.holds(&forgotten));
        self.drop_pending_once_fitted();
    }

    /// These phrases in normal form mean these choices from now on, and no other phrase means anything. What is the same
    /// already costs a comparison.
    pub fn replace<'p>(&mut self, phrases: impl IntoIterator<Item = (&'p str, &'p str)>) {
        let phrases: BTreeMap<&str, &str> = phrases.into_iter().collect();
        let gone: Vec<Learned> = self
            .learned
            .iter()
            .filter(|(phrase, _)| !phrases.contains_key(&***phrase))
            .map(learned)
            .collect();
        for Learned { phrase, choice } in gone {
            self.forget(&phrase, &choice);
        }
        for (phrase, choice) in phrases {
            self.learn(phrase, choice);
        }
    }

    /// Fits the phrases in force; takes seconds for ten thousand. Ask a clone, away from look-ups.
    #[must_use]
    pub fn refit(&self) -> Fitted {
        let mut learned: Vec<Learned> = self.learned.iter().map(learned).collect();
        let limit = limit(&learned, MAX_PHRASES, MAX_CHARACTERS);
        learned.retain(|learned| place(&learned.phrase) <= limit);
        learned.shrink_to_fit();
        Fitted {
            model: Arc::new(Model::fit(&self.method, learned)),
            digest: self.digest,
            limit,
        }
    }

    /// Answers from what was fitted, and from what has been learned and forgotten since.
    pub fn adopt(&mut self, fitted: Fitted) {
        self.intact = fitted
            .model
            .learned()
            .iter()
            .all(|learned| self.is_learned(learned));
        self.fitted = Some(fitted);
        self.pending = Arc::default();
        let all: Vec<Learned> = self.learned.iter().map(learned).collect();
        for learned in all {
            self.add_pending(learned);
        }
    }

    /// Whether the phrases in force are others than those that were fitted.
    pub fn is_behind(&self) -> bool {
        self.fitted
            .as_ref()
            .map_or(!self.learned.is_empty(), |fitted| fitted.digest != self.digest)
    }

    /// How phrases are compared.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The phrases in force and what they mean, sorted.
    pub fn phrases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.learned.iter().map(|(phrase, choice)| (&**phrase, &**choice))
    }

    /// How many phrases are in force.
    pub fn len(&self) -> usize {
        self.learned.len()
    }

    /// Whether no phrase is in force.
    pub fn is_empty(&self) -> bool {
        self.learned.is_empty()
    }

    /// What answers follow from.
    pub fn revision(&self) -> ModelRevision {
        let fitted = self.fitted.as_ref().map_or(0, |fitted| fitted.digest);
        ModelRevision(xxh3_128(&length_prefixed(&[
            VERSION,
            self.method.hash().as_bytes(),
            &fitted.to_le_bytes(),
            &self.digest.to_le_bytes(),
        ])))
    }

    /// About how many bytes look-ups need.
    pub fn bytes(&self) -> usize {
        let texts: usize = self
            .learned
            .iter()
            .map(|(phrase, choice)| phrase.len() + choice.len() + 64)
            .sum();
        let model = self.fitted.as_ref().map_or(0, |fitted| fitted.model.bytes());
        model + self.pending.neighbours.bytes() + texts
    }

    /// What a phrase in normal form probably means, if that is at least this probable. Nothing as long as too little was
    /// learned to say how probable, and never a choice that `is_prohibited`.
    pub fn near(
        &self,
        phrase: &str,
        is_prohibited: &dyn Fn(&str) -> bool,
        min_confidence: f32,
    ) -> Option<Near> {
        let model = &self.fitted.as_ref()?.model;
        let looked = model.look(&self.method, phrase)?;
        let may_answer = |choice: &str| self.choices.contains_key(choice) && !is_prohibited(choice);
        let guess = model.guess(&looked, may_answer, |learned| self.is_in_force(learned));
        let pending = self.pending.neighbours.similarities(looked.weighed());
        let of_pending = self.guess_pending(model, &pending, is_prohibited);
        let (choice, confidence) = [guess, of_pending]
            .into_iter()
            .flatten()
            .reduce(|best, other| if other.1 > best.1 { other } else { best })?;
        // Not `<`: where it is no number, nothing is answered.
        (confidence >= min_confidence).then(|| Near {
            because: self.reasons(model, &looked, &pending, &choice),
            choice,
            confidence,
            revision: self.revision(),
        })
    }

    fn guess_pending(
        &self,
        model: &Model,
        similarities: &[f32],
        is_prohibited: &dyn Fn(&str) -> bool,
    ) -> Option<(Arc<str>, f32)> {
        let neighbours = &self.pending.neighbours;
        let nearest = neighbours.nearest(similarities, 1, |_, learned| {
            self.is_learned(learned) && !is_prohibited(&learned.choice)
        });
        let &(at, similarity) = nearest.first()?;
        let confidence = model.confidence_of_neighbour(similarity)?;
        Some((neighbours.learned()[at].choice.clone(), confidence))
    }

    /// The nearest phrases that were learned for a choice.
    fn reasons(&self, model: &Model, looked: &Looked, pending: &[f32], choice: &str) -> Vec<Neighbour> {
        let fitted = model.reasons(looked, choice, REASONS, |learned| self.is_in_force(learned));
        let newer = self.pending.neighbours.nearest(pending, REASONS, |_, learned| {
            *learned.choice == *choice && self.is_learned(learned)
        });
        let fitted = fitted
            .into_iter()
            .map(|(at, similarity)| (&model.learned()[at], similarity));
        let newer = newer
            .into_iter()
            .map(|(at, similarity)| (&self.pending.neighbours.learned()[at], similarity));
        let mut reasons: Vec<Neighbour> = fitted
            .chain(newer)
            .map(|(learned, similarity)| Neighbour {
                phrase: learned.phrase.clone(),
                choice: learned.choice.clone(),
                similarity: similarity.min(1.0),
            })
            .collect();
        reasons.sort_by(|one, other| {
            let by_similarity = other.similarity.total_cmp(&one.similarity);
            by_similarity.then_with(|| one.phrase.cmp(&other.phrase))
        });
        reasons.truncate(REASONS);
        reasons
    }

    fn add_pending(&mut self, learned: Learned) {
        let Some(fitted) = &self.fitted else { return };
        let left_out = place(&learned.phrase) > fitted.limit;
        if left_out || fitted.holds(&learned) || self.pending.known.contains(&learned) {
            return;
        }
        let weighed = fitted.model.weighed(&Features::of(&learned.phrase));
        let pending = Arc::make_mut(&mut self.pending);
        pending.known.insert(learned.clone());
        pending.neighbours.add(learned, &weighed);
    }

    /// Where exactly the fitted phrases are in force again, nothing that came and went meanwhile is held.
    fn drop_pending_once_fitted(&mut self) {
        if !self.is_behind() && self.fitted.is_some() {
            self.intact = true;
            if !self.pending.known.is_empty() {
                self.pending = Arc::default();
            }
        }
    }

    /// Whether a fitted phrase is in force.
    fn is_in_force(&self, fitted: &Learned) -> bool {
        self.intact || self.is_learned(fitted)
    }

    fn is_learned(&self, learned: &Learned) -> bool {
        self.learned.get(&*learned.phrase) == Some(&learned.choice)
    }
}

impl Fitted {
    fn holds(&self, learned: &Learned) -> bool {
        self.model.learned().binary_search(learned).is_ok()
    }
}

fn learned((phrase, choice): (&Arc<str>, &Arc<str>)) -> Learned {
    Learned {
        phrase: phrase.clone(),
        choice: choice.clone(),
    }
}

/// Up to which place phrases are fitted, so that there are at most so many, and so many characters in all.
fn limit(learned: &[Learned], most_phrases: usize, most_characters: usize) -> u64 {
    let count = |learned: &Learned| (place(&learned.phrase), learned.phrase.chars().count());
    let mut places: Vec<(u64, usize)> = learned.iter().map(count).collect();
    let characters: usize = places.iter().map(|(_, characters)| characters).sum();
    if places.len() <= most_phrases && characters <= most_characters {
        return u64::MAX;
    }
    places.sort_unstable();
    let (mut limit, mut all) = (0, 0);
    for (place, characters) in places.into_iter().take(most_phrases) {
        all += characters;
        if all > most_characters {
            break;
        }
        limit = place;
    }
    limit
}

/// Decides which phrases are fitted where there are too many.
fn place(phrase: &str) -> u64 {
    xxh3_64(phrase.as_bytes())
}

fn hash(learned: &Learned) -> u128 {
    xxh3_128(&length_prefixed(&[
        learned.phrase.as_bytes(),
        learned.choice.as_bytes(),
    ]))
}
