//! What phrases are answered with, as this replica's read model says: [`exact`] what was learned for a phrase itself, [`near`] what was
//! learned for similar ones, [`guess`] what follows from that for queries that found nothing; [`preview`] compares that with what would be answered if something else were learned.

pub(crate) mod exact;
pub(crate) mod guess;
pub(crate) mod near;
pub(crate) mod preview;
#[cfg(test)]
mod tests;

pub use self::{guess::Guesses, near::NearModels, preview::Previews};
