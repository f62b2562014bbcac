//! What is said of sources: patterns of domains, levels of trust, and the relations of edges.

mod pattern;
mod relation;
mod rules;
mod trust;

pub use self::{
    pattern::{DomainPattern, Suffix, host, suffixes},
    relation::EdgeRelation,
    rules::{Covering, RulesOfName, deciding},
    trust::TrustLevel,
};
