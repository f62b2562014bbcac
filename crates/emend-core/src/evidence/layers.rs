//! Whose rule decides how far a host is trusted.
//!
//! What people decided comes before the trust file, and that before what the system verified; only then does it matter which
//! pattern is more specific. So a verified rule decides only where no rule of people or of the file covers the host, exactly
//! or as one above it.

use super::{Covering, TrustLevel, suffixes};
use crate::{evidence::DomainRule, violation::Invalid};

/// Who made a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// People, by corrections or by hand.
    Human,
    /// The trust file.
    File,
    /// The system, from evidence.
    Verified,
}

impl Layer {
    /// All layers, the one that decides first.
    pub const ALL: [Self; 3] = [Self::Human, Self::File, Self::Verified];

    /// The names, in the same order.
    pub const NAMES: [&'static str; 3] = [Self::Human.name(), Self::File.name(), Self::Verified.name()];

    /// The name that keys of rules have as their qualifier.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::File => "file",
            Self::Verified => "verified",
        }
    }

    /// Parses a name, in its form.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|layer| layer.name() == name);
        found.ok_or_else(|| Invalid::new(format!("must be one of {}, is {name:?}", Self::NAMES.join(", "))))
    }
}

/// Which layers decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layers {
    /// All of them.
    #[default]
    All,
    /// Not the verified one: what it is computed from must not depend on it.
    WithoutVerified,
}

/// Where the rules of a name stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Who made the rule.
    pub layer: Layer,
    /// Whether it is the rule for what is below the name only: `*.example.org`.
    pub below_only: bool,
}

impl Place {
    /// All places, the one that decides first.
    pub const ALL: [Self; 6] = {
        let [human, file, verified] = Layer::ALL;
        [
            Self::new(human, true),
            Self::new(human, false),
            Self::new(file, true),
            Self::new(file, false),
            Self::new(verified, true),
            Self::new(verified, false),
        ]
    };

    const fn new(layer: Layer, below_only: bool) -> Self {
        Self { layer, below_only }
    }

    /// Its index in [`Place::ALL`].
    pub const fn index(self) -> usize {
        2 * self.layer as usize + !self.below_only as usize
    }
}

/// The rules whose patterns have one name.
pub trait RulesHere {
    /// What comes with each rule, for example its revision.
    type With;

    /// The rule that stands there.
    fn rule(&self, place: Place) -> Option<(DomainRule, Self::With)>;
}

/// How far a host is trusted by a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided<'h, W> {
    /// The pattern of the rule that decides.
    pub covering: Covering<'h>,
    /// Who made it.
    pub layer: Layer,
    /// What it says.
    pub rule: DomainRule,
    /// How far the host is trusted. Where an UNBLOCK has no level, it is that which the lower layers give when blocks are
    /// ignored.
    pub level: TrustLevel,
    /// What came with the rule.
    pub with: W,
}

/// Decides about a host, in the form of [`host`](super::host). In each layer the rule with the longest name decides; of two with
/// one name that for subdomains only. `find` gives the rules of a name and is asked at most once for each name above the host.
#[inline]
pub fn deciding<R: RulesHere>(
    host: &str,
    layers: Layers,
    mut find: impl FnMut(&str) -> Option<R>,
) -> Option<Decided<'_, R::With>> {
    let mut first: [Option<(Covering<'_>, DomainRule, R::With)>; 3] = [None, None, None];
    let mut shown: [Option<DomainRule>; 3] = [None; 3];
    for name in suffixes(host) {
        let Some(rules) = find(name) else { continue };
        for place in Place::ALL {
            let Place { layer, below_only } = place;
            if (below_only && name.len() == host.len())
                || (layer == Layer::Verified && layers == Layers::WithoutVerified)
            {
                continue;
            }
            let Some((rule, with)) = rules.rule(place) else {
                continue;
            };
            let at = layer as usize;
            if rule != DomainRule::Block {
                shown[at] = shown[at].or(Some(rule));
            }
            if first[at].is_none() {
                first[at] = Some((Covering { name, below_only }, rule, with));
                if layer == Layer::Human && !rule.leaves_level_open() {
                    // Nothing above the name and nothing in another layer can change that.
                    break;
                }
            }
        }
        if let [Some((_, rule, _)), ..] = &first
            && !rule.leaves_level_open()
        {
            break;
        }
    }
    let (layer, (covering, rule, with)) = Layer::ALL
        .into_iter()
        .zip(first)
        .find_map(|(layer, rule)| rule.map(|rule| (layer, rule)))?;
    let level = if rule.leaves_level_open() {
        let below = &shown[layer as usize + 1..];
        let mut levels = below.iter().filter_map(|rule| rule.as_ref()?.level());
        levels.next().unwrap_or_default()
    } else {
        rule.trust()
    };
    Some(Decided {
        covering,
        layer,
        rule,
        level,
        with,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::{
        super::{DomainPattern, RulesOfName},
        *,
    };

    /// Rules as `layer pattern decision`.
    type Rules = HashMap<String, RulesOfName<()>>;

    fn rules(written: &[&str]) -> Rules {
        let mut rules = Rules::new();
        for rule in written {
            let [layer, pattern, decision] = rule.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{rule}")
            };
            let rule = DomainRule::parse(decision).unwrap();
            let of_name = rules.entry(Covering::of(pattern).name.to_owned()).or_default();
            of_name.set(pattern, Layer::parse(layer).unwrap(), Some((rule, ())));
        }
        rules
    }

    fn decided(host: &str, layers: Layers, rules: &Rules) -> String {
        let mut asked = Vec::new();
        let decided = deciding(host, layers, |name| {
            asked.push(name.to_owned());
            rules.get(name)
        });
        let mut once = asked.clone();
        once.dedup();
        assert_eq!(asked, once, "each name is asked for once");
        decided.map_or_else(
            || "unverified".to_owned(),
            |decided| {
                format!(
                    "{} by {} {}",
                    decided.level,
                    decided.layer.name(),
                    decided.covering.pattern()
                )
            },
        )
    }

    #[test]
    fn in_each_layer_the_longest_name_decides_and_then_the_wildcard() {
        for layer in Layer::NAMES {
            let written = [
                "example.org academic",
                "*.example.org trusted",
                "*.a.example.org low",
                "b.example.org block",
            ]
            .map(|rule| format!("{layer} {rule}"));
            let rules = rules(&written.each_ref().map(String::as_str));
            for (host, expected) in [
                ("example.org", "academic by LAYER example.org"),
                ("c.example.org", "trusted by LAYER *.example.org"),
                ("a.example.org", "trusted by LAYER *.example.org"),
                ("x.a.example.org", "low by LAYER *.a.example.org"),
                ("b.example.org", "blocked by LAYER b.example.org"),
                ("x.b.example.org", "blocked by LAYER b.example.org"),
                ("notexample.org", "unverified"),
                ("org", "unverified"),
            ] {
                let expected = expected.replace("LAYER", layer);
                assert_eq!(decided(host, Layers::All, &rules), expected, "{host}");
            }
        }
    }

    #[test]
    fn the_layer_comes_before_specificity() {
        for (written, host, expected) in [
            (
                &["human example.org low", "file a.example.org academic"][..],
                "a.example.org",
                "low by human example.org",
            ),
            (
                &["human *.example.org low", "file example.org academic"],
                "example.org",
                "academic by file example.org",
            ),
            (
                &["human *.example.org low", "file example.org academic"],
                "a.example.org",
                "low by human *.example.org",
            ),
            (
                &["file gov government", "verified a.gov block"],
                "a.gov",
                "government by file gov",
            ),
            (
                &["file *.example.org low", "verified example.org block"],
                "example.org",
                "blocked by verified example.org",
            ),
            (
                &["human org.example block", "verified example.org low"],
                "x.example.org",
                "low by verified example.org",
            ),
            (
                &["file example.org block", "human a.example.org trusted"],
                "b.example.org",
                "blocked by file example.org",
            ),
        ] {
            assert_eq!(
                decided(host, Layers::All, &rules(written)),
                expected,
                "{written:?}, {host}"
            );
        }
    }

    #[test]
    fn an_unblock_without_a_level_has_that_of_the_lower_layers_without_their_blocks() {
        for (written, expected) in [
            (&["human a.org unblock"][..], "unverified by human a.org"),
            (
                &["human a.org unblock:low", "file a.org academic"],
                "low by human a.org",
            ),
            (
                &["human a.org unblock", "file a.org academic"],
                "academic by human a.org",
            ),
            (
                &["human a.org unblock", "file org government"],
                "government by human a.org",
            ),
            (
                &["human a.org unblock", "file a.org block", "file org government"],
                "government by human a.org",
            ),
            (
                &["human a.org unblock", "file a.org block", "verified a.org low"],
                "low by human a.org",
            ),
            (
                &["human a.org unblock", "verified a.org block"],
                "unverified by human a.org",
            ),
            (
                &[
                    "human a.org unblock",
                    "file a.org unblock",
                    "file org low",
                    "verified org trusted",
                ],
                "trusted by human a.org",
            ),
            (&["file a.org unblock", "verified a.org low"], "low by file a.org"),
            // A person's rule for more than that is not a lower layer.
            (
                &["human a.org unblock", "human org low"],
                "unverified by human a.org",
            ),
        ] {
            assert_eq!(
                decided("a.org", Layers::All, &rules(written)),
                expected,
                "{written:?}"
            );
        }
    }

    #[test]
    fn levels_can_be_read_without_the_verified_layer() {
        let rules = rules(&["human b.org unblock", "verified org low", "verified a.org block"]);
        for (host, all, without) in [
            ("a.org", "blocked by verified a.org", "unverified"),
            ("b.org", "low by human b.org", "unverified by human b.org"),
        ] {
            assert_eq!(decided(host, Layers::All, &rules), all);
            assert_eq!(decided(host, Layers::WithoutVerified, &rules), without);
        }
    }

    #[test]
    fn places_are_in_the_order_in_which_they_decide() {
        for (index, place) in Place::ALL.into_iter().enumerate() {
            assert_eq!(place.index(), index);
            assert_eq!(Layer::parse(place.layer.name()), Ok(place.layer));
        }
        assert!(
            Layer::parse("default")
                .unwrap_err()
                .0
                .contains("human, file, verified")
        );
    }

    proptest! {
        #[test]
        fn who_decides_covers_the_host_and_nobody_before_it_does(
            host in "[ab](\\.[ab]){0,3}",
            written in proptest::collection::vec(
                "(human|file|verified) (\\*\\.)?[ab](\\.[ab]){0,3} (block|low|unblock:low)", 0..8,
            ),
        ) {
            let written: Vec<&str> = written.iter().map(String::as_str).collect();
            let covering = written.iter().filter_map(|rule| {
                let mut words = rule.split(' ');
                let (layer, pattern) = (words.next()?, words.next()?);
                let covers = DomainPattern::parse(pattern).ok()?.covers(&host);
                let Covering { name, below_only } = Covering::of(pattern);
                let layer = Layer::parse(layer).ok()?;
                covers.then_some(((std::cmp::Reverse(layer), name.len(), below_only), layer, pattern))
            });
            let expected = covering.max_by_key(|(order, ..)| *order);
            let expected = expected.map(|(_, layer, pattern)| format!("by {} {pattern}", layer.name()));
            let found = decided(&host, Layers::All, &rules(&written));
            let found = found.split_once(' ').map(|(_, by)| by.to_owned());
            prop_assert_eq!(found, expected);
        }
    }
}
