//! Between the numbers of the wire's enums and what they mean.

use emend_core::{
    DomainDecision, EdgeRelation, Invalid, Language, Relation, TrustLevel, evidence::Finding,
    search::SearchRating,
};
use emend_proto::common::v1 as pb;

/// The language with this number; UNSPECIFIED is EN.
pub fn language(number: i32) -> Result<Language, Invalid> {
    match number {
        0 => Ok(Language::En),
        number => Language::from_number(number)
            .ok_or_else(|| Invalid::new(format!("is not a known language: {number}"))),
    }
}

/// A rating of what a search returned.
pub fn search_rating(number: i32) -> Result<SearchRating, Invalid> {
    match pb::SearchRatingValue::try_from(number) {
        Ok(pb::SearchRatingValue::Up) => Ok(SearchRating::Up),
        Ok(pb::SearchRatingValue::Neutral) => Ok(SearchRating::Neutral),
        Ok(pb::SearchRatingValue::Down) => Ok(SearchRating::Down),
        Ok(pb::SearchRatingValue::Unspecified) => Err(Invalid::new("is required: UP, NEUTRAL or DOWN")),
        Err(_) => Err(Invalid::new(format!("is not a known rating: {number}"))),
    }
}

/// Its value on the wire.
pub fn search_rating_value(rating: SearchRating) -> pb::SearchRatingValue {
    match rating {
        SearchRating::Up => pb::SearchRatingValue::Up,
        SearchRating::Neutral => pb::SearchRatingValue::Neutral,
        SearchRating::Down => pb::SearchRatingValue::Down,
    }
}

/// The relation of an edge with this number.
pub fn edge_relation(number: i32) -> Result<EdgeRelation, Invalid> {
    match number {
        0 => Err(Invalid::new("is required")),
        number => EdgeRelation::from_number(number)
            .ok_or_else(|| Invalid::new(format!("is not a known relation: {number}"))),
    }
}

/// The decision with this number.
pub(super) fn decision(number: i32) -> Result<DomainDecision, Invalid> {
    match pb::DomainDecision::try_from(number) {
        Ok(pb::DomainDecision::Block) => Ok(DomainDecision::Block),
        Ok(pb::DomainDecision::Unblock) => Ok(DomainDecision::Unblock),
        Ok(pb::DomainDecision::SetTrust) => Ok(DomainDecision::SetTrust),
        Ok(pb::DomainDecision::Clear) => Ok(DomainDecision::Clear),
        Ok(pb::DomainDecision::Unspecified) => Err(Invalid::new("is required")),
        Err(_) => Err(Invalid::new(format!("is not a known decision: {number}"))),
    }
}

pub(super) fn decision_number(decision: DomainDecision) -> pb::DomainDecision {
    match decision {
        DomainDecision::Block => pb::DomainDecision::Block,
        DomainDecision::Unblock => pb::DomainDecision::Unblock,
        DomainDecision::SetTrust => pb::DomainDecision::SetTrust,
        DomainDecision::Clear => pb::DomainDecision::Clear,
    }
}

/// The number on the wire of what the system found.
pub(super) fn finding_number(found: Option<Finding>) -> pb::DomainRuleCause {
    match found {
        None => pb::DomainRuleCause::Unspecified,
        Some(Finding::DangerousPattern) => pb::DomainRuleCause::DangerousPattern,
        Some(Finding::RejectedShare) => pb::DomainRuleCause::RejectedShare,
        Some(Finding::IndependentSupport) => pb::DomainRuleCause::IndependentSupport,
    }
}

/// The level with this number; `None` for UNSPECIFIED.
pub(super) fn trust_level(number: i32) -> Result<Option<TrustLevel>, Invalid> {
    let mut all = TrustLevel::ALL.into_iter();
    match number {
        0 => Ok(None),
        number => all
            .find(|level| i32::from(level_number(Some(*level))) == number)
            .map(Some)
            .ok_or_else(|| Invalid::new(format!("is not a known level: {number}"))),
    }
}

/// The level's number on the wire.
pub fn level_number(level: Option<TrustLevel>) -> pb::TrustLevel {
    match level {
        None => pb::TrustLevel::Unspecified,
        Some(TrustLevel::Primary) => pb::TrustLevel::Primary,
        Some(TrustLevel::Government) => pb::TrustLevel::Government,
        Some(TrustLevel::Academic) => pb::TrustLevel::Academic,
        Some(TrustLevel::Trusted) => pb::TrustLevel::Trusted,
        Some(TrustLevel::Low) => pb::TrustLevel::Low,
        Some(TrustLevel::Unverified) => pb::TrustLevel::Unverified,
        Some(TrustLevel::Blocked) => pb::TrustLevel::Blocked,
    }
}

/// The relation with this number; UNSPECIFIED is EQUIVALENT.
pub(super) fn relation(number: i32) -> Result<Relation, Invalid> {
    match pb::SynonymRelation::try_from(number) {
        Ok(pb::SynonymRelation::Unspecified | pb::SynonymRelation::Equivalent) => Ok(Relation::Equivalent),
        Ok(pb::SynonymRelation::OneWay) => Ok(Relation::OneWay),
        Ok(pb::SynonymRelation::Typo) => Ok(Relation::Typo),
        Err(_) => Err(Invalid::new(format!("is not a known relation: {number}"))),
    }
}

/// The relation's number on the wire.
pub fn relation_number(relation: Relation) -> pb::SynonymRelation {
    match relation {
        Relation::Equivalent => pb::SynonymRelation::Equivalent,
        Relation::OneWay => pb::SynonymRelation::OneWay,
        Relation::Typo => pb::SynonymRelation::Typo,
    }
}
