//! A reader of a page who pastes its commands into a shell, block after block.
//!
//! * What a block exports is there for the next ones.
//! * A block that ends with the line `# emend: ready …`, `# search-node: …` or `# holds the terminal` is started, and keeps
//!   running beside the others.
//! * Before a block that begins with `# while nothing of Emend runs`, all of those are ended.
//! * Before a block that begins with `# in place of the one that runs`, the last of them is ended.
//! * A block that begins with `# fails: CODE` must be refused with that code.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use emend_base::testing::skipped;
use emend_tests::harness::{
    process::{Process, binary, free_port, run},
    system::{Database, Service},
};
use tempfile::TempDir;
use tokio::process::Command;

use super::markdown::blocks;
use crate::{examples::python_package, real_clients::tool};

/// feedback-svc's address in the pages.
const FEEDBACK: &str = "127.0.0.1:7401";
/// learning-svc's address in the pages.
const LEARNING: &str = "127.0.0.1:7402";
/// Other addresses in the pages: of ratings over HTTP, of the edge, of the example search node, of tools for assistants, and of
/// what operators see.
const OTHERS: [&str; 7] = [
    "127.0.0.1:7403",
    "127.0.0.1:7420",
    "127.0.0.1:7421",
    "127.0.0.1:7422",
    "127.0.0.1:7430",
    "127.0.0.1:7431",
    "127.0.0.1:9464",
];
/// The database's URL in the pages.
const DATABASE: &str = "postgres://emend@127.0.0.1/emend";
/// The variable that holds it in the pages.
const DATABASE_VARIABLE: &str = "EMEND_DATABASE_URL";

const FAILS: &str = "# fails: ";
const STOPPED: &str = "# while nothing of Emend runs";
const READY: [&str; 2] = ["# emend: ready ", "# search-node: "];
const REPLACES: &str = "# in place of the one that runs";
const HOLDS: &str = "# holds the terminal";
/// How the documents run programs that are not installed yet, and the equivalent here, where they are built already.
const BUILD_AND_RUN: [(&str, &str); 4] = [
    ("pip install ./clients/python", "python -c 'import emend'"),
    ("cargo run -p emend-cli -- ", "emend "),
    ("cargo run -p verb-node -- ", "verb-node "),
    (
        "cargo run -p search-node -- serve ",
        // With the addresses that it takes by default, so that they are replaced.
        "search-node serve --feedback 127.0.0.1:7401 --learning 127.0.0.1:7402 --grpc 127.0.0.1:7421 \
         --http 127.0.0.1:7422 ",
    ),
];
/// What a reader waits for by the clock, and the same here by what is awaited; what it printed is then shown.
const WAITED_FOR: [(&str, &str); 3] = [
    (
        "for who in ana ben eve; do emend search rate q-17 ",
        "until emend search queries list --json | grep -q 'EN-002.*click'; do sleep 0.1; done\n\
         for who in ana ben eve; do emend search rate q-17 ",
    ),
    (
        "emend watch --until 3 & sleep 1\n",
        "emend watch --until 3 > watched & until grep -q '^snapshot' watched; do sleep 0.1; done\n",
    ),
    ("\nwait\n", "\nwait\ncat watched\n"),
];
/// The tools that pages need, each with a word that shows the need and the variable with its path.
const TOOLS: [(&str, &str); 3] = [
    ("grpcurl ", "EMEND_TEST_GRPCURL"),
    ("python ", "EMEND_TEST_PYTHON"),
    ("go build ", "EMEND_TEST_GO"),
];
/// The parts of a checkout that the pages name.
const CHECKOUT: [&str; 3] = ["proto", "examples", "clients"];
/// The command that runs these tests.
const THIS: &str = "cargo xtask test --all\n";

/// A reader, in a directory of their own.
pub(super) struct Reader {
    directory: TempDir,
    path: OsString,
    feedback: String,
    learning: String,
    others: Vec<(&'static str, String)>,
    database: Option<Database>,
    /// The package that pages install.
    packages: Option<TempDir>,
    running: Vec<Process>,
    done: usize,
}

impl Reader {
    /// A reader who has what the pages need; `None` if something is missing, after one line of output that says so.
    pub(super) async fn of(pages: &[&str]) -> Option<Self> {
        let texts: Vec<String> = pages.iter().map(|page| text(page)).collect();
        let asks_for = |word: &str| texts.iter().any(|text| text.contains(word));
        let mut tools = Vec::new();
        for (word, variable) in TOOLS {
            if asks_for(word) {
                tools.push(PathBuf::from(tool(variable)?));
            }
        }
        let database = if asks_for(DATABASE_VARIABLE) {
            Some(Database::postgres().await?)
        } else {
            None
        };
        let programs = binary("emend").await;
        // Have to be built separately if only tests were built, since none of their own tests need them.
        for example in ["verb-node", "search-node"] {
            binary(example).await;
        }
        let mut path: Vec<PathBuf> = programs.parent().map(PathBuf::from).into_iter().collect();
        path.extend(
            tools
                .iter()
                .filter_map(|program| Some(program.parent()?.to_owned())),
        );
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        path.extend(postgres_programs());
        if database.is_some() && !path.iter().any(|directory| directory.join("pg_dump").is_file()) {
            skipped("there is no pg_dump");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("environment"), "").expect("a file");
        for name in CHECKOUT {
            symlink(root().join(name), directory.path().join(name)).expect("a link");
        }
        let packages = asks_for("pip install ./clients/python\n").then(python_package);
        let mut others = Vec::new();
        for address in OTHERS {
            others.push((address, format!("127.0.0.1:{}", free_port().await)));
        }
        Some(Self {
            directory,
            others,
            path: env::join_paths(path).expect("directories without colons"),
            feedback: format!("127.0.0.1:{}", free_port().await),
            learning: format!("127.0.0.1:{}", free_port().await),
            database,
            packages,
            running: Vec::new(),
            done: 0,
        })
    }

    /// Has a file in their directory.
    pub(super) fn has_written(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).expect("a file");
    }

    /// A file in their directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Types something before the first page.
    pub(super) async fn has_typed(&mut self, block: &str) {
        self.types("before the first page", block).await;
    }

    /// Types all commands of a page; answers with what each block printed, unless it keeps running.
    pub(super) async fn reads(&mut self, page: &str) -> Vec<String> {
        let mut printed = Vec::new();
        for block in blocks(&text(page)).iter().filter(|block| block.language == "sh") {
            printed.push(self.types(page, &block.text).await);
            self.done += 1;
        }
        printed
    }

    /// Ends what is still running; answers with how many blocks were typed.
    pub(super) async fn ends(mut self) -> usize {
        self.stops(0).await;
        self.done
    }

    async fn types(&mut self, page: &str, block: &str) -> String {
        if block == THIS {
            return String::new();
        }
        let mut block = block.to_owned();
        for (written, here) in BUILD_AND_RUN.into_iter().chain(WAITED_FOR) {
            block = block.replace(written, here);
        }
        if block.starts_with(STOPPED) {
            self.stops(0).await;
        }
        if block.starts_with(REPLACES) {
            self.stops(self.running.len().saturating_sub(1)).await;
        }
        if READY.iter().any(|ready| block.contains(ready)) || block.contains(HOLDS) {
            self.starts(page, &block).await;
            return String::new();
        }
        let script = format!(". ./environment\nset -eu\n{block}\nexport -p > environment");
        let result = run(page, self.shell(&script)).await;
        match (block.strip_prefix(FAILS), result) {
            (None, Ok(printed)) => printed,
            (Some(expected), Err(refusal)) => {
                let code = expected.lines().next().unwrap_or_default().replace('_', "");
                assert!(
                    refusal.to_uppercase().contains(&code),
                    "{page}:\n{block}\n{refusal}"
                );
                // Details are shown in clear text, because the services describe those types too.
                for told in ["google.rpc.BadRequest", "fieldViolations"] {
                    assert!(
                        refusal.contains(told) || code != "INVALIDARGUMENT",
                        "{page}:\n{block}\n{refusal}"
                    );
                }
                refusal
            }
            (Some(_), Ok(said)) => panic!("{page}:\n{block}\nis not refused:\n{said}"),
            (None, Err(failure)) => {
                let logs: Vec<String> = self.running.iter().map(Process::output).collect();
                panic!("{page}:\n{block}\n{failure}\n{}", logs.join("\n"));
            }
        }
    }

    /// Starts a program that keeps running, and waits until it serves.
    async fn starts(&mut self, page: &str, block: &str) {
        let command: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
        let [command] = command[..] else {
            panic!("{page}: one command can hold the terminal:\n{block}");
        };
        let shell = self.shell(&format!(". ./environment\nexec {command}"));
        let mut process = Process::spawn(command, shell);
        if let Some(ready) = READY.iter().find(|ready| block.contains(**ready)) {
            process
                .says("that it is ready", |line| {
                    line.starts_with(&ready[2..]).then_some(())
                })
                .await;
        } else if command.starts_with("learning-svc ") {
            process
                .ready(&self.learning, "emend.learning.v1.IngestService")
                .await;
        } else {
            process
                .ready(&self.feedback, "emend.feedback.v1.FeedbackService")
                .await;
        }
        self.running.push(process);
    }

    /// Ends what was started last, until so many are left.
    async fn stops(&mut self, left: usize) {
        for mut process in self.running.split_off(left).into_iter().rev() {
            process.terminate().await;
            let status = process.ended().await;
            assert_eq!(status.code(), Some(0), "{}", process.output());
        }
    }

    /// A shell in the reader's directory, in which the pages' usual addresses are replaced by the actual ones.
    fn shell(&self, script: &str) -> Command {
        let mut script = script
            .replace(FEEDBACK, &self.feedback)
            .replace(LEARNING, &self.learning);
        for (address, actual) in &self.others {
            script = script.replace(address, actual);
        }
        if let Some(database) = &self.database {
            script = script.replace(DATABASE, &database.url(Service::Learning, None));
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .current_dir(self.directory.path())
            .env("PATH", &self.path)
            .env("EMEND_FEEDBACK_ADDR", &self.feedback)
            .env("EMEND_LEARNING_ADDR", &self.learning);
        if let Some(packages) = &self.packages {
            command.env("PYTHONPATH", packages.path());
        }
        command
    }
}

/// A page of the repository.
pub(super) fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The root of the checkout.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the checkout is there")
}

/// Where Debian puts PostgreSQL's own programs.
pub(crate) fn postgres_programs() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    versions.map(|version| version.path().join("bin")).collect()
}
