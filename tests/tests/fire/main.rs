//! The loop under fire: its promises, checked against what was received and stored while things break. Seeded, bounded
//! in time, short by default and long with `EMEND_TEST_LONG=1`. It is one test binary, so that it is linked once.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(clippy::large_futures, reason = "a run is one future, of which there is one")]

mod black_hole;
mod clock;
mod disk;
mod fail_points;
mod kill;
mod network;
mod overload;
mod postgres;
mod restore;
mod rolling;
mod shutdown;
mod slow;
mod spread;
mod stream_audit;
