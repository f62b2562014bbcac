//! The people who ask and report: most are honest, some err, some collude.
//!
//! Erring and colluding are traits of a person, not of a report: if a tenth of the reporters err, a tenth of the
//! corrections are wrong on average, always from the same people. That is what counting distinct voters has to
//! withstand.
//!
//! It must know nothing of services.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use super::dataset::Label;

/// The kinds of reporters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Character {
    /// Says what is right.
    Honest,
    /// Says something wrong, drawn at random each time.
    Erring,
    /// Says what the colluders agreed on.
    Colluding,
}

/// What a reporter says about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The answer is wrong, and this one is right.
    Correction(Label),
    /// The answer is right.
    Confirmation(Label),
}

/// What people do besides correcting answers they think wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Habits {
    /// Erring and colluding reporters dispute right answers too.
    pub attack_right_answers: bool,
    /// The share of answers thought right that people confirm. If it is not 0, colluders always confirm their label.
    pub confirmations: f64,
}

/// All reporters; the same for the same seed.
#[derive(Debug)]
pub struct Population {
    characters: Vec<Character>,
    /// The label that all colluders push.
    target: Label,
    labels: usize,
    habits: Habits,
    rng: StdRng,
}

impl Population {
    /// A population of `count` reporters who know `labels` labels (at least 2). The shares `noise` and `colluders` of
    /// them, rounded to whole people, err or collude.
    pub fn new(count: usize, labels: usize, noise: f64, colluders: f64, habits: Habits, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let erring = part(count, noise);
        let colluding = part(count, colluders).min(count - erring);
        let mut characters = vec![Character::Honest; count];
        characters[..erring].fill(Character::Erring);
        characters[erring..erring + colluding].fill(Character::Colluding);
        characters.shuffle(&mut rng);
        let target = rng.random_range(0..labels);
        Self {
            characters,
            target,
            labels,
            habits,
            rng,
        }
    }

    /// The label that the colluders push.
    pub fn target(&self) -> Label {
        self.target
    }

    /// How many reporters have this character.
    pub fn count(&self, character: Character) -> usize {
        self.characters
            .iter()
            .filter(|&&other| other == character)
            .count()
    }

    /// What a reporter says about this answer, if anything.
    pub fn says(&mut self, reporter: usize, answer: Option<Label>, truth: Label) -> Option<Said> {
        let right = answer == Some(truth);
        let character = self.characters[reporter];
        let thought = match character {
            Character::Honest => truth,
            Character::Erring | Character::Colluding if right && !self.habits.attack_right_answers => {
                return None;
            }
            // An erring reporter may take a wrong answer for right.
            Character::Erring => match answer {
                Some(answer) if !right && self.confirms(character) => answer,
                _ => self.wrong_label(answer, truth)?,
            },
            Character::Colluding => self.target,
        };
        if answer != Some(thought) {
            return Some(Said::Correction(thought));
        }
        // For an erring reporter, the confirmation was already drawn above.
        let confirms = character == Character::Erring || self.confirms(character);
        confirms.then_some(Said::Confirmation(thought))
    }

    /// Whether a reporter who thinks the answer right says so this time.
    fn confirms(&mut self, character: Character) -> bool {
        match character {
            _ if self.habits.confirmations <= 0.0 => false,
            Character::Colluding => true,
            Character::Honest | Character::Erring => self.rng.random_bool(self.habits.confirmations),
        }
    }

    /// A random label that is neither right nor the answer; `None` if there is none.
    fn wrong_label(&mut self, answer: Option<Label>, truth: Label) -> Option<Label> {
        let wrong: Vec<Label> = (0..self.labels)
            .filter(|&label| label != truth && Some(label) != answer)
            .collect();
        (!wrong.is_empty()).then(|| wrong[self.rng.random_range(0..wrong.len())])
    }
}

/// The given share of `count`, rounded.
fn part(count: usize, share: f64) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share from 0 to 1 of at most 100,000 people"
    )]
    let part = (count as f64 * share).round() as usize;
    part.min(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERE_CORRECTIONS: Habits = Habits {
        attack_right_answers: false,
        confirmations: 0.0,
    };
    const ATTACK: Habits = Habits {
        attack_right_answers: true,
        ..MERE_CORRECTIONS
    };

    fn of(character: Character, habits: Habits) -> Population {
        let (noise, colluders) = match character {
            Character::Honest => (0.0, 0.0),
            Character::Erring => (1.0, 0.0),
            Character::Colluding => (0.0, 1.0),
        };
        Population::new(10, 6, noise, colluders, habits, 5)
    }

    #[test]
    fn shares_are_of_people() {
        let population = Population::new(200, 77, 0.10, 0.05, MERE_CORRECTIONS, 7);
        assert_eq!(population.count(Character::Erring), 20);
        assert_eq!(population.count(Character::Colluding), 10);
        assert_eq!(population.count(Character::Honest), 170);
    }

    #[test]
    fn the_honest_correct_what_is_wrong_and_nothing_else() {
        let mut honest = of(Character::Honest, MERE_CORRECTIONS);
        assert_eq!(honest.says(0, Some(1), 2), Some(Said::Correction(2)));
        assert_eq!(honest.says(0, None, 2), Some(Said::Correction(2)));
        assert_eq!(honest.says(0, Some(2), 2), None);
    }

    #[test]
    fn who_errs_is_never_right_and_never_repeats_the_answer() {
        let mut erring = of(Character::Erring, MERE_CORRECTIONS);
        let said: Vec<_> = (0..200).map(|_| erring.says(0, Some(1), 2).unwrap()).collect();
        let corrections = [0, 3, 4, 5].map(Said::Correction);
        assert!(said.iter().all(|said| corrections.contains(said)));
        assert!(corrections.iter().all(|correction| said.contains(correction)));
        assert_eq!(erring.says(0, Some(2), 2), None);
    }

    #[test]
    fn colluders_all_say_the_same() {
        let mut colluding = of(Character::Colluding, MERE_CORRECTIONS);
        let target = colluding.target();
        let (truth, answer) = ((target + 1) % 6, (target + 2) % 6);
        for reporter in 0..10 {
            assert_eq!(
                colluding.says(reporter, Some(answer), truth),
                Some(Said::Correction(target))
            );
        }
        assert_eq!(colluding.says(0, Some(target), truth), None, "it says so already");
        assert_eq!(
            colluding.says(0, Some(truth), truth),
            None,
            "right answers are left alone"
        );
    }

    #[test]
    fn right_answers_are_disputed_only_where_asked_for() {
        let mut colluding = of(Character::Colluding, ATTACK);
        let truth = (colluding.target() + 1) % 6;
        assert_eq!(
            colluding.says(0, Some(truth), truth),
            Some(Said::Correction(colluding.target()))
        );
        assert!(
            of(Character::Erring, ATTACK)
                .says(0, Some(truth), truth)
                .is_some()
        );
    }

    #[test]
    fn who_thinks_an_answer_right_confirms_the_settable_share_and_the_colluders_theirs_always() {
        let habits = Habits {
            attack_right_answers: true,
            confirmations: 0.25,
        };
        let share = |character, answer: fn(&Population) -> Label, truth: fn(&Population) -> Label| {
            let mut population = of(character, habits);
            let (answer, truth) = (answer(&population), truth(&population));
            let confirmed = (0..4_000)
                .filter(|_| population.says(0, Some(answer), truth) == Some(Said::Confirmation(answer)))
                .count();
            confirmed * 100 / 4_000
        };
        assert!((22..28).contains(&share(Character::Honest, |_| 2, |_| 2)));
        assert_eq!(share(Character::Honest, |_| 1, |_| 2), 0);
        assert!((22..28).contains(&share(Character::Erring, |_| 1, |_| 2)));
        assert_eq!(share(Character::Erring, |_| 2, |_| 2), 0);
        let (theirs, another) = (Population::target, |all: &Population| (all.target() + 1) % 6);
        assert_eq!(share(Character::Colluding, theirs, another), 100);
        assert_eq!(share(Character::Colluding, another, another), 0);
    }
}
