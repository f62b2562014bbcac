//! Entry points for the fuzz targets to otherwise private code that reads untrusted input. Each panics if an invariant
//! does not hold.

mod requests;

pub use crate::fuzzing::requests::{event, page_token, request};
