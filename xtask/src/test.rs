//! `cargo xtask test`, in three tiers: what everybody runs before a commit, everything that CI runs, and what is run nightly since it
//! takes long and seldom finds anything that the others do not. Provides PostgreSQL and third-party clients to the tests, and makes sure that skipped tests are neither overlooked nor, in CI, accepted.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs, panic,
    path::PathBuf,
    process::ExitCode,
    thread,
};

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::{
    clients, faketime, instructions, lint, manifests,
    postgres::{self, TestServer},
    process::{self, Workspace},
    proto,
    steps::{Outcome, Steps},
    tools::{self, Tools},
};

/// Names a file to which tests append a line for each thing they skip: `skipped: <reason>`.
const SKIPPED_FILE_VARIABLE: &str = "EMEND_SKIPPED_FILE";

/// How many tests of one program run at a time on each core. Most of them wait: for a disk, a database, another process.
const TESTS_PER_CORE: usize = 2;
/// What the test programs read it from.
const TEST_THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Which tests to run.
#[derive(Debug)]
pub(crate) enum Tier {
    /// Lint, unit, contract and system tests.
    Quick,
    /// Also fault runs, manifests, documents, fuzz targets and counts of instructions: what CI runs.
    All,
    /// What is random or breaks things, longer than in CI and without what CI leaves out; the documentation of private items.
    Nightly,
    /// What these arguments for `cargo test` select, and no lint.
    Selected(Vec<String>),
}

/// Test programs of the second tier alone: they kill processes, fill disks, start manifests and
/// other people's engines, try thousands of inputs.
const OF_ALL_ALONE: [&str; 4] = [FAULTS, "manifests", "short", "engines"];
/// The program of them that expects of a service to be back within a time; it gets the machine as it is elsewhere.
const FAULTS: &str = "fire";
/// Tests of the second tier alone within other programs, by the beginning of their names.
const SKIPPED_BY_QUICK: [&str; 1] = ["documents::"];
/// Fault runs of the third tier alone, by the beginning of their names: they take most of that program's time to push load through
/// slow or overloaded services, and say more of the machine the more else it does.
const SKIPPED_BY_ALL: [&str; 3] = ["overload::", "slow::", "spread::"];
/// The tests of the third tier: of which programs, and by the beginning of their names. All that can be long are among them.
const NIGHTLY: [(&[&str], &str); 8] = [
    (&["--test", FAULTS], ""),
    (&["--test", "simulation"], ""),
    (&["--test", "short"], ""),
    (&["--test", "system"], "ledger::tampering::"),
    (&["--test", "system"], "console::pages::"),
    (&["--test", "system"], "console::reviewing::"),
    (&["--lib"], "tests::cached_ballots::"),
    (&["--lib"], "tests::evidence_trust::"),
];
/// Makes these tests long.
pub(crate) const LONG_VARIABLE: &str = "EMEND_TEST_LONG";

/// Runs a tier.
pub(crate) fn test(workspace: &Workspace, may_install: bool, tier: &Tier) -> ExitCode {
    let mut steps = Steps::default();
    let (tools, server) = if matches!(tier, Tier::All) {
        // What waits for downloads and what waits for the compiler go side by side.
        let mut others = Steps::default();
        let provided = thread::scope(|scope| {
            let others = scope.spawn(|| {
                lint::check_texts(workspace, may_install, &mut others);
                manifests::check(workspace, may_install, &mut others);
                provide(workspace, may_install, &mut others)
            });
            compile(workspace, tier, &mut steps);
            others.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        });
        steps.append(others);
        provided
    } else {
        if matches!(tier, Tier::Quick) {
            lint::check_texts(workspace, may_install, &mut steps);
        }
        compile(workspace, tier, &mut steps);
        provide(workspace, may_install, &mut steps)
    };
    let skipped_file = workspace.target("skipped");
    steps.run("tests", || {
        forget(&skipped_file)?;
        run_tests(workspace, &tools, server.as_ref(), &skipped_file, tier)
    });
    drop(server);
    if matches!(tier, Tier::All) {
        // Tests of clients wait most of the time, and what else runs changes no count of instructions.
        let mut counts = Steps::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                counts.run("instructions", || {
                    instructions::instructions(workspace, may_install, false)
                });
            });
            clients::check(workspace, may_install, None, &mut steps);
        });
        steps.append(counts);
    }
    if matches!(tier, Tier::Nightly) {
        steps.run("sentence encoders", || {
            // With no other package, so that none is built with it.
            let arguments = ["--locked", "--package=emend-vectors", "--features=model2vec,onnx"];
            process::run(lint::linted(workspace.cargo(["test"]).args(arguments)))?;
            Ok(Outcome::Done)
        });
        clients::check_long(workspace, may_install, None, &mut steps);
    }
    steps.run("nothing skipped", || {
        let skipped = read_skipped(&fs::read_to_string(&skipped_file).unwrap_or_default());
        for (line, times) in &skipped {
            eprintln!("{line} ({times}×)");
        }
        verdict(
            skipped.keys().map(String::as_str),
            tools::go().is_some(),
            process::in_ci(),
        )
    });
    steps.finish()
}

/// What the compiler and clippy say of the code, and the programs of the tests.
fn compile(workspace: &Workspace, tier: &Tier, steps: &mut Steps) {
    if matches!(tier, Tier::Selected(_)) {
        steps.run("build", || {
            process::run(&mut workspace.cargo(BUILD))?;
            Ok(Outcome::Done)
        });
    } else {
        steps.run("clippy and build", || {
            lint::needs_component(workspace, "clippy", "clippy")?;
            build(workspace)?;
            Ok(Outcome::Done)
        });
    }
    match tier {
        Tier::Quick | Tier::All => {
            steps.run("generated code", || proto::check_generated_as_built(workspace));
            steps.run("docs", || lint::check_docs(workspace));
        }
        Tier::Nightly => steps.run("private docs", || lint::check_private_docs(workspace)),
        Tier::Selected(_) => {}
    }
}

/// All programs and tests together. Tests run the programs, and `cargo test` builds a program only for tests of its
/// own package; built apart, many dependencies would be built twice, because tests enable more of their features.
const BUILD: [&str; 7] = [
    "build",
    "--locked",
    "--workspace",
    "--lib",
    "--bins",
    "--tests",
    "--examples",
];

/// Builds all programs and tests with clippy.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    process::run(lint::linted(&mut workspace.cargo(BUILD)))
}

/// What tests need beside the programs: third-party tools and a PostgreSQL.
fn provide(workspace: &Workspace, may_install: bool, steps: &mut Steps) -> (Tools, Option<TestServer>) {
    let tools = steps
        .run_for("client tools", || Tools::provide(workspace, may_install))
        .unwrap_or_default();
    let server = steps
        .run_for("PostgreSQL", || match TestServer::provide(may_install) {
            Ok(server) => Ok((Some(server), Outcome::Done)),
            Err(error) if !may_install => Ok((None, Outcome::NotRun(format!("{error:#}")))),
            Err(error) => Err(error),
        })
        .flatten();
    steps.run("libfaketime", || faketime::provide(may_install));
    (tools, server)
}

fn run_tests(
    workspace: &Workspace,
    tools: &Tools,
    server: Option<&TestServer>,
    skipped_file: &PathBuf,
    tier: &Tier,
) -> Result<Outcome> {
    let mut failures = Failures::default();
    for run in runs(workspace, tier)? {
        let mut command = workspace.cargo(["test", "--locked", "--no-fail-fast"]);
        command.args(&run.arguments);
        if !matches!(tier, Tier::Selected(_)) {
            lint::linted(&mut command);
        }
        if matches!(tier, Tier::Nightly) {
            command.env(LONG_VARIABLE, "1");
        }
        command.env(SKIPPED_FILE_VARIABLE, skipped_file);
        if env::var_os(TEST_THREADS_VARIABLE).is_none() {
            let cores = thread::available_parallelism()?.get();
            command.env(TEST_THREADS_VARIABLE, (cores * run.tests_per_core).to_string());
        }
        command.envs(
            tools
                .programs
                .iter()
                .map(|(variable, program)| (variable, program)),
        );
        if let Some(server) = server {
            command.env(postgres::URL_VARIABLE, server.url());
        }
        let ended = if matches!(tier, Tier::Selected(_)) {
            process::run(&mut command)
        } else {
            process::run_heard(&mut command, |line| failures.hear(line))
        };
        // The other runs still say what they find.
        if let Err(error) = ended {
            failures.add(&error);
        }
    }
    if failures.said.is_empty() {
        Ok(Outcome::Done)
    } else {
        bail!("tests failed\n{}", failures.text())
    }
}

/// What failed tests said, read from what test programs print.
#[derive(Default)]
struct Failures {
    /// Of each failed test its name and some of its lines; at last of each run how it ended.
    said: Vec<(String, Vec<String>)>,
    /// Whether what is printed now are failures, and not what passed tests say.
    is_listening: bool,
}

impl Failures {
    /// Lines before a panic, and from it on, that are kept.
    const LINES: [usize; 2] = [5, 15];

    fn hear(&mut self, line: &str) {
        let name = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"));
        if line == "failures:" {
            // The second time their names are listed.
            self.is_listening = !self.is_listening;
        } else if line == "successes:"
            || line.starts_with("test result: ")
            || line.starts_with("running ") && line.contains(" test")
        {
            self.is_listening = false;
        } else if let (true, Some(name)) = (self.is_listening, name) {
            self.said.push((name.to_owned(), Vec::new()));
        } else if let (true, Some((_, lines))) = (self.is_listening, self.said.last_mut()) {
            Self::keep(lines, line);
        }
    }

    fn keep(lines: &mut Vec<String>, line: &str) {
        let [before, after] = Self::LINES;
        let panics = |line: &str| line.contains("panicked at ");
        let panic = lines.iter().position(|line| panics(line));
        if line.is_empty() {
            return;
        }
        match panic {
            Some(panic) if lines.len() >= panic + after => {}
            None if lines.len() == before && !panics(line) => {
                lines.remove(0);
                lines.push(line.to_owned());
            }
            _ => lines.push(line.to_owned()),
        }
    }

    fn add(&mut self, error: &anyhow::Error) {
        self.said.push((format!("{error:#}"), Vec::new()));
    }

    fn text(&self) -> String {
        let lines = self.said.iter().flat_map(|(name, lines)| {
            let lines = lines.iter().map(|line| format!("    {line}"));
            std::iter::once(name.clone()).chain(lines)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// One call of `cargo test`.
struct Run {
    arguments: Vec<String>,
    tests_per_core: usize,
}

/// The calls that run a tier.
fn runs(workspace: &Workspace, tier: &Tier) -> Result<Vec<Run>> {
    let alone = |arguments: &[&str]| Run {
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        tests_per_core: 1,
    };
    let all = match tier {
        Tier::Selected(arguments) => {
            return Ok(vec![Run {
                arguments: arguments.clone(),
                tests_per_core: 1,
            }]);
        }
        Tier::Nightly => {
            let run =
                |(program, tests): (&[&str], _)| alone(&[&["--workspace"], program, &["--", tests]].concat());
            return Ok(NIGHTLY.map(run).into());
        }
        Tier::Quick => false,
        Tier::All => true,
    };
    // All packages, so that nothing is built with other features than in the other tiers.
    let mut arguments = vec!["--workspace".to_owned(), "--lib".to_owned()];
    for target in tested(workspace)? {
        let is_test = target.kind == ["test"];
        if is_test && (target.name == FAULTS || !all && OF_ALL_ALONE.contains(&&*target.name)) {
            continue;
        }
        arguments.extend([if is_test { "--test" } else { "--bin" }.to_owned(), target.name]);
    }
    if !all {
        arguments.push("--".to_owned());
        for skipped in SKIPPED_BY_QUICK {
            arguments.extend(["--skip".to_owned(), skipped.to_owned()]);
        }
    }
    let mut runs = vec![Run {
        arguments,
        tests_per_core: TESTS_PER_CORE,
    }];
    if all {
        let mut faults = vec!["--workspace", "--test", FAULTS, "--"];
        for skipped in SKIPPED_BY_ALL {
            faults.extend(["--skip", skipped]);
        }
        runs.push(alone(&faults));
        runs.push(alone(&["--workspace", "--doc"]));
    }
    Ok(runs)
}

/// A program that cargo can build.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    kind: Vec<String>,
    name: String,
    test: bool,
}

/// All test programs, and the programs that have tests of their own.
fn tested(workspace: &Workspace) -> Result<BTreeSet<Target>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        targets: Vec<Target>,
    }
    let metadata = process::output(&mut workspace.cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let targets = metadata.packages.into_iter().flat_map(|package| package.targets);
    let tested = targets.filter(|target| target.test && (target.kind == ["test"] || target.kind == ["bin"]));
    Ok(tested.collect())
}

/// Removes the file of an earlier run.
fn forget(skipped_file: &PathBuf) -> Result<()> {
    match fs::remove_file(skipped_file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Each distinct line and how often it occurs.
fn read_skipped(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

/// Names a data set that is not part of the project and cannot be downloaded.
const DATA_SET_VARIABLE: &str = "EMEND_BANKING77";

/// In CI a skip is a failure, unless it needs Go and Go is missing, or needs the data set.
fn verdict<'a>(skipped: impl Iterator<Item = &'a str>, has_go: bool, in_ci: bool) -> Result<Outcome> {
    let (excused, skipped): (Vec<&str>, Vec<&str>) = skipped
        .partition(|line| !in_ci || (!has_go && tools::needs_go(line)) || line.contains(DATA_SET_VARIABLE));
    if !skipped.is_empty() {
        bail!("CI accepts no skipped test; {}", skipped.join("; "));
    }
    Ok(if excused.is_empty() {
        Outcome::Done
    } else {
        Outcome::NotRun(excused.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::{Failures, LONG_VARIABLE, NIGHTLY, Outcome, read_skipped, verdict};
    use crate::{process::Workspace, walls::read_sources};

    const NO_GRPCURL: &str = "skipped: EMEND_TEST_GRPCURL is not set";
    const NO_POSTGRES: &str = "skipped: EMEND_TEST_POSTGRES_URL is not set";

    #[test]
    fn the_nightly_tests_are_all_that_can_be_long() {
        let workspace = Workspace::locate();
        let mut long = Vec::new();
        for root in ["crates", "fuzz/tests", "services", "tests/tests"] {
            for (file, text) in read_sources(&workspace.path(root)).unwrap() {
                if [LONG_VARIABLE, "is_long()", "short_or_long("]
                    .iter()
                    .any(|word| text.contains(word))
                {
                    long.push(format!("{root}/{file}"));
                }
            }
        }
        for (program, tests) in NIGHTLY {
            let place = match (program, tests) {
                ([.., program], "") => format!("tests/{program}"),
                (_, tests) => tests.trim_end_matches("::").replace("::", "/"),
            };
            let count = long.len();
            long.retain(|file| !file.contains(&place));
            assert!(long.len() < count, "nothing in {place} can be long");
        }
        assert_eq!(long, [""; 0], "these are not among the nightly tests");
    }

    #[test]
    fn what_failed_tests_said_is_kept_from_shortly_before_the_panic() {
        let mut failures = Failures::default();
        let long = |word: &str| {
            let lines: Vec<String> = (0..60).map(|number| format!("{word} {number}")).collect();
            lines.join("\n")
        };
        let printed = format!(
            "running 3 tests\ntest a::b ... FAILED\ntest c ... ok\n\nsuccesses:\n\n---- c stdout ----\nfine\n\nsuccesses:\n    c\n\n\
             failures:\n\n---- a::b stdout ----\n{}\n\nthread 'a::b' panicked at a.rs:1:2:\n{}\n\n---- d stdout ----\nError: none\n\n\n\
             failures:\n    a::b\n    d\n\n\ntest result: FAILED. 1 passed; 2 failed\n\nrunning 2 tests\ntest e ... ok\n",
            long("before"),
            long("after")
        );
        printed.lines().for_each(|line| failures.hear(line));
        failures.add(&anyhow::anyhow!("cargo test failed"));
        let before: Vec<String> = (55..60).map(|number| format!("    before {number}\n")).collect();
        let after: Vec<String> = (0..14).map(|number| format!("    after {number}\n")).collect();
        let expected = format!(
            "a::b\n{}    thread 'a::b' panicked at a.rs:1:2:\n{}d\n    Error: none\ncargo test failed",
            before.concat(),
            after.concat()
        );
        assert_eq!(failures.text(), expected);
    }

    #[test]
    fn a_skip_reason_shared_by_many_tests_is_one_line() {
        let skipped = read_skipped(&format!("{NO_POSTGRES}\n\n{NO_GRPCURL}\n{NO_POSTGRES}\n"));
        assert_eq!(
            skipped.into_iter().collect::<Vec<_>>(),
            [(NO_GRPCURL.into(), 1), (NO_POSTGRES.into(), 2)]
        );
    }

    #[test]
    fn a_skip_fails_in_ci_and_is_shown_elsewhere() {
        assert!(verdict([NO_POSTGRES].into_iter(), true, true).is_err());
        assert!(matches!(
            verdict([NO_POSTGRES].into_iter(), true, false),
            Ok(Outcome::NotRun(_))
        ));
        assert!(matches!(verdict([].into_iter(), true, true), Ok(Outcome::Done)));
    }

    #[test]
    fn ci_excuses_a_missing_data_set() {
        let no_data = "skipped: EMEND_BANKING77 names no BANKING77 data set";
        assert!(matches!(
            verdict([no_data].into_iter(), true, true),
            Ok(Outcome::NotRun(_))
        ));
    }

    #[test]
    fn ci_excuses_what_needs_go_only_where_go_is_missing() {
        assert!(matches!(
            verdict([NO_GRPCURL].into_iter(), false, true),
            Ok(Outcome::NotRun(_))
        ));
        assert!(verdict([NO_GRPCURL].into_iter(), true, true).is_err());
        assert!(verdict([NO_GRPCURL, NO_POSTGRES].into_iter(), false, true).is_err());
    }
}
