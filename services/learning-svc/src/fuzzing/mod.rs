//! Entry points for the fuzz targets: otherwise private code that reads input written by others. Each panics if an
//! invariant does not hold.

pub(crate) mod requests;

pub use crate::fuzzing::requests::{event, import, page_token, request};
