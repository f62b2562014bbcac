//! The contract of the stored evidence graph. Compiled for each database.
