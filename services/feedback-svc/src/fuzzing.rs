//! For the fuzz targets: what reads what others wrote and is private otherwise. Each panics where something does not hold
//! that must.

pub use crate::{
    grpc::fuzzing::{event, page_token, request},
    store::fuzzing::row,
};
