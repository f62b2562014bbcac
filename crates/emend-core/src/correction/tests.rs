//! Which corrections are valid, and what they are about.

use super::*;
use crate::{
    evidence::{DomainDecision, DomainRule, EdgeRelation},
    ids::Namespace,
    kinds::HUMAN,
    ratings::RatingFields,
};

#[test]
fn a_verb_correction_and_a_phrase_mapping_of_one_phrase_share_a_contest() {
    let namespace = Namespace::parse("fund-admin").unwrap();
    let verb = Correction::parse_verb(" Set up a CSA", "create_csa", "create_isda").unwrap();
    let mapping = Correction::parse_phrase_mapping("set up a csa", "create_isda").unwrap();
    let (verb, mapping) = (verb.effects(&namespace, None), mapping.effects(&namespace, None));
    assert_eq!(verb[0].key, mapping[0].key);
    assert_eq!(verb[0].value.learned, mapping[0].value.learned);
}

#[test]
fn personal_data_matters_only_in_values_for_all_users() {
    let namespace = Namespace::parse("fund-admin").unwrap();
    let correction = Correction::parse_phrase_mapping("mail jane.doe@example.org", "send_mail").unwrap();
    assert!(correction.effects(&namespace, None)[0].personal_data);
    let jane = Some(UserId::parse("jane").unwrap());
    assert!(!correction.effects(&namespace, jane.as_ref())[0].personal_data);
}

#[test]
fn each_equivalent_of_a_term_has_an_effect_of_its_own() {
    let namespace = Namespace::parse("cards").unwrap();
    let correction =
        Correction::parse_term("フィールド", ["盤面", "Board"].into_iter(), Relation::OneWay).unwrap();
    let effects = correction.effects(&namespace, None);
    let keys: Vec<_> = effects.iter().map(|effect| effect.key.key.as_str()).collect();
    assert_eq!(keys, ["盤面", "board"]);
    let forbidden = Correction::parse_prohibition("wind down", " Delete_Fund").unwrap();
    let displays = effects.iter().map(|effect| effect.value.display.as_str());
    assert!(displays.eq(["", "Board"]), "no display that is the key itself");
    for effect in effects.iter().chain(&forbidden.effects(&namespace, None)) {
        assert_eq!(
            effect.value.learned.qualifier_of_key(),
            Some(Ok(effect.key.qualifier.clone()))
        );
    }
    for effect in &effects {
        assert_eq!(effect.value.learned.maps_to(), "フィールド");
    }
}

#[test]
fn a_decision_about_a_domain_is_about_its_pattern_in_the_human_layer() {
    let namespace = Namespace::parse("research").unwrap();
    let rule = Ok(DomainRule::Unblock(Some(TrustLevel::Academic)));
    let correction = Correction::parse_domain(" *.Example.ORG.", rule, "").unwrap();
    let effects = correction.effects(&namespace, None);
    assert_eq!(effects[0].key.key.as_str(), "*.example.org");
    assert_eq!(effects[0].key.qualifier, HUMAN);
    assert_eq!(effects[0].value.display, "*.Example.ORG.");
    assert_eq!(effects[0].value.learned.maps_to(), "unblock:academic");
    assert_eq!(correction.check_new(), Ok(()));
}

#[test]
fn levels_and_patterns_that_are_not_allowed_are_named() {
    let fields = |decision, pattern, level| -> Vec<String> {
        let parsed = Correction::parse_domain(pattern, DomainRule::new(decision, level), "");
        let violations = parsed
            .and_then(|parsed| parsed.check_new())
            .unwrap_err()
            .into_vec();
        violations.into_iter().map(|violation| violation.field).collect()
    };
    assert_eq!(
        fields(DomainDecision::Block, "https://example.org", None),
        ["pattern"]
    );
    assert_eq!(fields(DomainDecision::Block, "co.jp", None), ["pattern"]);
    assert_eq!(
        fields(DomainDecision::Block, "", Some(TrustLevel::Low)),
        ["pattern", "level"]
    );
    assert_eq!(fields(DomainDecision::SetTrust, "example.org", None), ["level"]);
    let blocked = Some(TrustLevel::Blocked);
    assert_eq!(
        fields(DomainDecision::SetTrust, "example.org", blocked),
        ["level"]
    );
}

#[test]
fn a_rating_is_about_its_target_as_it_is_written() {
    let namespace = Namespace::parse("research").unwrap();
    let fields = RatingFields {
        target: " INTERPRET ",
        value: "GOOD",
        target_id: "q-1",
        input_text: "mail a@b.org",
        output_text: "done",
        ..RatingFields::default()
    };
    let rating = Correction::parse_rating(fields);
    let masked = rating.unwrap().masked();
    let effects = masked.effects(&namespace, None);
    assert_eq!(effects[0].key.key.as_str(), "INTERPRET");
    assert!(!effects[0].personal_data);
    assert_eq!(effects[0].rating.as_ref().unwrap().texts.input, "mail [email]");
    let bare = masked.clone().without_personal_parts();
    assert_eq!(bare.rating().unwrap().texts, RatedTexts::default());
    assert_eq!(bare.with_texts(masked.rating().unwrap().texts.clone()), masked);
}

#[test]
fn a_decision_about_a_claim_or_an_edge_is_about_its_exact_id() {
    let namespace = Namespace::parse("research").unwrap();
    for (correction, key, maps_to) in [
        (
            Correction::parse_claim_reject(" C1 ", "SPAM", " t1 "),
            "C1",
            "rejected:SPAM",
        ),
        (
            Correction::parse_claim_reject("+44 20 7946 0958", "", "t1"),
            "+44 20 7946 0958",
            "rejected",
        ),
        (Correction::parse_claim_restore("c1", "t1"), "c1", "restored"),
        (
            Correction::parse_edge("e1", Ok(EdgeRelation::Refutes), "t1"),
            "e1",
            "refutes",
        ),
    ] {
        let effects = correction.unwrap().effects(&namespace, None);
        assert_eq!(effects[0].key.key.as_str(), key);
        assert_eq!(effects[0].value.learned.maps_to(), maps_to);
        assert_eq!(effects[0].task.as_deref(), Some("t1"));
        assert!(!effects[0].personal_data);
    }
    assert_eq!(Correction::parse_claim_restore("c1", " ").unwrap().task(), None);
}

#[test]
fn equivalents_that_teach_nothing_are_named() {
    let violations = |term: &str, equivalents: &[&str]| -> Vec<String> {
        let parsed = Correction::parse_term(term, equivalents.iter().copied(), Relation::default());
        let violations = parsed.unwrap_err().into_vec();
        violations.into_iter().map(|violation| violation.field).collect()
    };
    assert_eq!(violations("board", &[]), ["equivalents"]);
    assert_eq!(
        violations("board", &["a"; 33])[..2],
        ["equivalents", "equivalents[1]"]
    );
    assert_eq!(
        violations("board", &["BOARD ", "field", "Field", " "]),
        ["equivalents[0]", "equivalents[2]", "equivalents[3]"]
    );
    assert_eq!(violations("", &["a", "b"]), ["term"]);
}
