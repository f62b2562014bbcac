//! What is said of sources: patterns of domains and levels of trust.

mod pattern;
mod rules;
mod trust;

pub use self::{
    pattern::{DomainPattern, Suffix, host, suffixes},
    rules::{Covering, RulesOfName, deciding},
    trust::TrustLevel,
};
