//! What was decided about the sources of domains, by name: one look-up for each name above a host, however many rules there
//! are.

use emend_core::{
    DomainDecision, DomainRule, Layer, Revision, TrustLevel,
    evidence::{Decided, Place, RulesHere, RulesOfName},
};

/// What was decided about one name.
pub(crate) type DomainRules = RulesOfName<Revision>;

/// The only decision about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OnlyRule {
    place: Place,
    rule: DomainRule,
    revision: Revision,
}

impl From<OnlyRule> for DomainRules {
    fn from(only: OnlyRule) -> Self {
        let mut rules = Self::default();
        rules.set_at(only.place, Some((only.rule, only.revision)));
        rules
    }
}

/// What a look-up finds about one name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RulesFound<'a> {
    /// The only decision there is.
    Only(OnlyRule),
    /// Several.
    Several(&'a DomainRules),
}

impl RulesHere for RulesFound<'_> {
    type With = Revision;

    #[inline]
    fn rule(&self, place: Place) -> Option<(DomainRule, Revision)> {
        match self {
            Self::Only(only) => (only.place == place).then_some((only.rule, only.revision)),
            Self::Several(rules) => rules.rule(place),
        }
    }
}

/// How far a source is trusted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceTrust {
    /// The level. BLOCKED: it must not be shown. UNVERIFIED where nothing was decided.
    pub level: TrustLevel,
    /// What decided; `None`: nothing was decided.
    pub decided_by: Option<DomainDecided>,
}

/// The rule that decided how far a source is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDecided {
    /// The pattern of domains, for example `*.example.org`.
    pub pattern: String,
    /// Who made the rule.
    pub layer: Layer,
    /// What was decided about it.
    pub decision: DomainDecision,
    /// The revision that applied it.
    pub revision: Revision,
}

impl SourceTrust {
    pub(super) fn by(decided: &Decided<'_, Revision>) -> Self {
        Self {
            level: decided.level,
            decided_by: Some(DomainDecided {
                pattern: decided.covering.pattern(),
                layer: decided.layer,
                decision: decided.rule.decision(),
                revision: decided.with,
            }),
        }
    }

    /// What a result from the source weighs in a ranking, 0.0 to 1.0.
    pub fn weight(&self) -> f64 {
        self.level.weight()
    }

    /// Whether the source must not be shown.
    pub fn is_blocked(&self) -> bool {
        self.level == TrustLevel::Blocked
    }
}

/// Bits of a packed rule: what was decided, and above them its place.
const RULE_BITS: u32 = 4;

/// A decision and level as a number below 2^[`RULE_BITS`].
fn number_of(rule: DomainRule) -> u32 {
    let level = |levels_from: u32| {
        let place = TrustLevel::ALL
            .iter()
            .position(|level| Some(*level) == rule.level());
        place
            .and_then(|place| u32::try_from(place).ok())
            .map_or(levels_from, |place| levels_from + 1 + place)
    };
    match rule {
        DomainRule::Block => 0,
        DomainRule::Clear => 1,
        // Without a level, or with one of six.
        DomainRule::Unblock(_) => level(2),
        DomainRule::SetTrust(_) => level(8),
    }
}

/// The rule with that number.
fn rule_of(number: u32) -> Option<DomainRule> {
    let level = |levels_from: u32| TrustLevel::ALL.get((number - levels_from - 1) as usize).copied();
    let (decision, level) = match number {
        0 => (DomainDecision::Block, None),
        1 => (DomainDecision::Clear, None),
        2 => (DomainDecision::Unblock, None),
        3..=8 => (DomainDecision::Unblock, level(2)),
        _ => (DomainDecision::SetTrust, level(8)),
    };
    DomainRule::new(decision, level).ok()
}

/// The only rule of a name, packed into a few bits, with its revision; `None` if it has more than one.
pub(super) fn packed(rules: &DomainRules) -> Option<(u32, Revision)> {
    let (place, (rule, revision)) = rules.only()?;
    let place = u32::try_from(place.index()).ok()?;
    Some((number_of(*rule) | place << RULE_BITS, *revision))
}

/// The rule of a name that has only this one.
#[inline]
pub(super) fn unpacked(packed: usize, revision: Revision) -> Option<OnlyRule> {
    let place = *Place::ALL.get(packed >> RULE_BITS)?;
    let number = u32::try_from(packed & ((1 << RULE_BITS) - 1)).ok()?;
    Some(OnlyRule {
        place,
        rule: rule_of(number)?,
        revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_packed_and_unpacked() {
        let mut numbers = std::collections::HashSet::new();
        for decision in DomainDecision::ALL {
            for level in TrustLevel::ALL.into_iter().map(Some).chain([None]) {
                let Ok(rule) = DomainRule::new(decision, level) else {
                    continue;
                };
                for place in Place::ALL {
                    let only = OnlyRule {
                        place,
                        rule,
                        revision: Revision(7),
                    };
                    let mut rules = DomainRules::from(only);
                    let (number, revision) = packed(&rules).unwrap();
                    assert!(numbers.insert(number), "{only:?}");
                    assert_eq!(unpacked(number as usize, revision), Some(only));
                    let next = Place::ALL[(place.index() + 1) % Place::ALL.len()];
                    rules.set_at(next, Some((rule, revision)));
                    assert_eq!(packed(&rules), None, "there are two");
                }
            }
        }
    }
}
