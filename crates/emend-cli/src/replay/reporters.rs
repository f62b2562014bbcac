//! The people who ask and report: most are honest, some err, some attack together.
//!
//! Erring and attacking are traits of a person, not of a report: with a tenth of the reporters erring, a tenth of the
//! corrections are wrong on average, and they always come from the same people. That is what a count of distinct voters
//! has to withstand.
//!
//! It must know nothing of services.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use super::dataset::Label;

/// What kind of reporter somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Character {
    /// Says what is right.
    Honest,
    /// Says something wrong, drawn anew each time.
    Erring,
    /// Says what the colluders agreed upon.
    Colluding,
}

/// All reporters; the same for the same seed.
#[derive(Debug)]
pub struct Population {
    characters: Vec<Character>,
    /// The one label that all colluders push.
    target: Label,
    labels: usize,
    attack_right_answers: bool,
    rng: StdRng,
}

impl Population {
    /// `count` reporters who know `labels` labels (at least 2), of whom the shares `noise` and `colluders`, rounded to whole
    /// people, err or collude.
    pub fn new(
        count: usize,
        labels: usize,
        noise: f64,
        colluders: f64,
        attack_right_answers: bool,
        seed: u64,
    ) -> Self {
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
            attack_right_answers,
            rng,
        }
    }

    /// The label that the colluders push.
    pub fn target(&self) -> Label {
        self.target
    }

    /// How many there are of a kind.
    pub fn count(&self, character: Character) -> usize {
        self.characters
            .iter()
            .filter(|&&other| other == character)
            .count()
    }

    /// What a reporter who got this answer says is right; none: says nothing. Never what was answered: there would be
    /// nothing to correct.
    pub fn correction(&mut self, reporter: usize, answer: Option<Label>, truth: Label) -> Option<Label> {
        let right = answer == Some(truth);
        let said = match self.characters[reporter] {
            Character::Honest => truth,
            Character::Erring | Character::Colluding if right && !self.attack_right_answers => return None,
            Character::Erring => self.wrong_label(answer, truth)?,
            Character::Colluding => self.target,
        };
        (answer != Some(said)).then_some(said)
    }

    /// A label that is neither right nor what was answered; none where there is no such.
    fn wrong_label(&mut self, answer: Option<Label>, truth: Label) -> Option<Label> {
        let wrong: Vec<Label> = (0..self.labels)
            .filter(|&label| label != truth && Some(label) != answer)
            .collect();
        (!wrong.is_empty()).then(|| wrong[self.rng.random_range(0..wrong.len())])
    }
}

/// That share of `count`, rounded.
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

    fn of(character: Character, attack_right_answers: bool) -> Population {
        let (noise, colluders) = match character {
            Character::Honest => (0.0, 0.0),
            Character::Erring => (1.0, 0.0),
            Character::Colluding => (0.0, 1.0),
        };
        Population::new(10, 6, noise, colluders, attack_right_answers, 5)
    }

    #[test]
    fn shares_are_of_people() {
        let population = Population::new(200, 77, 0.10, 0.05, false, 7);
        assert_eq!(population.count(Character::Erring), 20);
        assert_eq!(population.count(Character::Colluding), 10);
        assert_eq!(population.count(Character::Honest), 170);
    }

    #[test]
    fn the_honest_correct_what_is_wrong_and_nothing_else() {
        let mut honest = of(Character::Honest, false);
        assert_eq!(honest.correction(0, Some(1), 2), Some(2));
        assert_eq!(honest.correction(0, None, 2), Some(2));
        assert_eq!(honest.correction(0, Some(2), 2), None);
    }

    #[test]
    fn who_errs_is_never_right_and_never_repeats_the_answer() {
        let mut erring = of(Character::Erring, false);
        let said: Vec<_> = (0..200)
            .map(|_| erring.correction(0, Some(1), 2).unwrap())
            .collect();
        assert!(said.iter().all(|&label| label != 1 && label != 2));
        assert!((0..6).filter(|label| said.contains(label)).count() == 4);
        assert_eq!(erring.correction(0, Some(2), 2), None);
    }

    #[test]
    fn colluders_all_say_the_same() {
        let mut colluding = of(Character::Colluding, false);
        let target = colluding.target();
        let (truth, answer) = ((target + 1) % 6, (target + 2) % 6);
        for reporter in 0..10 {
            assert_eq!(colluding.correction(reporter, Some(answer), truth), Some(target));
        }
        assert_eq!(
            colluding.correction(0, Some(target), truth),
            None,
            "it says so already"
        );
        assert_eq!(
            colluding.correction(0, Some(truth), truth),
            None,
            "right answers are left alone"
        );
    }

    #[test]
    fn right_answers_are_disputed_only_where_asked_for() {
        let mut colluding = of(Character::Colluding, true);
        let truth = (colluding.target() + 1) % 6;
        assert_eq!(
            colluding.correction(0, Some(truth), truth),
            Some(colluding.target())
        );
        assert!(
            of(Character::Erring, true)
                .correction(0, Some(truth), truth)
                .is_some()
        );
    }
}
