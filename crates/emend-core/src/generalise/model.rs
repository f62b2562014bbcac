//! What is made of the learned phrases at once: vocabulary, classifier, neighbours, and how sure each may be.

use std::sync::Arc;

use super::{
    Method,
    arithmetic::log_odds,
    calibration::{Calibration, MIN_ANSWERS, Signs},
    classifier::{Classifier, Weights},
    features::Features,
    neighbours::{ByNumber, Learned, Neighbours},
    vocabulary::{MAX_ROWS, Read, Vector, Vocabulary, Weighed},
};
use crate::normalize::normalize;

/// Phrases that are fitted at most, and their characters.
pub(super) const MAX_PHRASES: usize = 20_000;
pub(super) const MAX_CHARACTERS: usize = 2_000_000;
/// Choices that are told apart by a classifier; among more only the nearest phrases answer, as among names of things.
const MAX_CHOICES: usize = 500;
/// Weights of a classifier at most, of a byte each: as many as the largest vocabulary takes with 150 choices. With more choices
/// fewer features are known.
const MAX_WEIGHTS: usize = 150 * MAX_ROWS;
/// Phrases that a choice has for how sure a classifier may be to be learned: with fewer, most of what is known of the choice is
/// left out with a phrase, and what is answered then says little about what is answered with all. By measurement
/// (docs/learning.md).
const ENOUGH_PHRASES: usize = 3;
/// Parts of which each is answered by a classifier fitted to the others.
const FOLDS: usize = 8;
/// In each fold one of so many choices is left out with all its phrases.
const STRANGE: usize = 8;

/// How long a phrase's vector is beside its features, which make up about 1.7.
const VECTORS_WEIGHT: f32 = 2.0;

/// A model of learned phrases.
#[derive(Debug)]
pub(super) struct Model {
    vocabulary: Vocabulary,
    /// Sorted.
    choices: Vec<Arc<str>>,
    /// The index in `choices` of each phrase of `neighbours`.
    meanings: Vec<usize>,
    /// The phrases of each choice, by their places in `neighbours`.
    phrases: Vec<Vec<u32>>,
    neighbours: Neighbours<ByNumber>,
    classifier: Option<(Classifier, Calibration)>,
    by_neighbour: Option<Calibration>,
}

/// Answers to phrases that were left out.
#[derive(Debug, Default)]
struct Answers {
    /// To phrases whose choice was learned, and whether they were right.
    to_known: Vec<(Signs, bool)>,
    /// To phrases whose choice was not.
    to_strangers: Vec<Signs>,
}

/// What a model makes of a phrase.
pub(super) struct Looked {
    read: Read,
    similarities: Vec<f32>,
}

impl Looked {
    pub(super) fn weighed(&self) -> &[Weighed] {
        &self.read.weighed
    }
}

impl Model {
    /// Fits phrases that are sorted and of which none is there twice.
    pub(super) fn fit(method: &Method, learned: Vec<Learned>) -> Self {
        let features: Vec<Features> = learned
            .iter()
            .map(|learned| Features::of(&learned.phrase))
            .collect();
        let mut choices: Vec<Arc<str>> = learned.iter().map(|learned| learned.choice.clone()).collect();
        choices.sort_unstable();
        choices.dedup();
        let vocabulary = Vocabulary::of(features.iter(), most_rows(choices.len()));
        let meanings: Vec<usize> = learned
            .iter()
            .filter_map(|learned| choices.binary_search(&learned.choice).ok())
            .collect();
        let mut phrases = vec![Vec::new(); choices.len()];
        for (place, &choice) in (0..).zip(&meanings) {
            phrases[choice].push(place);
        }
        let mut vectors = Vec::with_capacity(learned.len());
        let dense: Vec<Option<Vec<f32>>> = learned
            .iter()
            .map(|learned| method.vector_of_learned(&learned.phrase))
            .collect();
        let weighed = features.iter().zip(dense).map(|(features, dense)| {
            let Read { vector, weighed } = read(&vocabulary, features, dense);
            vectors.push(vector);
            weighed
        });
        let neighbours = Neighbours::new(learned, vocabulary.len(), weighed);
        let mut model = Self {
            vocabulary,
            choices,
            meanings,
            phrases,
            neighbours,
            classifier: None,
            by_neighbour: None,
        };
        if model.choices.len() > 1 {
            model.calibrate(method, &features, vectors);
        }
        model
    }

    /// Learns how sure answers may be from answers to phrases that are left out. Where too few of these could be right, nothing
    /// says how sure, and nothing is answered.
    fn calibrate(&mut self, method: &Method, features: &[Features], vectors: Vec<Vector>) {
        let has_classifier = self.choices.len() <= MAX_CHOICES;
        let most_have_enough = 2 * self.phrases_of_choices_with(ENOUGH_PHRASES) >= features.len();
        if self.phrases_of_choices_with(2) < MIN_ANSWERS || has_classifier && !most_have_enough {
            return;
        }
        let alone: Vec<(Signs, bool)> = features
            .iter()
            .enumerate()
            .map(|(at, features)| {
                let nearest = self.nearest(features, |other| other != at);
                let right = nearest.is_some_and(|(nearest, _)| self.meanings[nearest] == self.meanings[at]);
                (
                    [nearest.map_or(0.0, |(_, similarity)| similarity), 0.0, 0.0],
                    right,
                )
            })
            .collect();
        self.by_neighbour = Calibration::of(&alone, &[]);
        if !has_classifier {
            return;
        }
        let names = self.choices.iter().enumerate().map(|(choice, name)| {
            let name = normalize(name);
            let dense = method.vector_of_learned(&name);
            let read = read(&self.vocabulary, &Features::of(&name), dense);
            (read.vector, choice)
        });
        let examples: Vec<(Vector, usize)> = vectors
            .into_iter()
            .zip(self.meanings.iter().copied())
            .chain(names)
            .collect();
        let mut answers = Answers::default();
        for fold in 0..FOLDS {
            self.answer_without(fold, &examples, features, &mut answers);
        }
        self.classifier = Calibration::of(&answers.to_known, &answers.to_strangers)
            .map(|calibration| (self.classify(&examples, |_| true), calibration));
    }

    /// How many phrases stand for choices that have at least so many.
    fn phrases_of_choices_with(&self, least: usize) -> usize {
        let counts = self.phrases.iter().map(Vec::len);
        counts.filter(|&count| count >= least).sum()
    }

    /// A classifier of the examples that count.
    fn classify(&self, examples: &[(Vector, usize)], counts: impl Fn(usize) -> bool) -> Classifier {
        let counted: Vec<(&Vector, usize)> = examples
            .iter()
            .enumerate()
            .filter(|&(at, _)| counts(at))
            .map(|(_, (vector, choice))| (vector, *choice))
            .collect();
        let rows = examples
            .iter()
            .flat_map(|(vector, _)| vector)
            .map(|&(row, _)| row as usize + 1);
        let rows = rows.max().unwrap_or(0).max(self.vocabulary.rows() as usize);
        Classifier::new(&Weights::fit(&counted, rows, self.choices.len()))
    }

    /// What would be answered had nothing of a fold been learned: neither every so manieth phrase, nor some choices at all.
    fn answer_without(
        &self,
        fold: usize,
        examples: &[(Vector, usize)],
        features: &[Features],
        answers: &mut Answers,
    ) {
        let phrases = features.len();
        let strange = |at: usize| examples[at].1 % STRANGE == fold;
        let left_out = |at: usize| strange(at) || at < phrases && at % FOLDS == fold;
        let classifier = self.classify(examples, |at| !left_out(at));
        for at in (0..phrases).filter(|&at| at % FOLDS == fold) {
            let (vector, meaning) = &examples[at];
            let probabilities = classifier.probabilities(vector);
            let Some((choice, probability)) = likeliest(&probabilities, |choice| choice % STRANGE != fold)
            else {
                continue;
            };
            let similarities = self.similarities(&features[at]);
            let signs = self.signs(probability, choice, &similarities, |other| !left_out(other));
            if strange(at) {
                answers.to_strangers.push(signs);
            } else {
                answers.to_known.push((signs, choice == *meaning));
            }
        }
    }

    fn similarities(&self, features: &Features) -> Vec<f32> {
        self.neighbours
            .similarities(&self.vocabulary.read(features).weighed)
    }

    fn nearest(&self, features: &Features, counts: impl Fn(usize) -> bool) -> Option<(usize, f32)> {
        let similarities = self.similarities(features);
        let nearest = self
            .neighbours
            .nearest(&similarities, 1, |other, _| counts(other));
        nearest.first().copied()
    }

    /// What there is of a phrase; nothing if it has no word and no vector.
    pub(super) fn look(&self, method: &Method, phrase: &str) -> Option<Looked> {
        let read = read(&self.vocabulary, &Features::of(phrase), method.vector(phrase));
        (!read.weighed.is_empty() || !read.vector.is_empty()).then(|| Looked {
            similarities: self.neighbours.similarities(&read.weighed),
            read,
        })
    }

    /// The likeliest choice that may be answered, and how sure that is. `is_in_force` says of a fitted phrase whether it
    /// still is.
    pub(super) fn guess(
        &self,
        looked: &Looked,
        may_answer: impl Fn(&str) -> bool,
        is_in_force: impl Fn(&Learned) -> bool,
    ) -> Option<(Arc<str>, f32)> {
        let Some((classifier, calibration)) = &self.classifier else {
            let nearest = self.neighbours.nearest(&looked.similarities, 1, |_, learned| {
                may_answer(&learned.choice) && is_in_force(learned)
            });
            let &(at, similarity) = nearest.first()?;
            let choice = self.learned()[at].choice.clone();
            return Some((choice, self.confidence_of_neighbour(similarity)?));
        };
        let probabilities = classifier.probabilities(&looked.read.vector);
        let (choice, probability) = likeliest(&probabilities, |choice| may_answer(&self.choices[choice]))?;
        let learned = self.learned();
        let signs = self.signs(probability, choice, &looked.similarities, |at| {
            is_in_force(&learned[at])
        });
        Some((self.choices[choice].clone(), calibration.confidence(signs)))
    }

    /// What speaks for a choice: its probability, how near a phrase of it is, and how much nearer than those of others.
    fn signs(
        &self,
        probability: f32,
        choice: usize,
        similarities: &[f32],
        counts: impl Fn(usize) -> bool,
    ) -> Signs {
        let similarity =
            |nearest: Vec<(usize, f32)>| nearest.first().map_or(0.0, |&(_, similarity)| similarity);
        let own = self.nearest_of(choice, similarities, 1, |at, _| counts(at));
        // The choice's own are the nearest as a rule. Were they still there, each would have those beside it looked at one by one.
        let mut similarities = similarities.to_vec();
        for &own in &self.phrases[choice] {
            similarities[own as usize] = 0.0;
        }
        let others = self.neighbours.nearest(&similarities, 1, |at, _| counts(at));
        let (own, others) = (similarity(own), similarity(others));
        [log_odds(probability), own, own - others]
    }

    /// How sure the nearest phrase alone may be; `None` if too little was learned to say.
    pub(super) fn confidence_of_neighbour(&self, similarity: f32) -> Option<f32> {
        Some(self.by_neighbour?.confidence([similarity, 0.0, 0.0]))
    }

    /// The nearest phrases of a choice that `counts` accepts, of one that is not fitted none.
    pub(super) fn reasons(
        &self,
        looked: &Looked,
        choice: &str,
        count: usize,
        counts: impl Fn(&Learned) -> bool,
    ) -> Vec<(usize, f32)> {
        let choice = self.choices.binary_search_by(|known| (**known).cmp(choice));
        choice.map_or_else(
            |_| Vec::new(),
            |choice| self.nearest_of(choice, &looked.similarities, count, |_, learned| counts(learned)),
        )
    }

    fn nearest_of(
        &self,
        choice: usize,
        similarities: &[f32],
        count: usize,
        counts: impl Fn(usize, &Learned) -> bool,
    ) -> Vec<(usize, f32)> {
        let places = &self.phrases[choice];
        self.neighbours.nearest_among(places, similarities, count, counts)
    }

    /// The fitted phrases, sorted.
    pub(super) fn learned(&self) -> &[Learned] {
        self.neighbours.learned()
    }

    /// What a phrase is found by.
    pub(super) fn weighed(&self, features: &Features) -> Vec<Weighed> {
        self.vocabulary.read(features).weighed
    }

    /// About how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        let classifier = self
            .classifier
            .as_ref()
            .map_or(0, |(classifier, _)| classifier.bytes());
        let places = self.meanings.len() * (size_of::<usize>() + size_of::<u32>());
        classifier + places + self.neighbours.bytes() + self.vocabulary.bytes()
    }
}

/// How many features are known where there are so many choices.
fn most_rows(choices: usize) -> usize {
    if choices > MAX_CHOICES {
        MAX_ROWS
    } else {
        MAX_ROWS.min(MAX_WEIGHTS / choices.max(1))
    }
}

/// A phrase by its features and, after those, its vector.
fn read(vocabulary: &Vocabulary, features: &Features, dense: Option<Vec<f32>>) -> Read {
    let mut read = vocabulary.read(features);
    if let Some(dense) = dense {
        let squares: f32 = dense.iter().map(|value| value * value).sum();
        let factor = VECTORS_WEIGHT / squares.sqrt().max(f32::MIN_POSITIVE);
        let rows = (vocabulary.rows()..).zip(dense);
        read.vector.extend(rows.map(|(row, value)| (row, value * factor)));
    }
    read
}

/// The first of the likeliest choices; none whose probability is no number.
fn likeliest(probabilities: &[f32], may_answer: impl Fn(usize) -> bool) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for (choice, &probability) in probabilities.iter().enumerate() {
        let most = best.map_or(f32::NEG_INFINITY, |(_, most)| most);
        if probability > most && may_answer(choice) {
            best = Some((choice, probability));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phrases of so many choices, so many of each.
    fn fitted(choices: usize, each: usize) -> Model {
        let mut learned: Vec<Learned> = (0..choices)
            .flat_map(|choice| {
                (0..each).map(move |number| Learned {
                    phrase: format!("please do number {choice} now, {number}").into(),
                    choice: format!("c{choice}").into(),
                })
            })
            .collect();
        learned.sort();
        Model::fit(&Method::Lexical, learned)
    }

    #[test]
    fn how_sure_is_not_learned_where_answers_without_a_phrase_say_too_little() {
        let calibrated = |choices, each| {
            let model = fitted(choices, each);
            (model.classifier.is_some(), model.by_neighbour.is_some())
        };
        assert_eq!(calibrated(40, 1), (false, false), "no answer could be right");
        assert_eq!(
            calibrated(20, 2),
            (false, false),
            "half of a choice is left out with a phrase"
        );
        assert_eq!(calibrated(10, 3), (true, true));
        assert_eq!(calibrated(2, 9), (false, false), "too few phrases");
        assert_eq!(
            calibrated(MAX_CHOICES + 1, 2),
            (false, true),
            "only the nearest phrase answers"
        );
    }

    #[test]
    fn the_likeliest_choice_has_a_probability() {
        let any = |_| true;
        assert_eq!(
            likeliest(&[f32::NAN, 0.3, 0.7, f32::NAN, 0.7], any),
            Some((2, 0.7))
        );
        assert_eq!(likeliest(&[0.3, 0.7], |choice| choice == 0), Some((0, 0.3)));
        assert_eq!(likeliest(&[f32::NAN], any), None);
    }

    #[test]
    fn a_classifier_has_no_more_weights_than_fit_into_memory() {
        for choices in 0..=MAX_CHOICES {
            let rows = most_rows(choices);
            assert!(rows * choices <= MAX_WEIGHTS, "{choices}");
            assert_eq!(rows == MAX_ROWS, choices <= 150, "{choices}");
        }
        assert_eq!(most_rows(MAX_CHOICES + 1), MAX_ROWS, "there is no classifier");
    }
}
