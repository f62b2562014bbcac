//! Emend's chores: what a contributor or CI runs. Each subcommand is a module; this one parses the command line.

mod bench;
mod chart;
mod clients;
mod custom;
mod dashboard;
mod debian;
mod dependencies;
mod digest;
mod dist;
mod docs;
mod engines;
mod faketime;
mod fuzz;
mod instructions;
mod lint;
mod manifests;
mod observability;
mod postgres;
mod process;
mod prometheus;
mod proto;
mod steps;
mod supervise;
mod test;
mod tools;
mod walls;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use process::Workspace;
use steps::Steps;
use test::Tier;

/// Emend's chores.
#[derive(Parser)]
#[command(name = "cargo xtask", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Lint, then unit, contract and system tests on SQLite and PostgreSQL. With --all everything that CI runs: also
    /// fault runs, manifests, documents and fuzz targets.
    ///
    /// PostgreSQL is the server named by `EMEND_TEST_POSTGRES_URL`, else a temporary one on a free port of 127.0.0.1.
    /// Client tools are installed in target/tools. Skipped tests are listed at the end; with CI=true they are a
    /// failure.
    Test {
        #[command(flatten)]
        install: Install,
        /// Everything that CI runs: also fault runs, manifests, documents and fuzz targets.
        #[arg(long, conflicts_with = "cargo_test")]
        all: bool,
        /// What takes too long for each change: all tests that can be long, all fault runs, and rustdoc with private items.
        #[arg(long, conflicts_with_all = ["all", "cargo_test"])]
        nightly: bool,
        /// Arguments for `cargo test` instead of `--workspace`; skips lint. Example: -- -p learning-svc votes
        #[arg(last = true)]
        cargo_test: Vec<String>,
    },
    /// Checks format, protos, dependencies, documents and alert rules, and runs clippy and rustdoc; changes nothing.
    Lint {
        #[command(flatten)]
        install: Install,
        /// Skip the manifests' checks, which need tools, and clippy and rustdoc, which compile.
        #[arg(long)]
        quick: bool,
    },
    /// Renders the manifests of deploy/k8s with all their components and checks them; `lint` does this, too.
    Manifests {
        #[command(flatten)]
        install: Install,
        /// Write the templates of the Helm chart first.
        #[arg(long)]
        write: bool,
    },
    /// Formats and lints the protos and checks for breaking changes against branch main.
    Proto {
        #[command(flatten)]
        install: Install,
    },
    /// Checks the clients in other languages: their types, and their tests against a real pair; `test` does this, too.
    Clients {
        #[command(flatten)]
        install: Install,
        /// Only this language; default: all.
        language: Option<clients::Language>,
        /// Write the types of the Node package first.
        #[arg(long)]
        write: bool,
        /// What is run each night instead: ten minutes of updates, and each package as its guide has it installed and used.
        #[arg(long)]
        long: bool,
    },
    /// Packs the programs and an image of each, with checksums and what they are made of, in target/packages.
    Dist {
        #[command(flatten)]
        install: Install,
        #[command(flatten)]
        release: dist::Release,
    },
    /// Writes generated documents: references, the dashboard, examples in documents.
    Docs {
        #[command(flatten)]
        install: Install,
    },
    /// Runs a benchmark; passes the arguments to the `emend-benches` program, built as what is shipped.
    #[command(disable_help_flag = true)]
    Bench {
        /// See `cargo xtask bench --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Counts the instructions of hot paths by callgrind; fails if one takes more than 5 % more than is written down.
    Instructions {
        #[command(flatten)]
        install: Install,
        /// Write down what is counted, in benches/instructions.toml.
        #[arg(long)]
        write: bool,
    },
    /// Prints how long a correction takes until real engines' next search is right: by the edge, and by their own way.
    Engines {
        #[command(flatten)]
        install: Install,
    },
    /// The long run of the fuzz targets, guided by coverage. The short one is part of the tests.
    ///
    /// Findings go to target/fuzz-found, inputs that reach new code to target/fuzz-corpus. Needs a C++ compiler.
    Fuzz {
        /// Only this target; default: all, one after the other.
        target: Option<String>,
        /// Seconds per target.
        #[arg(long, default_value_t = 180)]
        seconds: u32,
    },
    /// Runs a temporary PostgreSQL until interrupted and prints its URL.
    Postgres {
        #[command(flatten)]
        install: Install,
    },
    #[command(hide = true, name = "supervise-postgres")]
    SupervisePostgres {
        /// The directory of PostgreSQL's programs.
        #[arg(long)]
        bin_dir: PathBuf,
    },
}

/// Whether a chore may install what it needs.
#[derive(Args, Clone, Copy)]
struct Install {
    /// Install nothing: neither Debian packages (done only as root) nor tools under target/tools. What is missing is skipped.
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let workspace = Workspace::locate();
    let outcome = match cli.task {
        Task::Test {
            install,
            all,
            nightly,
            cargo_test,
        } => {
            let tier = if all {
                Tier::All
            } else if nightly {
                Tier::Nightly
            } else if cargo_test.is_empty() {
                Tier::Quick
            } else {
                Tier::Selected(cargo_test)
            };
            return test::test(&workspace, !install.no_install, &tier);
        }
        Task::Lint { install, quick } => return lint::lint(&workspace, !install.no_install, quick),
        Task::Manifests { install, write } => {
            return manifests::manifests(&workspace, !install.no_install, write);
        }
        Task::Proto { install } => proto::proto(&workspace, !install.no_install),
        Task::Clients {
            install,
            language,
            write,
            long,
        } => {
            let mut steps = Steps::default();
            if write {
                clients::write(&workspace, !install.no_install, &mut steps);
            }
            clients::build(&workspace, &mut steps);
            let check = if long { clients::check_long } else { clients::check };
            check(&workspace, !install.no_install, language, &mut steps);
            return steps.finish();
        }
        Task::Dist { install, release } => dist::dist(&workspace, release, !install.no_install),
        Task::Docs { install } => docs::docs(&workspace, !install.no_install),
        Task::Instructions { install, write } => {
            let mut steps = Steps::default();
            steps.run("instructions", || {
                instructions::instructions(&workspace, !install.no_install, write)
            });
            return steps.finish();
        }
        Task::Engines { install } => engines::table(&workspace, !install.no_install),
        Task::Bench { arguments } if arguments == ["clients"] => clients::measure::measure(&workspace, true),
        Task::Bench { arguments } => bench::bench(&workspace, &arguments),
        Task::Fuzz { target, seconds } => fuzz::fuzz(&workspace, target.as_deref(), seconds),
        Task::Postgres { install } => postgres::keep(!install.no_install),
        Task::SupervisePostgres { bin_dir } => supervise::supervise(&bin_dir),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
