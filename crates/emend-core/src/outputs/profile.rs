//! A user's profile as a whole, and what it is used for: a section of prompts, and the order of what there is to learn.

use std::collections::{BTreeMap, HashSet};

use crate::{
    kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, ProfileEntry, SPECIALTIES},
    normalize::normalize,
};

/// What one user knows and wants to learn, put together of its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// How many years of experience the user has, if that is known.
    pub experience_years: Option<u32>,
    /// What the user is a specialist in, as written, by the entry as a phrase.
    pub specialties: BTreeMap<String, String>,
    /// The technologies that the user knows, likewise.
    pub known_technologies: BTreeMap<String, String>,
    /// What the user wants to learn, likewise.
    pub learning_goals: BTreeMap<String, String>,
}

impl Profile {
    /// Records an entry, by the key and qualifier of its resource, or that it is gone.
    pub fn set(&mut self, field: &str, entry: &str, value: Option<&ProfileEntry>) {
        if field == EXPERIENCE_YEARS {
            self.experience_years = match value {
                Some(ProfileEntry::Years(years)) => Some(*years),
                Some(ProfileEntry::Text(_)) | None => None,
            };
            return;
        }
        let Some(list) = self.list_mut(field) else {
            return;
        };
        match value {
            Some(ProfileEntry::Text(text)) => {
                list.insert(entry.to_owned(), text.clone());
            }
            Some(ProfileEntry::Years(_)) | None => {
                list.remove(entry);
            }
        }
    }

    fn list_mut(&mut self, field: &str) -> Option<&mut BTreeMap<String, String>> {
        match field {
            SPECIALTIES => Some(&mut self.specialties),
            KNOWN_TECHNOLOGIES => Some(&mut self.known_technologies),
            LEARNING_GOALS => Some(&mut self.learning_goals),
            _ => None,
        }
    }

    /// The entries of a field that has some, in the order of their phrases; `None` of another field.
    pub fn list(&self, field: &str) -> Option<&BTreeMap<String, String>> {
        match field {
            SPECIALTIES => Some(&self.specialties),
            KNOWN_TECHNOLOGIES => Some(&self.known_technologies),
            LEARNING_GOALS => Some(&self.learning_goals),
            _ => None,
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much something to learn expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LearningLevel {
    /// For who begins.
    Basic,
    /// For who knows the basics.
    Intermediate,
    /// For who knows it well.
    Advanced,
}

/// Something that there is to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learning<T> {
    /// The application's own.
    pub item: T,
    /// What it is about, in any spelling.
    pub topics: Vec<String>,
    /// How much it expects.
    pub level: LearningLevel,
}

/// What to show a user of what there is to learn: first what is about one of the user's goals, then the rest, each in the
/// order given. Left out are the basics of what the user knows: basic items all of whose topics are known technologies or
/// specialties, and none a goal.
pub fn rank_learnings<T>(
    profile: &Profile,
    items: impl IntoIterator<Item = Learning<T>>,
) -> Vec<Learning<T>> {
    let known: HashSet<&str> = profile
        .known_technologies
        .keys()
        .chain(profile.specialties.keys())
        .map(String::as_str)
        .collect();
    let mut goals = Vec::new();
    let mut others = Vec::new();
    for learning in items {
        let topics: Vec<String> = learning.topics.iter().map(|topic| normalize(topic)).collect();
        let is_goal = topics
            .iter()
            .any(|topic| profile.learning_goals.contains_key(topic));
        let is_known = !topics.is_empty() && topics.iter().all(|topic| known.contains(topic.as_str()));
        if is_goal {
            goals.push(learning);
        } else if !(is_known && learning.level == LearningLevel::Basic) {
            others.push(learning);
        }
    }
    goals.append(&mut others);
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let mut profile = Profile::default();
        for (field, entry) in [
            (KNOWN_TECHNOLOGIES, "Rust"),
            (SPECIALTIES, "Search"),
            (LEARNING_GOALS, "Kubernetes"),
            (LEARNING_GOALS, "Rust macros"),
        ] {
            let value = ProfileEntry::Text(entry.to_owned());
            profile.set(field, &normalize(entry), Some(&value));
        }
        profile
    }

    #[test]
    fn basics_of_what_is_known_are_left_out_and_goals_come_first() {
        use LearningLevel::{Advanced, Basic, Intermediate};
        let table: [(&str, &[&str], LearningLevel, bool); 10] = [
            ("known basics", &["rust"], Basic, false),
            ("known, further", &["Rust"], Intermediate, true),
            ("known, far", &["ＲＵＳＴ"], Advanced, true),
            ("basics of two known", &["Rust", "search"], Basic, false),
            ("basics of a known and an unknown", &["Rust", "Go"], Basic, true),
            ("unknown basics", &["Go"], Basic, true),
            ("about nothing", &[], Basic, true),
            ("basics of a goal", &["kubernetes"], Basic, true),
            (
                "a goal about what is known",
                &["Rust", "Rust  Macros"],
                Basic,
                true,
            ),
            ("basics of a specialty", &["Search"], Basic, false),
        ];
        let items = table.iter().map(|(item, topics, level, _)| Learning {
            item: *item,
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            level: *level,
        });
        let ranked = rank_learnings(&profile(), items);
        let names: Vec<&str> = ranked.iter().map(|learning| learning.item).collect();
        let (goals, rest) = names.split_at(2);
        assert_eq!(goals, ["basics of a goal", "a goal about what is known"]);
        let kept = table
            .iter()
            .filter(|(name, .., kept)| *kept && !goals.contains(name));
        let kept: Vec<&str> = kept.map(|(name, ..)| *name).collect();
        assert_eq!(rest, kept);
    }

    #[test]
    fn an_empty_profile_leaves_everything_as_it_is() {
        let items = ["b", "a"].map(|topic| Learning {
            item: topic,
            topics: vec![topic.to_owned()],
            level: LearningLevel::Basic,
        });
        assert_eq!(rank_learnings(&Profile::default(), items.clone()), items);
    }

    #[test]
    fn an_entry_that_is_gone_leaves_the_profile() {
        let mut profile = Profile::default();
        profile.set(EXPERIENCE_YEARS, "", Some(&ProfileEntry::Years(12)));
        profile.set(SPECIALTIES, "rust", Some(&ProfileEntry::Text("Rust".into())));
        profile.set("hobbies", "chess", Some(&ProfileEntry::Text("chess".into())));
        assert_eq!(profile.experience_years, Some(12));
        assert_eq!(profile.list(SPECIALTIES).unwrap()["rust"], "Rust");
        assert_eq!(profile.list("hobbies"), None);
        profile.set(EXPERIENCE_YEARS, "", None);
        profile.set(SPECIALTIES, "rust", None);
        assert!(profile.is_empty());
    }
}
