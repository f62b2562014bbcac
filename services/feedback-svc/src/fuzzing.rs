//! Entry points for the fuzz targets to otherwise private code that reads untrusted input. Each panics if an invariant
//! does not hold.

pub use crate::{
    corrections::grpc::fuzzing::{event, page_token, request},
    store::fuzzing::row,
};
