//! Entries of a profile, suggested from what a user did.

use jiff::Timestamp;

use super::Profile;
use crate::kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, ProfileEntry, SPECIALTIES};

/// Something that a user did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What tells of it: `CLAUDE_CODE`, `LEARNING`, `GITHUB` or an application's own name.
    pub source_type: String,
    /// Its id there.
    pub source_id: String,
    /// When it was done.
    pub occurred_at: Timestamp,
    /// What was done, in words; may be empty.
    pub summary: String,
    /// Technologies that were used.
    pub technologies: Vec<String>,
    /// Fields that it belongs to.
    pub topics: Vec<String>,
    /// What the user said to want to learn.
    pub goals: Vec<String>,
    /// The years of experience that it shows.
    pub experience_years: Option<u32>,
}

/// What a suggestion is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestionMaterial {
    /// The profile as it is.
    pub profile: Profile,
    /// What the user did, the newest first.
    pub activities: Vec<Activity>,
    /// Whether years of experience may be suggested.
    pub include_experience: bool,
}

/// What a suggestion changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SuggestionType {
    /// A technology that the user knows.
    AddTechnology,
    /// A specialty of the user.
    AddSpecialty,
    /// Something that the user wants to learn.
    AddGoal,
    /// How many years of experience the user has.
    UpdateExperience,
}

impl SuggestionType {
    /// All types, in the order of their numbers on the wire.
    pub const ALL: [Self; 4] = [
        Self::AddTechnology,
        Self::AddSpecialty,
        Self::AddGoal,
        Self::UpdateExperience,
    ];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::AddTechnology => 1,
            Self::AddSpecialty => 2,
            Self::AddGoal => 3,
            Self::UpdateExperience => 4,
        }
    }

    /// The type with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.number() == number)
    }

    /// The field of the profile that it is about.
    pub const fn field(self) -> &'static str {
        match self {
            Self::AddTechnology => KNOWN_TECHNOLOGIES,
            Self::AddSpecialty => SPECIALTIES,
            Self::AddGoal => LEARNING_GOALS,
            Self::UpdateExperience => EXPERIENCE_YEARS,
        }
    }
}

/// A suggested entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggested {
    /// What it changes.
    pub suggestion: SuggestionType,
    /// The entry.
    pub entry: ProfileEntry,
    /// Why, 1 to 2,000 characters.
    pub reason: String,
    /// The activity that it comes from: what tells of it.
    pub source_type: String,
    /// Its id there.
    pub source_id: String,
    /// How sure the generator is, in thousandths: 0 to 1,000.
    pub confidence: u16,
}
