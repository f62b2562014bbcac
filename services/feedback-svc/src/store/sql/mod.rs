//! SQL that is no part of either store.

pub(crate) mod claim;
