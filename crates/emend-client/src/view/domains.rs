//! What was decided about the sources of domains, by name: one look-up for each name above a host, however many rules there
//! are.

use emend_core::{DomainDecision, DomainRule, Revision, TrustLevel, evidence::RulesOfName};

/// What was decided about one name.
pub(crate) type DomainRules = RulesOfName<(DomainRule, Revision)>;

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
    /// What was decided about it.
    pub decision: DomainDecision,
    /// The revision that applied it.
    pub revision: Revision,
}

impl SourceTrust {
    pub(super) fn by(pattern: String, rule: DomainRule, revision: Revision) -> Self {
        Self {
            level: rule.trust(),
            decided_by: Some(DomainDecided {
                pattern,
                decision: rule.decision,
                revision,
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

/// Bits of a packed rule: what was decided, and then whether it covers the subdomains only.
const RULE_BITS: u32 = 4;

/// A decision and level as a number below 2^[`RULE_BITS`].
fn number_of(rule: DomainRule) -> u32 {
    let level = |levels_from: u32| {
        let place = TrustLevel::ALL
            .iter()
            .position(|level| Some(*level) == rule.level);
        place
            .and_then(|place| u32::try_from(place).ok())
            .map_or(levels_from, |place| levels_from + 1 + place)
    };
    match rule.decision {
        DomainDecision::Block => 0,
        DomainDecision::Clear => 1,
        // Without a level, or with one of six.
        DomainDecision::Unblock => level(2),
        DomainDecision::SetTrust => level(8),
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
    let (subdomains_only, (rule, revision)) = match (rules.covering_it, rules.below_it) {
        (Some(only), None) => (0, only),
        (None, Some(only)) => (1, only),
        _ => return None,
    };
    Some((number_of(rule) | subdomains_only << RULE_BITS, revision))
}

/// The rules of a name that has only this one.
pub(super) fn unpacked(packed: usize, revision: Revision) -> Option<DomainRules> {
    let packed = u32::try_from(packed).ok()?;
    let ruled = (rule_of(packed & ((1 << RULE_BITS) - 1))?, revision);
    Some(if packed >> RULE_BITS == 0 {
        DomainRules {
            covering_it: Some(ruled),
            below_it: None,
        }
    } else {
        DomainRules {
            covering_it: None,
            below_it: Some(ruled),
        }
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
                let some_rule = Some((rule, Revision(7)));
                for (covering_it, below_it) in [(some_rule, None), (None, some_rule)] {
                    let rules = DomainRules {
                        covering_it,
                        below_it,
                    };
                    let (number, revision) = packed(&rules).unwrap();
                    assert!(
                        numbers.insert(number) && number < 1 << (RULE_BITS + 1),
                        "{rule:?}"
                    );
                    assert_eq!(unpacked(number as usize, revision), Some(rules));
                }
                assert_eq!(
                    packed(&DomainRules {
                        covering_it: some_rule,
                        below_it: some_rule
                    }),
                    None
                );
            }
        }
    }
}
