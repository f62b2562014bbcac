//! Levels of trust as research backends keep them: YAML with `domains` and, above these, `user_overrides`.
//!
//! An entry has `domain` and `trust_level`, and may have `reason` and `added_at`. Such files say more, for example how often
//! a source is asked: other keys are ignored, and listed.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use emend_core::{
    TrustLevel,
    evidence::{DomainPattern, Suffix},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

use super::record::RowError;

/// What an entry says of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The pattern, in its form.
    pub pattern: String,
    /// How far it is trusted.
    pub level: TrustLevel,
    /// Why, and since when; for people, and may be empty.
    pub remark: String,
}

/// What a file says.
#[derive(Debug, Default)]
pub struct Levels {
    /// The entries in force, in the order of their lines.
    pub entries: Vec<(u64, Entry)>,
    /// What is wrong or passed over, with its line.
    pub not_taken: Vec<(u64, RowError)>,
    /// The ignored keys, how often each is there, and the first line; 0 where it is not known.
    pub ignored: BTreeMap<String, (usize, u64)>,
}

#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default)]
    domains: Option<Vec<Spanned<BTreeMap<String, Scalar>>>>,
    #[serde(default)]
    user_overrides: Option<Vec<Spanned<BTreeMap<String, Scalar>>>>,
}

impl Levels {
    /// Reads a file.
    pub fn read(text: &str) -> Result<Self, (u64, RowError)> {
        let keys: serde_json::Map<String, serde_json::Value> = parsed(text)?;
        let written: Written = parsed(text)?;
        let mut levels = Self::default();
        for (key, _) in keys {
            if !matches!(key.as_str(), "domains" | "user_overrides") {
                levels.ignored.insert(key, (1, 0));
            }
        }
        // Where each pattern is said by an override, and where by an entry below these.
        let overrides = levels.section("user_overrides", written.user_overrides, &HashMap::new());
        levels.section("domains", written.domains, &overrides);
        levels.entries.sort_by_key(|(line, _)| *line);
        levels.not_taken.sort_by_key(|(line, _)| *line);
        Ok(levels)
    }

    /// Adds the entries of a section whose patterns are not said above it, and returns where each is.
    fn section(
        &mut self,
        name: &str,
        written: Option<Vec<Spanned<BTreeMap<String, Scalar>>>>,
        above: &HashMap<String, u64>,
    ) -> HashMap<String, u64> {
        let mut places: HashMap<String, (u64, TrustLevel)> = HashMap::new();
        for fields in written.into_iter().flatten() {
            let line = fields.referenced.line();
            for key in fields.value.keys() {
                if !["domain", "trust_level", "reason", "added_at"].contains(&key.as_str()) {
                    let ignored = self.ignored.entry(format!("{name}[].{key}"));
                    ignored.or_insert((0, line)).0 += 1;
                }
            }
            let entry = match entry(&fields.value) {
                Ok(entry) => entry,
                Err(error) => {
                    self.not_taken.push((line, error));
                    continue;
                }
            };
            let pattern = entry.pattern.clone();
            let refused = match (above.get(&pattern), places.get(&pattern)) {
                (Some(above), _) => RowError::passed_over(format!("{pattern} is overridden on line {above}")),
                (None, Some((first, level))) if *level == entry.level => {
                    RowError::passed_over(format!("{pattern} is on line {first} already"))
                }
                (None, Some((first, level))) => {
                    let why = format!("disagrees with line {first}: {} here, {level} there", entry.level);
                    RowError::field("trust_level", why)
                }
                (None, None) => {
                    places.insert(pattern, (line, entry.level));
                    self.entries.push((line, entry));
                    continue;
                }
            };
            self.not_taken.push((line, refused));
        }
        places
            .into_iter()
            .map(|(pattern, (line, _))| (pattern, line))
            .collect()
    }
}

fn parsed<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, (u64, RowError)> {
    // No budget of the parser: the file is the user's own, and its bytes are bounded.
    let options = serde_saphyr::options! { budget: None, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let why = format!("is not the expected YAML: {}", error.without_snippet());
        (line, RowError::row(why).of_the_file())
    })
}

fn entry(fields: &BTreeMap<String, Scalar>) -> Result<Entry, RowError> {
    let text = |name: &str| {
        let scalar = fields.get(name).and_then(|scalar| scalar.0.as_deref());
        scalar.map(str::trim).filter(|text| !text.is_empty())
    };
    let required = |name: &str| text(name).ok_or_else(|| RowError::field(name, "is required"));
    let domain = required("domain")?;
    let level = required("trust_level")?;
    let pattern = DomainPattern::parse(domain)
        .map_err(|invalid| RowError::field("domain", format!("{domain:?} {}", invalid.0)))?;
    let level = if level.eq_ignore_ascii_case(TrustLevel::Blocked.name()) {
        TrustLevel::Blocked
    } else {
        TrustLevel::parse(level).map_err(|invalid| RowError::field("trust_level", invalid.0))?
    };
    if level == TrustLevel::Blocked && pattern.suffix() == Suffix::Public {
        let why = format!("{pattern} is at or above a public suffix, which can't be blocked");
        return Err(RowError::field("domain", why));
    }
    let since = text("added_at").map(|date| format!("since {date}"));
    let remark: Vec<String> = text("reason")
        .map(str::to_owned)
        .into_iter()
        .chain(since)
        .collect();
    Ok(Entry {
        pattern: pattern.to_string(),
        level,
        remark: remark.join("; "),
    })
}

/// A text, number or truth value as text; none for everything else.
#[derive(Debug)]
struct Scalar(Option<String>);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Option<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Some(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Some(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Some(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Some(value.to_string()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Some(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(None)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }

        deserializer.deserialize_any(Any).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
default_policy: {qps: 0.2}
domains:
  - domain: wikipedia.org
    trust_level: low  # anyone can edit
    qps: 0.5
  - {domain: GOV, trust_level: government, qps: 1, tags: [a, b]}
  - {domain: blog.example, trust_level: blocked}
  - {domain: gov, trust_level: government}
  - {domain: gov, trust_level: low}
  - {domain: 'https://a.example', trust_level: low}
  - {domain: com, trust_level: blocked}
user_overrides:
  - domain: \"Blog.example\"
    trust_level: \"low\"
    reason: \"Manual review completed\"
    added_at: 2024-01-15
";

    #[test]
    fn overrides_win_other_keys_are_listed_and_what_is_not_taken_has_its_line() {
        let levels = Levels::read(FILE).unwrap();
        let entries: Vec<_> = levels
            .entries
            .iter()
            .map(|(line, entry)| format!("{line}: {} {} {}", entry.pattern, entry.level, entry.remark))
            .collect();
        assert_eq!(
            entries,
            [
                "3: wikipedia.org low ",
                "6: gov government ",
                "13: blog.example low Manual review completed; since 2024-01-15",
            ]
        );
        let not_taken: Vec<_> = levels
            .not_taken
            .iter()
            .map(|(line, error)| format!("{line}: {} {error}", error.is_passed_over()))
            .collect();
        assert_eq!(
            not_taken[..3],
            [
                "7: true blog.example is overridden on line 13",
                "8: true gov is on line 6 already",
                "9: false trust_level: disagrees with line 6: low here, government there",
            ]
        );
        assert!(
            not_taken[3].starts_with("10: false domain: \"https://a.example\" must be"),
            "{not_taken:?}"
        );
        assert!(
            not_taken[4].starts_with("11: false domain: com is at or above"),
            "{not_taken:?}"
        );
        let ignored: Vec<_> = levels
            .ignored
            .iter()
            .map(|(key, (count, line))| format!("{key} {count} {line}"))
            .collect();
        assert_eq!(
            ignored,
            ["default_policy 1 0", "domains[].qps 2 3", "domains[].tags 1 6"]
        );
    }

    #[test]
    fn what_can_not_be_read_is_named_by_its_line() {
        let (line, error) = Levels::read("domains:\n  - {domain: [\n").unwrap_err();
        assert!(line >= 2 && error.ends_file(), "{line}: {error}");
        assert!(Levels::read("domains:\n").unwrap().entries.is_empty());
    }
}
