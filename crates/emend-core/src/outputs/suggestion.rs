//! Entries of a profile, suggested from what a user did.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use super::Profile;
use crate::{
    kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, ProfileEntry, SPECIALTIES},
    normalize::normalize,
    personal_data,
    violation::{Invalid, bounded_prose},
};

/// The characters of a suggestion's reason at most.
const MAX_REASON_CHARS: usize = 2_000;
/// The greatest confidence, in thousandths.
pub const SURE: u16 = 1_000;

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
        Self::ALL
            .into_iter()
            .find(|suggestion| suggestion.number() == number)
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

impl SuggestionMaterial {
    /// Checks that a generator may suggest this: an entry of the form that its field has, without personal data, with a reason,
    /// from one of the activities.
    pub fn check(&self, suggested: &Suggested) -> Result<(), Invalid> {
        let is_years = suggested.suggestion == SuggestionType::UpdateExperience;
        if is_years && !self.include_experience {
            return Err(Invalid::new("years of experience were not asked for"));
        }
        match &suggested.entry {
            ProfileEntry::Years(years) if is_years => ProfileEntry::years(*years).map(drop)?,
            ProfileEntry::Text(text) if !is_years => {
                ProfileEntry::text(text)?;
                if normalize(text).is_empty() {
                    return Err(Invalid::new("the entry has no letter"));
                }
                if personal_data::found_in(text) {
                    return Err(Invalid::new("the entry has personal data"));
                }
            }
            ProfileEntry::Years(_) | ProfileEntry::Text(_) => {
                return Err(Invalid::new("the entry is none of its field"));
            }
        }
        bounded_prose(&suggested.reason, 1, MAX_REASON_CHARS)?;
        if suggested.confidence > SURE {
            return Err(Invalid::new("the confidence must be 0 to 1"));
        }
        let is_source = |activity: &Activity| {
            activity.source_type == suggested.source_type && activity.source_id == suggested.source_id
        };
        if self.activities.iter().any(is_source) {
            Ok(())
        } else {
            Err(Invalid::new("the source is none of the activities"))
        }
    }
}

/// In how many activities something is found, and the newest of them, which says how it is written.
struct Seen<'m> {
    entry: ProfileEntry,
    activities: u32,
    newest: &'m Activity,
}

/// Suggests without a model what is named in activities: a technology or a topic in at least two of them, a goal in at least
/// one, and the years of experience that the newest one shows that shows any. Not what the profile has, nor what holds personal
/// data. The surest first; equal material gives equal suggestions.
///
/// The confidence for n activities is n / (n + 2): one half for two, and never 1.
pub fn suggest(material: &SuggestionMaterial) -> Vec<Suggested> {
    let mut suggested = Vec::new();
    for (suggestion, named, at_least, how) in [
        (
            SuggestionType::AddTechnology,
            technologies as NamedIn,
            2,
            "Used in",
        ),
        (SuggestionType::AddSpecialty, topics as NamedIn, 2, "The topic of"),
        (SuggestionType::AddGoal, goals as NamedIn, 1, "Named as a goal in"),
    ] {
        let known = material.profile.list(suggestion.field());
        for (entry, seen) in counted(&material.activities, named) {
            if seen.activities >= at_least && known.is_none_or(|known| !known.contains_key(&entry)) {
                suggested.push(suggestion_of(suggestion, seen, how));
            }
        }
    }
    if material.include_experience
        && let Some(seen) = experience(&material.activities)
        && seen.entry != ProfileEntry::Years(material.profile.experience_years.unwrap_or(u32::MAX))
    {
        suggested.push(suggestion_of(
            SuggestionType::UpdateExperience,
            seen,
            "As shown by",
        ));
    }
    suggested.retain(|suggested| material.check(suggested).is_ok());
    suggested.sort_by_key(|suggested| Reverse(suggested.confidence));
    suggested
}

type NamedIn = fn(&Activity) -> &[String];

fn technologies(activity: &Activity) -> &[String] {
    &activity.technologies
}

fn topics(activity: &Activity) -> &[String] {
    &activity.topics
}

fn goals(activity: &Activity) -> &[String] {
    &activity.goals
}

/// What activities, the newest first, name, by the entry as a phrase.
fn counted(activities: &[Activity], named: NamedIn) -> BTreeMap<String, Seen<'_>> {
    let mut counted: BTreeMap<String, Seen<'_>> = BTreeMap::new();
    for activity in activities {
        let mut once = BTreeSet::new();
        for text in named(activity) {
            let entry = normalize(text);
            if !once.insert(entry.clone()) {
                continue;
            }
            let seen = counted.entry(entry).or_insert_with(|| Seen {
                entry: ProfileEntry::Text(text.trim().to_owned()),
                activities: 0,
                newest: activity,
            });
            seen.activities += 1;
        }
    }
    counted
}

fn experience(activities: &[Activity]) -> Option<Seen<'_>> {
    let newest = activities
        .iter()
        .find(|activity| activity.experience_years.is_some())?;
    let years = newest.experience_years?;
    let alike = activities
        .iter()
        .filter(|activity| activity.experience_years == Some(years));
    Some(Seen {
        entry: ProfileEntry::Years(years),
        activities: u32::try_from(alike.count()).unwrap_or(u32::MAX),
        newest,
    })
}

fn suggestion_of(suggestion: SuggestionType, seen: Seen<'_>, how: &str) -> Suggested {
    let Seen {
        entry,
        activities,
        newest,
    } = seen;
    let (count, plural) = (u64::from(activities), if activities == 1 { "y" } else { "ies" });
    let confidence = u64::from(SURE) * count / (count + 2);
    Suggested {
        suggestion,
        entry,
        reason: format!(
            "{how} {count} activit{plural}, most recently {} {} on {}.",
            newest.source_type,
            newest.source_id,
            newest.occurred_at.strftime("%Y-%m-%d"),
        ),
        source_type: newest.source_type.clone(),
        source_id: newest.source_id.clone(),
        confidence: u16::try_from(confidence).unwrap_or(SURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(day: i64, technologies: &[&str], goals: &[&str]) -> Activity {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Activity {
            source_type: "GITHUB".to_owned(),
            source_id: format!("commit-{day}"),
            occurred_at: Timestamp::from_second(day * 86_400).unwrap(),
            summary: String::new(),
            technologies: owned(technologies),
            topics: Vec::new(),
            goals: owned(goals),
            experience_years: None,
        }
    }

    fn material(activities: Vec<Activity>) -> SuggestionMaterial {
        SuggestionMaterial {
            profile: Profile::default(),
            activities,
            include_experience: false,
        }
    }

    fn entries(material: &SuggestionMaterial) -> Vec<(SuggestionType, String, u16)> {
        let shown = |entry: &ProfileEntry| match entry {
            ProfileEntry::Years(years) => years.to_string(),
            ProfileEntry::Text(text) => text.clone(),
        };
        let suggested = suggest(material).into_iter();
        suggested
            .map(|suggested| {
                (
                    suggested.suggestion,
                    shown(&suggested.entry),
                    suggested.confidence,
                )
            })
            .collect()
    }

    #[test]
    fn what_several_activities_name_is_suggested_as_the_newest_writes_it() {
        let mut material = material(vec![
            activity(3, &["Ｒｕｓｔ", "Go", "rust"], &[]),
            activity(2, &["rust", "SQL", "mail jane@example.org"], &["Kafka"]),
            activity(1, &["RUST", "sql", "mail jane@example.org"], &[]),
        ]);
        assert_eq!(
            entries(&material),
            [
                (SuggestionType::AddTechnology, "Ｒｕｓｔ".to_owned(), 600),
                (SuggestionType::AddTechnology, "SQL".to_owned(), 500),
                (SuggestionType::AddGoal, "Kafka".to_owned(), 333),
            ],
            "one activity is not enough for a technology, and personal data is left out"
        );
        let rust = &suggest(&material)[0];
        assert_eq!(
            rust.reason,
            "Used in 3 activities, most recently GITHUB commit-3 on 1970-01-04."
        );
        let known = ProfileEntry::Text("Rust".to_owned());
        material.profile.set(KNOWN_TECHNOLOGIES, "rust", Some(&known));
        assert_eq!(entries(&material).len(), 2, "the profile has it");
    }

    #[test]
    fn experience_is_suggested_only_on_request_and_if_it_is_another() {
        let mut activities = vec![activity(2, &[], &[]), activity(1, &[], &[])];
        activities[0].experience_years = Some(7);
        activities[1].experience_years = Some(3);
        let mut material = material(activities);
        assert_eq!(entries(&material), []);
        material.include_experience = true;
        let expected = (SuggestionType::UpdateExperience, "7".to_owned(), 333);
        assert_eq!(entries(&material), [expected]);
        material.profile.experience_years = Some(7);
        assert_eq!(entries(&material), []);
    }

    #[test]
    fn what_a_generator_may_not_suggest_is_refused() {
        let mut material = material(vec![activity(1, &["Rust"], &["Kafka"])]);
        let good = suggest(&material).remove(0);
        assert_eq!(material.check(&good), Ok(()));
        let years = ProfileEntry::Years(7);
        let with = |change: fn(&mut Suggested)| {
            let mut suggested = good.clone();
            change(&mut suggested);
            suggested
        };
        for (bad, why) in [
            (with(|it| it.entry = ProfileEntry::Years(7)), "none of its field"),
            (
                with(|it| it.entry = ProfileEntry::Text(String::new())),
                "required",
            ),
            (
                with(|it| it.entry = ProfileEntry::Text("a@b.example".into())),
                "personal data",
            ),
            (with(|it| it.entry = ProfileEntry::Text("x".repeat(513))), "512"),
            (with(|it| it.reason.clear()), "required"),
            (with(|it| it.confidence = 1_001), "0 to 1"),
            (with(|it| it.source_id.push('x')), "none of the activities"),
            (
                with(|it| it.suggestion = SuggestionType::UpdateExperience),
                "not asked for",
            ),
        ] {
            let refused = material.check(&bad).unwrap_err().0;
            assert!(refused.contains(why), "{refused}: {bad:?}");
        }
        material.include_experience = true;
        let bad = Suggested {
            suggestion: SuggestionType::UpdateExperience,
            entry: ProfileEntry::Years(81),
            ..good.clone()
        };
        assert!(material.check(&bad).is_err());
        assert_eq!(material.check(&Suggested { entry: years, ..bad }), Ok(()));
    }
}
