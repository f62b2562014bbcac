//! Benchmarks as programs: each prints its figures beside those of a peer in the same run, on the same machine.
//!
//! One module per benchmark; this file only selects one.

mod contest;
mod domains;
mod edge;
mod evidence;
mod expand;
mod fanout;
mod generalise;
mod generator;
mod instructions;
mod lookup;
mod memory;
mod search;
mod submit;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The same allocator as Emend's own programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Emend's benchmarks. Build them with --profile dist, as what is shipped.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    Contest(contest::Contest),
    Domains(domains::Domains),
    Edge(edge::Edge),
    Evidence(evidence::Evidence),
    Expand(expand::Expand),
    Fanout(fanout::Fanout),
    Generalise(generalise::Generalise),
    Generator(generator::Generator),
    Instructions(instructions::Instructions),
    Lookup(lookup::Lookup),
    Search(search::Search),
    Submit(submit::Submit),
}

fn main() -> Result<()> {
    match Options::parse().benchmark {
        Benchmark::Contest(args) => contest::run(&args),
        Benchmark::Domains(args) => domains::run(&args),
        Benchmark::Edge(args) => edge::run(&args),
        Benchmark::Evidence(args) => evidence::run(&args),
        Benchmark::Expand(args) => expand::run(&args),
        Benchmark::Fanout(args) => fanout::run(&args),
        Benchmark::Generalise(args) => generalise::run(&args),
        Benchmark::Generator(args) => generator::run(&args),
        Benchmark::Instructions(args) => instructions::run(&args),
        Benchmark::Lookup(args) => lookup::run(&args),
        Benchmark::Search(args) => search::run(&args),
        Benchmark::Submit(args) => submit::run(&args),
    }
}
