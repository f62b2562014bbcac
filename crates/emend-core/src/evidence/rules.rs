//! Patterns in their form taken apart, and the rules that share a name.

use super::DomainRule;
use super::layers::{Layer, Place, RulesHere};

/// The rules whose patterns have one name, of all layers, each with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RulesOfName<W>([Option<(DomainRule, W)>; Place::ALL.len()]);

impl<W> Default for RulesOfName<W> {
    fn default() -> Self {
        Self([const { None }; Place::ALL.len()])
    }
}

impl<W> RulesOfName<W> {
    /// Sets or removes the rule that a layer has for a pattern, in its form, that has this name.
    pub fn set(&mut self, pattern: &str, layer: Layer, rule: Option<(DomainRule, W)>) {
        let Covering { below_only, .. } = Covering::of(pattern);
        self.set_at(Place { layer, below_only }, rule);
    }

    /// Sets or removes the rule that stands there.
    pub fn set_at(&mut self, place: Place, rule: Option<(DomainRule, W)>) {
        self.0[place.index()] = rule;
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The rule and where it stands, if there is only one.
    pub fn only(&self) -> Option<(Place, &(DomainRule, W))> {
        let mut rules = Place::ALL.into_iter().zip(&self.0);
        let mut all = rules
            .by_ref()
            .filter_map(|(place, rule)| Some((place, rule.as_ref()?)));
        let only = all.next();
        only.filter(|_| all.next().is_none())
    }
}

impl<W: Clone> RulesHere for &RulesOfName<W> {
    type With = W;

    #[inline]
    fn rule(&self, place: Place) -> Option<(DomainRule, W)> {
        self.0[place.index()].clone()
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
