//! `cargo xtask bench clients`: what the packages cost beside a node in Rust, and beside a map of the language, in one run.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::{node, pair::Pair, python};
use crate::process::{self, Workspace};

/// The profile in which pip and npm build the packages in a checkout.
const PROFILE: &str = "release";
const NAMESPACE: &str = "measured";
const PHRASES: u32 = 1_000_000;
/// How many verbs the phrases share.
const VERBS: u32 = 5_000;

/// What a client printed, by name.
type Figures = BTreeMap<String, f64>;

/// A row: what it is, its name, its unit, and what Python and Node are to reach.
type Row = (&'static str, &'static str, &'static str, [Option<f64>; 2]);

const ROWS: [Row; 6] = [
    (
        "look-up of a known phrase",
        "known_ns",
        "ns",
        [Some(1_500.0), Some(3_000.0)],
    ),
    ("look-up of an unknown phrase", "unknown_ns", "ns", [None; 2]),
    ("the language's own map", "map_ns", "ns", [None; 2]),
    ("all phrases loaded", "load_s", "s", [Some(5.0); 2]),
    ("memory of the process", "memory_mb", "MB", [None; 2]),
    ("import of the package", "import_ms", "ms", [Some(100.0); 2]),
];
/// The memory of a process, at most, times that of a node in Rust.
const MEMORY: f64 = 1.3;

/// Builds everything for release, has a million phrases learned, and prints the table.
pub(crate) fn measure(workspace: &Workspace, may_install: bool) -> Result<()> {
    let packages = ["emend-cli", "emend-binding", "emend-python", "emend-node"];
    let packages = packages.map(|package| format!("--package={package}"));
    process::run(
        workspace
            .cargo(["build", "--locked", "--profile", PROFILE])
            .args(["--lib", "--bins", "--example=measure"])
            .args(packages),
    )?;
    let built = workspace.target(PROFILE);
    let python = python::built(workspace, PROFILE, may_install)?;
    let addon = node::addon(workspace, PROFILE)?;

    let scratch = workspace.target("measured");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let rows = written(&scratch, "phrases.csv", 0..PHRASES)?;
    let pair = Pair::keeping(workspace, &built.join("emend"), &scratch.join("data"))?;
    // One import of all of them needs more memory than a service allows it.
    for (name, numbers) in [
        ("first.csv", 0..PHRASES / 2),
        ("second.csv", PHRASES / 2..PHRASES),
    ] {
        process::run(
            workspace
                .command(built.join("emend"))
                .args(["--learning-addr", &pair.learning, "--namespace", NAMESPACE])
                .args(["import", "--mode", "skip-invalid"])
                .arg(written(&scratch, name, numbers)?),
        )?;
    }
    let asked = |mut command: Command| figures(command.args([&*pair.learning, NAMESPACE]).arg(&rows));
    let rust = workspace.command(built.join("examples/measure"));
    let mut of_node = workspace.command("node");
    of_node.arg(workspace.path("clients/node/scripts/measure.mjs"));
    of_node.env("EMEND_NODE_ADDON", addon);
    let all = [
        asked(rust)?,
        asked(python.script(workspace, "measure.py"))?,
        asked(of_node)?,
    ];
    drop(pair);
    fs::remove_dir_all(scratch)?;
    print!("{}", table(&all)?);
    Ok(())
}

/// A file with the phrases of these numbers.
fn written(directory: &Path, name: &str, numbers: Range<u32>) -> Result<PathBuf> {
    let mut text = String::from("phrase,verb\n");
    for number in numbers {
        writeln!(
            text,
            "open the report of case number {number},verb_{}",
            number % VERBS
        )?;
    }
    let file = directory.join(name);
    fs::write(&file, text)?;
    Ok(file)
}

fn figures(command: &mut Command) -> Result<Figures> {
    let printed = process::output(command)?;
    let last = printed.lines().last().context("it printed nothing")?;
    serde_json::from_str(last).with_context(|| printed.clone())
}

/// Rust, Python and Node beside each other; what a client is to reach stands after its figure.
fn table([rust, python, node]: &[Figures; 3]) -> Result<String> {
    let mut text = format!("{:<32} {:>8} {:>18} {:>18}\n", "", "Rust", "Python", "Node");
    for (what, name, unit, aims) in ROWS {
        let aims = if name == "memory_mb" {
            let own = rust.get(name).context("Rust says nothing of memory")?;
            [Some(own * MEMORY); 2]
        } else {
            aims
        };
        let digits = usize::from(unit == "s") * 2;
        let figure = |figures: &Figures| {
            let figure = figures.get(name).map(|figure| format!("{figure:.digits$}"));
            figure.unwrap_or_else(|| "-".to_owned())
        };
        let beside = |figures: &Figures, aim: Option<f64>| {
            let aim = aim.map(|aim| format!(" (<= {aim:.0})")).unwrap_or_default();
            format!("{}{aim}", figure(figures))
        };
        writeln!(
            text,
            "{:<32} {:>8} {:>18} {:>18}",
            format!("{what}, {unit}"),
            figure(rust),
            beside(python, aims[0]),
            beside(node, aims[1]),
        )?;
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    ensure!(widest <= Some(80), "the table is wider than 80 characters");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Figures, table};

    #[test]
    fn a_client_stands_beside_the_others_with_what_it_is_to_reach() {
        let figures = |known: f64| {
            let all = [("known_ns", known), ("memory_mb", 100.0), ("load_s", 1.25)];
            Figures::from(all.map(|(name, figure)| (name.to_owned(), figure)))
        };
        let text = table(&[figures(200.0), figures(900.4), figures(1_800.0)]).unwrap();
        let line = |what: &str| {
            let line = text.lines().find(|line| line.starts_with(what)).unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            line("look-up of a known"),
            "look-up of a known phrase, ns 200 900 (<= 1500) 1800 (<= 3000)"
        );
        assert_eq!(
            line("memory"),
            "memory of the process, MB 100 100 (<= 130) 100 (<= 130)"
        );
        assert_eq!(
            line("all phrases"),
            "all phrases loaded, s 1.25 1.25 (<= 5) 1.25 (<= 5)"
        );
        assert_eq!(
            line("import"),
            "import of the package, ms - - (<= 100) - (<= 100)"
        );
    }
}
