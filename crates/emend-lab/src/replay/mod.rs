//! Users who correct a search node, simulated, and the report of what was learned from them.

pub mod chart;
pub mod dataset;
pub mod matcher;
pub mod near;
pub mod report;
pub mod reporters;
pub mod traffic;

use self::reporters::Habits;

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The namespace to learn in.
    pub namespace: String,
    /// How many days to simulate.
    pub days: u32,
    /// How many queries to ask each day.
    pub queries_per_day: u32,
    /// How many people ask and report.
    pub reporters: u32,
    /// The share of reporters who err.
    pub noise: f64,
    /// The share of reporters who attack together.
    pub colluders: f64,
    /// What else reporters do.
    pub habits: Habits,
    /// The exponent of Zipf's law.
    pub zipf_exponent: f64,
    /// Net confirmations required for a promotion.
    pub threshold: i32,
    /// What near answers are used from.
    pub near: near::Use,
    /// The seed of all random draws.
    pub seed: u64,
}

/// The findings at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Corrections acknowledged with OK.
    pub submitted: u64,
    /// Corrections that feedback-svc holds.
    pub stored: u64,
    /// How many of the stored corrections learning-svc has evaluated.
    pub evaluated: u64,
    /// Corrections that the candidates count.
    pub counted: u64,
    /// Events that were permanently refused.
    pub dead_letters: u64,
    /// Candidates that await a person, for example because the phrase holds personal data.
    pub awaiting_review: u64,
    /// Revisions in the audit trail.
    pub revisions: u64,
    /// Learned resources at the end.
    pub resources: u64,
    /// How many of them are not the true label.
    pub wrong_resources: u64,
    /// How many of the resources the node answers with.
    pub on_the_node: u64,
    /// What does not add up; empty if nothing was lost.
    pub problems: Vec<String>,
}
