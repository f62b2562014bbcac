//! Benchmarks that are programs: each prints its figures beside those of a peer in the same run, on the same machine.
//!
//! One file for each benchmark; this only picks one.

mod lookup;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Emend's benchmarks. Build them with --release.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    Lookup(lookup::Lookup),
}

fn main() -> Result<()> {
    match Options::parse().benchmark {
        Benchmark::Lookup(args) => lookup::run(&args),
    }
}
