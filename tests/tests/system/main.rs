//! The whole of Emend over the wire, on both databases. One test binary, so that it is linked once.

mod concurrency;
mod feedback;
mod import;
mod intent;
mod lists;
mod policy;
mod random_walk;
mod replicas;
mod review;
mod stream;
