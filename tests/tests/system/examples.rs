//! The example search nodes take part in the loop: one story, told to each of them in its own language.

use std::{
    env,
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use emend_proto::learning::v1::{ListNodesRequest, Node};
use emend_tests::harness::{
    System,
    installations::{Installations, PHRASE},
    process::{binary, forget_settings, run},
    says::{forbidden_value, phrase_key, prohibition_key, verb_value},
    wait::{eventually, holds, within},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::real_clients::tool;

/// The id of the story's node.
const NODE: &str = "example";

/// How an example is started.
struct Example {
    program: OsString,
    arguments: Vec<OsString>,
    /// Where Python finds the package `emend`.
    packages: Option<PathBuf>,
    /// Whether its copy on disk is JSON, which the story can damage, and it reports what it has saved.
    plain: bool,
}

/// A running example, spoken to line by line.
struct Dialogue {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Dialogue {
    /// Starts a program that uses the services at these addresses.
    fn start(mut command: Command, feedback: SocketAddr, learning: SocketAddr) -> Self {
        forget_settings(&mut command);
        let mut child = command
            .args(["--feedback", &feedback.to_string()])
            .args(["--learning", &learning.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the example starts");
        let output = child.stdout.take().expect("piped");
        Self {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(output).lines(),
            child,
        }
    }

    async fn ask(&mut self, question: &str) -> Value {
        let said = within(question, async {
            self.input.write_all(format!("{question}\n").as_bytes()).await?;
            self.output.next_line().await
        })
        .await;
        let line = said.expect("the example reads and writes").expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{question}: {error}: {line}"))
    }

    /// Asks until the answer is right.
    async fn says(&mut self, question: &str, right: impl Fn(&Value) -> bool) -> Value {
        let asking = tokio::sync::Mutex::new(self);
        eventually(question, || async {
            let answer = asking.lock().await.ask(question).await;
            holds(right(&answer), || answer.to_string()).map(|()| answer)
        })
        .await
    }

    /// Ends it gracefully.
    async fn end(mut self) {
        drop(self.input);
        let status = within("the example ends", self.child.wait()).await;
        assert!(status.expect("a status").success());
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("a running process can be killed");
    }
}

impl Example {
    fn start(&self, system: &System, state: &Path) -> Dialogue {
        let feedback = system.feedback[0].front.address();
        self.start_at(feedback, system.learning[0].front.address(), state, &[])
    }

    fn start_at(&self, feedback: SocketAddr, learning: SocketAddr, state: &Path, more: &[&str]) -> Dialogue {
        let mut command = Command::new(&self.program);
        if let Some(packages) = &self.packages {
            command.env("PYTHONPATH", packages);
        }
        command
            .args(&self.arguments)
            .args(["--node", NODE, "--bookmark-seconds", "1", "--state"])
            .arg(state)
            .args(more);
        Dialogue::start(command, feedback, learning)
    }

    /// Tells the story.
    async fn takes_part(&self) {
        let mut system = System::sqlite().await;
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("learned");
        let mut node = self.start(&system, &state);

        // Its own search decides, until three people say otherwise.
        let found = node.ask("search set up a CSA").await;
        assert_eq!(
            (&found["verb"], &found["learned"]),
            (&"create_csa".into(), &false.into()),
            "{found}"
        );
        for (reporter, needed) in [("joe", 2), ("mia", 1)] {
            let outcome = node
                .ask(&format!("correct {reporter} Set up a CSA = create_isda"))
                .await;
            assert_eq!(outcome["state"], "PENDING", "{outcome}");
            assert_eq!(outcome["confirmations_needed"], needed, "{outcome}");
        }
        let outcome = node.ask("correct jane set up a csa = create_isda").await;
        assert_eq!(outcome["state"], "APPLIED", "{outcome}");
        let found = node
            .says("search \u{3000}SET  up a ＣＳＡ", |found| {
                found["learned"] == true
            })
            .await;
        assert_eq!(found["verb"], "create_isda", "{found}");

        // A prohibition beats what was learned.
        let prohibition = prohibition_key("set up a csa", "create_isda");
        system
            .learning()
            .put(prohibition.clone(), forbidden_value("create_isda"))
            .await;
        let found = node
            .says("search set up a CSA", |found| found["learned"] == false)
            .await;
        assert_eq!(found["verb"], "create_csa", "{found}");
        assert_eq!(found["prohibited"][0], "create_isda", "{found}");

        // Operators see it.
        let head = system.learning().head().await;
        let listed = listed(&system, |node| {
            node.applied.as_ref().is_some_and(|at| at.revision == head)
        })
        .await;
        assert_eq!((listed.connected, listed.rejected_count), (true, 0), "{listed:?}");
        assert!(
            listed
                .delays
                .is_some_and(|delays| delays.counts.iter().sum::<i64>() > 0)
        );

        // It answers while learning-svc is down, and catches up when that is back.
        system.stop_learning().await;
        let found = node.ask("search set up a CSA").await;
        assert_eq!(found["verb"], "create_csa", "{found}");
        system.start_learning().await;
        system.learning().delete(prohibition).await.unwrap();
        node.says("search set up a CSA", |found| found["verb"] == "create_isda")
            .await;

        // It resumes after a restart, and what was deleted meanwhile is gone.
        self.leave(node, &system).await;
        system
            .learning()
            .delete(phrase_key("set up a csa"))
            .await
            .unwrap();
        system
            .learning()
            .put(phrase_key("close the fund"), verb_value("close_fund"))
            .await;
        let mut node = self.start(&system, &state);
        let found = node
            .says("search Close the fund", |found| found["learned"] == true)
            .await;
        assert_eq!(found["verb"], "close_fund", "{found}");
        let found = node.ask("search set up a CSA").await;
        assert_eq!(found["learned"], false, "{found}");

        if self.plain {
            assert_eq!(node.ask("status").await["connected"], "resumed");
            self.leave(node, &system).await;
            damage(&state);
            node = self.start(&system, &state);
            // The digests differ, and a snapshot heals the copy.
            node.says("search close the fund", |found| found["learned"] == true)
                .await;
            node.says("status", |status| status["connected"] == "snapshot")
                .await;
            listed_with_problem(&system).await;
        }
        node.end().await;
        system.stop().await;
    }

    /// It keeps what it holds when another installation answers, also after a restart, until it is told to accept that
    /// one.
    async fn keeps_its_state_when_another_installation_answers(&self) {
        const OWN: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";
        const OTHER: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11";
        let learning = Installations::start(OWN).await;
        let nowhere: SocketAddr = ([127, 0, 0, 1], 1).into();
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("learned");
        let start = |more: &[&str]| self.start_at(nowhere, learning.address(), &state, more);
        let question = format!("search {PHRASE}");

        let mut node = start(&[]);
        node.says(&question, |found| found["verb"] == OWN).await;
        if self.plain {
            node.says("status", |status| status["saved"] == 1).await;
        }
        learning.exchange(OTHER);
        node.says("status", |status| status["other_installation"] == OTHER)
            .await;
        assert_eq!(node.ask(&question).await["verb"], OWN);
        eventually("the report", || async {
            let problems = learning.problems();
            let reported = problems.iter().any(|problem| problem == "INSTALLATION_MISMATCH");
            holds(reported, || format!("{problems:?}"))
        })
        .await;
        node.end().await;

        let mut node = start(&[]);
        node.says("status", |status| status["other_installation"] == OTHER)
            .await;
        assert_eq!(node.ask(&question).await["verb"], OWN, "from the copy on disk");
        node.end().await;

        let mut node = start(&["--accept-installation", OTHER]);
        node.says(&question, |found| found["verb"] == OTHER).await;
        node.end().await;
    }

    /// Ends it with everything saved on disk.
    async fn leave(&self, mut node: Dialogue, system: &System) {
        if self.plain {
            let head = system.learning().head().await;
            node.says("status", |status| status["saved"] == head).await;
            node.kill().await;
        } else {
            node.end().await;
        }
    }
}

/// The story's node as operators see it, once it satisfies `right`.
async fn listed(system: &System, right: impl Fn(&Node) -> bool) -> Node {
    eventually("the node is listed", || async {
        let request = ListNodesRequest::default();
        let listed = system.learning().subscriptions.list_nodes(request).await;
        let nodes = listed.map_err(|error| error.to_string())?.into_inner().nodes;
        let node = nodes
            .into_iter()
            .find(|node| node.info.as_ref().is_some_and(|info| info.id == NODE));
        match node {
            Some(node) if right(&node) => Ok(node),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

async fn listed_with_problem(system: &System) {
    listed(system, |node| node.problem == "DIGEST_MISMATCH").await;
}

/// Removes a resource from a copy on disk, and leaves its cursor.
fn damage(state: &Path) {
    let text = fs::read_to_string(state).unwrap();
    let mut copy: Value = serde_json::from_str(&text).unwrap();
    let taken = copy["resources"].as_array_mut().expect("resources").pop();
    assert!(taken.is_some(), "{copy}");
    fs::write(state, copy.to_string()).unwrap();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a command that builds an example.
async fn make(name: &str, command: Command) {
    run(name, command)
        .await
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_verb_node_in_rust_takes_part() {
    let example = Example {
        program: binary("verb-node").await.into(),
        arguments: Vec::new(),
        packages: None,
        plain: false,
    };
    example.takes_part().await;
    example.keeps_its_state_when_another_installation_answers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_node_in_python_takes_part() {
    let Some(python) = tool("EMEND_TEST_PYTHON") else {
        return;
    };
    let packages = python_package();
    let example = Example {
        program: python,
        arguments: vec![root().join("examples/python/search_node.py").into()],
        packages: Some(packages.path().to_owned()),
        plain: false,
    };
    example.takes_part().await;
    example.keeps_its_state_when_another_installation_answers().await;
}

/// The package `emend` with its part in Rust, as the workspace's build has made it.
pub(crate) fn python_package() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let package = directory.path().join("emend");
    for part in ["", "_generated"] {
        fs::create_dir_all(package.join(part)).unwrap();
        let sources = root().join("clients/python/python/emend").join(part);
        for file in fs::read_dir(sources).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|name| name == "py") {
                fs::copy(&path, package.join(part).join(path.file_name().expect("a file"))).unwrap();
            }
        }
    }
    let this = env::current_exe().expect("this test has a file");
    // target/PROFILE/deps/system-…
    let built = this.ancestors().nth(2).expect("tests are built into a directory");
    let library = built.join("lib_emend.so");
    fs::copy(&library, package.join("_emend.abi3.so")).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo build --workspace` builds it",
            library.display()
        )
    });
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_research_backend_in_python_answers_as_corrected() {
    const QUESTION: &str = "ask Does coffee dehydrate the body?";
    const TRIAL: &str = "edge:trial-0-dehydrates";
    let Some(python) = tool("EMEND_TEST_PYTHON") else {
        return;
    };
    let packages = python_package();
    let system = System::sqlite().await;
    let mut command = Command::new(python);
    command
        .arg(root().join("examples/python/research_backend.py"))
        .env("PYTHONPATH", packages.path());
    let feedback = system.feedback[0].front.address();
    let mut backend = Dialogue::start(command, feedback, system.learning[0].front.address());

    // The model took “in no trial” for support.
    let answer = backend.ask(QUESTION).await;
    assert_eq!(answer["answer"], "Yes: coffee dehydrates the body.", "{answer}");
    assert_eq!(
        (&answer["independent_sources"], &answer["confidence"]),
        (&2.into(), &0.8.into())
    );
    let corrected = backend.ask(&format!("correct {TRIAL} refutes")).await;
    assert_eq!(corrected["state"], "APPLIED", "{corrected}");
    let answer = backend.ask(QUESTION).await;
    let said = answer["answer"].as_str().expect("an answer");
    assert!(said.starts_with("That is disputed"), "{answer}");
    assert_eq!(
        (&answer["independent_sources"], &answer["confidence"]),
        (&1.into(), &0.6.into())
    );
    assert_eq!(answer["against"][0]["edge"], TRIAL, "{answer}");
    assert_eq!(answer["for"].as_array().map(Vec::len), Some(2), "{answer}");

    let rejected = backend.ask("reject claim:dehydrates it is a legend").await;
    assert_eq!(rejected["state"], "APPLIED", "{rejected}");
    let answer = backend.ask(QUESTION).await;
    assert_eq!(
        answer["answer"], "Nothing that holds was read about that.",
        "{answer}"
    );
    backend.end().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_assistant_in_python_gets_better_by_ratings() {
    let Some(python) = tool("EMEND_TEST_PYTHON") else {
        return;
    };
    let packages = python_package();
    let system = System::sqlite().await;
    let start = || {
        let mut command = Command::new(&python);
        command
            .arg(root().join("examples/python/assistant_backend.py"))
            .env("PYTHONPATH", packages.path());
        let feedback = system.feedback[0].front.address();
        Dialogue::start(command, feedback, system.learning[0].front.address())
    };
    let mut assistant = start();
    let made = assistant
        .ask("summarise It rained. The fund rose. Nobody called.")
        .await;
    assert_eq!(
        made["summary"], "It rained. The fund rose. Nobody called.",
        "{made}"
    );
    assert_eq!(made["prompt_version"], 1, "{made}");
    let early = assistant.ask("improve").await;
    assert_eq!(
        (&early["why"], &early["missing"]),
        (&"TOO_FEW_RATINGS".into(), &3.into()),
        "{early}"
    );

    // The first rating is an example below the prompt at once.
    for reporter in ["ana", "ben", "eve"] {
        let rated = assistant
            .ask(&format!("rate summary-1 bad {reporter} too long"))
            .await;
        assert_eq!(rated["state"], "APPLIED", "{rated}");
        let made = assistant
            .ask("summarise It snowed. The fund fell. All called.")
            .await;
        assert_eq!(
            (&made["summary"], &made["prompt_version"]),
            (&"It snowed.".into(), &1.into()),
            "{made}"
        );
    }
    let improved = assistant.ask("improve").await;
    let diff = improved["diff"].as_str().unwrap_or_else(|| panic!("{improved}"));
    assert!(diff.contains("\n+") && diff.contains("too long"), "{diff}");
    let open = assistant.ask("improve").await;
    assert_eq!(open["why"], "IMPROVEMENT_OPEN", "{open}");
    let candidate = improved["candidate"].as_str().expect("an id");
    let approved = assistant.ask(&format!("approve {candidate}")).await;
    assert_eq!(approved["prompt_version"], 2, "{approved}");
    assistant.end().await;

    // Another one begins with what was learned.
    let mut assistant = start();
    let made = assistant.ask("summarise It froze. The fund slept.").await;
    assert_eq!(
        (&made["summary"], &made["prompt_version"]),
        (&"It froze.".into(), &2.into()),
        "{made}"
    );
    assistant.end().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_node_in_go_takes_part() {
    let Some(go) = tool("EMEND_TEST_GO") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("search-node");
    let mut command = Command::new(&go);
    command
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(root().join("examples/go"));
    make("go build", command).await;
    let example = Example {
        program: program.into(),
        arguments: Vec::new(),
        packages: None,
        plain: false,
    };
    example.takes_part().await;
    example.keeps_its_state_when_another_installation_answers().await;
}
