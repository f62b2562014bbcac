//! Load on services, beside that of [`harness::load`](crate::harness::load).

pub mod backends;
pub mod memory;
pub mod pressure;
