//! The people who ask and report: most are honest, some err, some collude.
//!
//! Erring and colluding are traits of a person, not of a report: if a tenth of the reporters err, a tenth of the
//! corrections are wrong on average, always from the same people. That is what counting distinct voters has to
//! withstand.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use super::dataset::Label;

/// The kinds of reporters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Says what is right.
    Honest,
    /// Says something wrong, drawn at random each time.
    Erring,
    /// Says what the colluders agreed on.
    Colluding,
}

/// What a reporter says about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
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
    behaviours: Vec<Behaviour>,
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
        let mut behaviours = vec![Behaviour::Honest; count];
        behaviours[..erring].fill(Behaviour::Erring);
        behaviours[erring..erring + colluding].fill(Behaviour::Colluding);
        behaviours.shuffle(&mut rng);
        let target = rng.random_range(0..labels);
        Self {
            behaviours,
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

    /// How many reporters have this behaviour.
    pub fn count(&self, behaviour: Behaviour) -> usize {
        self.behaviours
            .iter()
            .filter(|&&other| other == behaviour)
            .count()
    }

    /// What a reporter says about this answer, if anything.
    pub fn reaction(&mut self, reporter: usize, answer: Option<Label>, truth: Label) -> Option<Statement> {
        let right = answer == Some(truth);
        let behaviour = self.behaviours[reporter];
        let believed = match behaviour {
            Behaviour::Honest => truth,
            Behaviour::Erring | Behaviour::Colluding if right && !self.habits.attack_right_answers => {
                return None;
            }
            // An erring reporter may take a wrong answer for right.
            Behaviour::Erring => match answer {
                Some(answer) if !right && self.confirms(behaviour) => answer,
                _ => self.wrong_label(answer, truth)?,
            },
            Behaviour::Colluding => self.target,
        };
        if answer != Some(believed) {
            return Some(Statement::Correction(believed));
        }
        // For an erring reporter, the confirmation was already drawn above.
        let confirms = behaviour == Behaviour::Erring || self.confirms(behaviour);
        confirms.then_some(Statement::Confirmation(believed))
    }

    /// Whether a reporter who thinks the answer right says so this time.
    fn confirms(&mut self, behaviour: Behaviour) -> bool {
        match behaviour {
            _ if self.habits.confirmations <= 0.0 => false,
            Behaviour::Colluding => true,
            Behaviour::Honest | Behaviour::Erring => self.rng.random_bool(self.habits.confirmations),
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

    const CORRECTIONS_ONLY: Habits = Habits {
        attack_right_answers: false,
        confirmations: 0.0,
    };
    const ATTACK: Habits = Habits {
        attack_right_answers: true,
        ..CORRECTIONS_ONLY
    };

    fn of(behaviour: Behaviour, habits: Habits) -> Population {
        let (noise, colluders) = match behaviour {
            Behaviour::Honest => (0.0, 0.0),
            Behaviour::Erring => (1.0, 0.0),
            Behaviour::Colluding => (0.0, 1.0),
        };
        Population::new(10, 6, noise, colluders, habits, 5)
    }

    #[test]
    fn shares_are_rounded_to_whole_people() {
        let population = Population::new(200, 77, 0.10, 0.05, CORRECTIONS_ONLY, 7);
        assert_eq!(population.count(Behaviour::Erring), 20);
        assert_eq!(population.count(Behaviour::Colluding), 10);
        assert_eq!(population.count(Behaviour::Honest), 170);
    }

    #[test]
    fn honest_reporters_correct_wrong_answers_and_nothing_else() {
        let mut honest = of(Behaviour::Honest, CORRECTIONS_ONLY);
        assert_eq!(honest.reaction(0, Some(1), 2), Some(Statement::Correction(2)));
        assert_eq!(honest.reaction(0, None, 2), Some(Statement::Correction(2)));
        assert_eq!(honest.reaction(0, Some(2), 2), None);
    }

    #[test]
    fn erring_reporters_are_never_right_and_never_repeat_the_answer() {
        let mut erring = of(Behaviour::Erring, CORRECTIONS_ONLY);
        let statements: Vec<_> = (0..200)
            .map(|_| erring.reaction(0, Some(1), 2).unwrap())
            .collect();
        let corrections = [0, 3, 4, 5].map(Statement::Correction);
        assert!(statements.iter().all(|statement| corrections.contains(statement)));
        assert!(
            corrections
                .iter()
                .all(|correction| statements.contains(correction))
        );
        assert_eq!(erring.reaction(0, Some(2), 2), None);
    }

    #[test]
    fn colluders_all_push_the_same_label() {
        let mut colluding = of(Behaviour::Colluding, CORRECTIONS_ONLY);
        let target = colluding.target();
        let (truth, answer) = ((target + 1) % 6, (target + 2) % 6);
        for reporter in 0..10 {
            assert_eq!(
                colluding.reaction(reporter, Some(answer), truth),
                Some(Statement::Correction(target))
            );
        }
        assert_eq!(
            colluding.reaction(0, Some(target), truth),
            None,
            "the answer is theirs already"
        );
        assert_eq!(
            colluding.reaction(0, Some(truth), truth),
            None,
            "right answers are left alone"
        );
    }

    #[test]
    fn right_answers_are_disputed_only_if_configured() {
        let mut colluding = of(Behaviour::Colluding, ATTACK);
        let truth = (colluding.target() + 1) % 6;
        assert_eq!(
            colluding.reaction(0, Some(truth), truth),
            Some(Statement::Correction(colluding.target()))
        );
        assert!(
            of(Behaviour::Erring, ATTACK)
                .reaction(0, Some(truth), truth)
                .is_some()
        );
    }

    #[test]
    fn answers_thought_right_are_confirmed_in_the_configured_share_and_always_by_colluders() {
        let habits = Habits {
            attack_right_answers: true,
            confirmations: 0.25,
        };
        let share = |behaviour, answer: fn(&Population) -> Label, truth: fn(&Population) -> Label| {
            let mut population = of(behaviour, habits);
            let (answer, truth) = (answer(&population), truth(&population));
            let confirmed = (0..4_000)
                .filter(|_| {
                    population.reaction(0, Some(answer), truth) == Some(Statement::Confirmation(answer))
                })
                .count();
            confirmed * 100 / 4_000
        };
        assert!((22..28).contains(&share(Behaviour::Honest, |_| 2, |_| 2)));
        assert_eq!(share(Behaviour::Honest, |_| 1, |_| 2), 0);
        assert!((22..28).contains(&share(Behaviour::Erring, |_| 1, |_| 2)));
        assert_eq!(share(Behaviour::Erring, |_| 2, |_| 2), 0);
        let (theirs, another) = (Population::target, |all: &Population| (all.target() + 1) % 6);
        assert_eq!(share(Behaviour::Colluding, theirs, another), 100);
        assert_eq!(share(Behaviour::Colluding, another, another), 0);
    }
}
