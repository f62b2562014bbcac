//! Use cases, on both databases.
