//! Which of many rules decides about a host.

use super::suffixes;

/// The rules whose patterns have one name, of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RulesOfName<R> {
    /// The rule for the name and everything below it: `example.org`.
    pub covering_it: Option<R>,
    /// The rule for what is below it only: `*.example.org`.
    pub below_it: Option<R>,
}

impl<R> Default for RulesOfName<R> {
    fn default() -> Self {
        Self {
            covering_it: None,
            below_it: None,
        }
    }
}

impl<R> RulesOfName<R> {
    /// Sets or removes the rule of a pattern, in its form, that has this name.
    pub fn set(&mut self, pattern: &str, rule: Option<R>) {
        match Covering::of(pattern) {
            Covering {
                below_only: false, ..
            } => self.covering_it = rule,
            Covering { below_only: true, .. } => self.below_it = rule,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.covering_it.is_none() && self.below_it.is_none()
    }
}

/// A pattern, in its form, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covering<'p> {
    /// The name without a wildcard.
    pub name: &'p str,
    /// Whether it covers only what is below the name.
    pub below_only: bool,
}

impl<'p> Covering<'p> {
    /// Takes a pattern apart, which is in its form.
    pub fn of(pattern: &'p str) -> Self {
        let below = pattern.strip_prefix("*.");
        Self {
            name: below.unwrap_or(pattern),
            below_only: below.is_some(),
        }
    }

    /// The pattern.
    pub fn pattern(self) -> String {
        format!("{}{}", if self.below_only { "*." } else { "" }, self.name)
    }
}

/// The rule that decides about a host, in the form of [`host`](super::host): the one with the longest name; of two with one
/// name that for subdomains only. `find` gives the rules of a name and is asked once for each name above the host.
#[inline]
pub fn deciding<R>(
    host: &str,
    mut find: impl FnMut(&str) -> Option<RulesOfName<R>>,
) -> Option<(Covering<'_>, R)> {
    suffixes(host).find_map(|name| {
        let rules = find(name)?;
        let by = |below_only| move |rule| (Covering { name, below_only }, rule);
        let below = rules.below_it.filter(|_| name.len() < host.len());
        below.map(by(true)).or(rules.covering_it.map(by(false)))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::{super::DomainPattern, *};

    #[test]
    fn the_longest_name_decides_and_then_the_wildcard() {
        let patterns = ["example.org", "*.example.org", "*.a.example.org", "b.example.org"];
        let deciding = |host| deciding_of(host, &patterns);
        for (host, expected) in [
            ("example.org", Some("example.org")),
            ("c.example.org", Some("*.example.org")),
            ("a.example.org", Some("*.example.org")),
            ("x.a.example.org", Some("*.a.example.org")),
            ("b.example.org", Some("b.example.org")),
            ("x.b.example.org", Some("b.example.org")),
            ("notexample.org", None),
            ("org", None),
        ] {
            assert_eq!(deciding(host).as_deref(), expected, "{host}");
        }
    }

    fn deciding_of(host: &str, patterns: &[&str]) -> Option<String> {
        let mut rules: HashMap<&str, RulesOfName<()>> = HashMap::new();
        for pattern in patterns {
            rules
                .entry(Covering::of(pattern).name)
                .or_default()
                .set(pattern, Some(()));
        }
        deciding(host, |name| rules.get(name).copied()).map(|(covering, ())| covering.pattern())
    }

    proptest! {
        #[test]
        fn who_decides_covers_the_host_and_nobody_more_specific_does(
            host in "[ab](\\.[ab]){0,3}",
            patterns in proptest::collection::vec("(\\*\\.)?[ab](\\.[ab]){0,3}", 0..6),
        ) {
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let covers = |pattern: &&&str| DomainPattern::parse(pattern).is_ok_and(|of| of.covers(&host));
            let specificity = |pattern: &&&str| {
                let covering = Covering::of(pattern);
                (covering.name.len(), covering.below_only)
            };
            let expected = patterns.iter().filter(covers).max_by_key(specificity);
            prop_assert_eq!(deciding_of(&host, &patterns), expected.map(|of| (*of).to_owned()));
        }
    }
}
