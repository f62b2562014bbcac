//! What is said of sources: patterns of domains and levels of trust.

mod pattern;
mod trust;

pub use self::{
    pattern::{DomainPattern, Suffix, host, suffixes},
    trust::TrustLevel,
};
