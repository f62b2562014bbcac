//! What was decided about the sources that a pattern of domains covers. Decided by rulings: the newest one in force
//! applies; a cleared rule leaves the default.
//!
//! The qualifier is the layer of the rule. Rules that people made by corrections or by hand are the layer `human`; the layers
//! `file` and `verified` only the system writes.

use super::{Field, Form, KindRules, Learned, Qualifier, Rule, RulingRules};
use crate::{
    evidence::{DomainPattern, DomainRule, DomainRuleValue, Layer, RuleCause, Suffix, TrustLevel},
    roles::Role,
    violation::Invalid,
};

/// The layer of what people decided.
pub const HUMAN: &str = Layer::Human.name();

pub(super) const RULES: KindRules = KindRules {
    name: "domain_rule",
    number: 5,
    summary: "What was decided about the sources that a pattern of domains covers",
    short_name: "domain",
    aliases: &["domain-rule", "domains"],
    key: Form::Domain,
    qualifier: Some(Qualifier {
        form: Form::OneOf(&Layer::NAMES),
        meaning: "the layer of the rule",
        field: None,
        default: None,
    }),
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk,
        needs_target: false,
        entitled: Role::Reviewer,
        by_corrections: true,
    }),
    parse: |word| DomainRule::parse(&word).map(|rule| Learned::DomainRule(rule.into())),
    allows,
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(value: &DomainRuleValue) -> Vec<Field<'_>> {
    let DomainRuleValue { rule, cause } = value;
    let mut fields = vec![
        Field::distinguishing("decision", rule.decision().name()),
        Field::distinguishing("level", rule.level().map_or("", TrustLevel::name)),
    ];
    if let Some(RuleCause { found, claim_id }) = cause {
        fields.push(Field::distinguishing("cause", found.name()));
        fields.push(Field::distinguishing("cause_id", claim_id));
    }
    fields
}

pub(super) fn maps_to(value: &DomainRuleValue) -> &str {
    use TrustLevel::{Academic, Blocked, Government, Low, Primary, Trusted, Unverified};
    match value.rule {
        DomainRule::Unblock(Some(level)) => match level {
            Primary => "unblock:primary",
            Government => "unblock:government",
            Academic => "unblock:academic",
            Trusted => "unblock:trusted",
            Low => "unblock:low",
            Unverified => "unblock:unverified",
            Blocked => "unblock",
        },
        DomainRule::SetTrust(level) => level.name(),
        rule => rule.decision().name(),
    }
}

pub(super) fn describe(pattern: &str, value: &DomainRuleValue) -> String {
    match value.rule {
        DomainRule::Block => format!("“{pattern}” is blocked"),
        DomainRule::Unblock(None) => format!("“{pattern}” is not blocked"),
        DomainRule::Unblock(Some(level)) => format!("“{pattern}” is not blocked; its trust is {level}"),
        DomainRule::SetTrust(level) => format!("the trust of “{pattern}” is {level}"),
        DomainRule::Clear => format!("“{pattern}” has no rule of its own, and the default applies again"),
    }
}

/// The newest decision. An UNBLOCK without a level has the one that was given before, unless the rule was cleared since.
fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    let mut values = newest_first.iter().filter_map(|learned| match learned {
        Learned::DomainRule(value) => Some(value),
        _ => None,
    });
    let newest = values.next()?;
    let rule = newest.rule;
    if rule == DomainRule::Clear {
        return None;
    }
    let mut value = newest.clone();
    if rule.leaves_level_open() {
        let mut before = values.take_while(|value| value.rule != DomainRule::Clear);
        value.rule = DomainRule::Unblock(before.find_map(|value| value.rule.level()));
    }
    Some(Learned::DomainRule(value))
}

fn nothing() -> Learned {
    Learned::DomainRule(DomainRule::Clear.into())
}

/// Who has a name below a private suffix is not who owns the suffix: a person decides about all of them.
fn is_high_risk(pattern: &str) -> bool {
    DomainPattern::parse(pattern).is_ok_and(|pattern| pattern.suffix() == Suffix::Private)
}

/// Nothing is decided at or above a public suffix but by the trust file, for levels: its own check says so of blocks.
fn allows(pattern: &str, layer: &str) -> Result<(), Invalid> {
    match DomainPattern::parse(pattern)?.suffix() {
        Suffix::Public if layer != Layer::File.name() => Err(Invalid::new(format!(
            "must name a domain below a public suffix, as example.org is below org: “{pattern}” is at or above one"
        ))),
        Suffix::Public | Suffix::Private | Suffix::None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Kind, *};
    use crate::evidence::DomainDecision;

    fn applies(newest_first: &[&str]) -> Option<String> {
        let rulings: Vec<Learned> = newest_first
            .iter()
            .map(|word| Learned::of(Kind::DomainRule, (*word).to_owned()).unwrap())
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
                    assert_eq!(DomainRule::parse(maps_to(&rule.into())), Ok(rule));
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
    fn only_the_trust_file_names_public_suffixes() {
        assert!(allows("example.org", HUMAN).is_ok());
        assert!(allows("github.io", HUMAN).is_ok());
        let refused = allows("*.co.jp", HUMAN).unwrap_err();
        assert!(refused.0.contains("*.co.jp"), "{refused}");
        assert!(allows("go.jp", Layer::File.name()).is_ok());
        assert!(allows("go.jp", Layer::Verified.name()).is_err());
    }
}
