//! What a person decided about the sources that a pattern of domains covers. Decided by rulings: the newest one in force
//! applies; a cleared rule leaves the default.
//!
//! The qualifier is the layer of the rule. Rules that people made by corrections or by hand are the layer `human`.

use super::{Field, Form, KindRules, Learned, Qualifier, Rule, RulingRules};
use crate::{
    evidence::{DomainPattern, Suffix, TrustLevel},
    violation::Invalid,
};

/// The layer of what people decided.
pub const HUMAN: &str = "human";

/// A decision about the sources that a pattern covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DomainRule {
    /// What was decided.
    pub decision: DomainDecision,
    /// How far they are trusted: always given with `SetTrust`, perhaps with `Unblock`, never otherwise. Never `Blocked`.
    pub level: Option<TrustLevel>,
}

/// What is decided about sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DomainDecision {
    /// They are not shown.
    Block,
    /// They are shown, whatever lower layers say. Without a level they keep the one given to the pattern before.
    Unblock,
    /// They are trusted this far.
    SetTrust,
    /// No rule: the default applies again. Never a resource.
    Clear,
}

impl DomainDecision {
    /// All decisions, in the order of their numbers on the wire.
    pub const ALL: [Self; 4] = [Self::Block, Self::Unblock, Self::SetTrust, Self::Clear];

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::SetTrust => "set_trust",
            Self::Clear => "clear",
        }
    }
}

impl DomainRule {
    /// No rule: the default applies.
    pub const CLEAR: Self = Self {
        decision: DomainDecision::Clear,
        level: None,
    };

    /// A decision with its level. `SetTrust` needs one, `Unblock` may have one, the others have none; `Blocked` is none.
    pub fn new(decision: DomainDecision, level: Option<TrustLevel>) -> Result<Self, Invalid> {
        use DomainDecision::{Block, Clear, SetTrust, Unblock};
        match (decision, level) {
            (_, Some(TrustLevel::Blocked)) => {
                Err(Invalid::new("must not be BLOCKED: block the pattern instead"))
            }
            (SetTrust, None) => Err(Invalid::new("is required: how far the sources are trusted")),
            (Block | Clear, Some(_)) => Err(Invalid::new("must be empty with this decision")),
            (Block | Clear | Unblock, None) | (Unblock | SetTrust, Some(_)) => Ok(Self { decision, level }),
        }
    }

    /// The decision as one word: `block`, `unblock`, `unblock:academic`, `academic`, `clear`.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        let word = word.trim().to_ascii_lowercase();
        let (decision, level) = match word.split_once(':') {
            Some(("unblock", level)) => (DomainDecision::Unblock, Some(level)),
            _ => match word.as_str() {
                "block" => (DomainDecision::Block, None),
                "unblock" => (DomainDecision::Unblock, None),
                "clear" => (DomainDecision::Clear, None),
                level => (DomainDecision::SetTrust, Some(level)),
            },
        };
        let level = level.map(TrustLevel::parse).transpose();
        let level = level.map_err(|Invalid(why)| {
            Invalid::new(format!(
                "must be block, unblock, unblock:LEVEL, clear or a level; a level {why}"
            ))
        })?;
        Self::new(decision, level)
    }

    /// How far a source that this rule decides about is trusted.
    pub fn trust(self) -> TrustLevel {
        match self.decision {
            DomainDecision::Block => TrustLevel::Blocked,
            DomainDecision::Unblock | DomainDecision::SetTrust | DomainDecision::Clear => {
                self.level.unwrap_or_default()
            }
        }
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "domain_rule",
    number: 5,
    summary: "What was decided about the sources that a pattern of domains covers",
    short_name: "domain",
    aliases: &["domain-rule", "domains"],
    key: Form::Domain,
    qualifier: Some(Qualifier {
        form: Form::OneOf(&[HUMAN]),
        meaning: "the layer of the rule",
        field: None,
    }),
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk,
        needs_target: false,
    }),
    parse: |word| DomainRule::parse(&word).map(Learned::DomainRule),
    allows,
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(rule: &DomainRule) -> Vec<Field<'_>> {
    vec![
        Field::distinguishing("decision", rule.decision.name()),
        Field::distinguishing("level", rule.level.map_or("", TrustLevel::name)),
    ]
}

pub(super) fn maps_to(rule: &DomainRule) -> &str {
    use TrustLevel::{Academic, Blocked, Government, Low, Primary, Trusted, Unverified};
    match (rule.decision, rule.level) {
        (DomainDecision::Unblock, Some(level)) => match level {
            Primary => "unblock:primary",
            Government => "unblock:government",
            Academic => "unblock:academic",
            Trusted => "unblock:trusted",
            Low => "unblock:low",
            Unverified => "unblock:unverified",
            Blocked => "unblock",
        },
        (DomainDecision::SetTrust, Some(level)) => level.name(),
        (decision, _) => decision.name(),
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the same signature for all kinds"
)]
pub(super) fn describe(pattern: &str, rule: &DomainRule) -> String {
    match (rule.decision, rule.level) {
        (DomainDecision::Block, _) => format!("“{pattern}” is blocked"),
        (DomainDecision::Unblock, None) => format!("“{pattern}” is not blocked"),
        (DomainDecision::Unblock, Some(level)) => format!("“{pattern}” is not blocked; its trust is {level}"),
        (DomainDecision::SetTrust, level) => {
            format!("the trust of “{pattern}” is {}", level.unwrap_or_default())
        }
        (DomainDecision::Clear, _) => {
            format!("“{pattern}” has no rule of its own, and the default applies again")
        }
    }
}

/// The newest decision. An UNBLOCK without a level has the one that was given before, unless the rule was cleared since.
fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    let mut rules = newest_first.iter().filter_map(|learned| match learned {
        Learned::DomainRule(rule) => Some(*rule),
        _ => None,
    });
    let newest = rules.next()?;
    match newest {
        DomainRule {
            decision: DomainDecision::Clear,
            ..
        } => None,
        DomainRule {
            decision: DomainDecision::Unblock,
            level: None,
        } => {
            let mut before = rules.take_while(|rule| rule.decision != DomainDecision::Clear);
            Some(Learned::DomainRule(DomainRule {
                level: before.find_map(|rule| rule.level),
                ..newest
            }))
        }
        rule => Some(Learned::DomainRule(rule)),
    }
}

fn nothing() -> Learned {
    Learned::DomainRule(DomainRule::CLEAR)
}

/// Who has a name below a private suffix is not who owns the suffix: a person decides about all of them.
fn is_high_risk(pattern: &str) -> bool {
    DomainPattern::parse(pattern).is_ok_and(|pattern| pattern.suffix() == Suffix::Private)
}

/// People decide about nothing at or above a public suffix.
fn allows(pattern: &str, _layer: &str) -> Result<(), Invalid> {
    match DomainPattern::parse(pattern)?.suffix() {
        Suffix::Public => Err(Invalid::new(format!(
            "must name a domain below a public suffix, as example.org is below org: “{pattern}” is at or above one"
        ))),
        Suffix::Private | Suffix::None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applies(newest_first: &[&str]) -> Option<String> {
        let rulings: Vec<Learned> = newest_first
            .iter()
            .map(|word| Learned::DomainRule(DomainRule::parse(word).unwrap()))
            .collect();
        let rulings: Vec<&Learned> = rulings.iter().collect();
        in_force(&rulings).map(|learned| learned.maps_to().to_owned())
    }

    #[test]
    fn the_newest_decision_applies() {
        for (newest_first, expected) in [
            (&[][..], None),
            (&["block"], Some("block")),
            (&["academic", "block"], Some("academic")),
            (&["clear", "block"], None),
            (&["unblock"], Some("unblock")),
            (&["unblock", "block", "academic", "low"], Some("unblock:academic")),
            (&["unblock:low", "academic"], Some("unblock:low")),
            (&["unblock", "unblock:low", "academic"], Some("unblock:low")),
            (&["unblock", "clear", "academic"], Some("unblock")),
        ] {
            assert_eq!(applies(newest_first).as_deref(), expected, "{newest_first:?}");
        }
    }

    #[test]
    fn a_decision_is_one_word() {
        for decision in DomainDecision::ALL {
            for level in TrustLevel::ALL.into_iter().map(Some).chain([None]) {
                if let Ok(rule) = DomainRule::new(decision, level) {
                    assert_eq!(DomainRule::parse(maps_to(&rule)), Ok(rule));
                }
            }
        }
        for word in [
            "",
            "blocked",
            "unblock:",
            "unblock:blocked",
            "block:low",
            "set_trust",
            "hide",
        ] {
            assert!(DomainRule::parse(word).is_err(), "{word}");
        }
    }

    #[test]
    fn people_decide_below_public_suffixes_only() {
        assert!(allows("example.org", HUMAN).is_ok());
        assert!(allows("github.io", HUMAN).is_ok());
        let refused = allows("*.co.jp", HUMAN).unwrap_err();
        assert!(refused.0.contains("*.co.jp"), "{refused}");
    }
}
