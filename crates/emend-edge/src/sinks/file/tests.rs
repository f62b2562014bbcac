use std::fs;

use emend_base::SystemClock;

use super::*;
use crate::sinks::{
    config::TargetConfig,
    error::Problem,
    keeper::{Keeper, Standing, Step},
    metrics::SinkMetrics,
    testing::{sink, wanted},
};

/// A sink that runs this script after its file was written.
struct Kept {
    keeper: Keeper<FileSink>,
    directory: tempfile::TempDir,
}

impl Kept {
    fn running(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let within = |name: &str| directory.path().join(name).display().to_string();
        let script = script.replace("READY", &within("ready"));
        let settings = format!(
            "kind = \"file\"\nwhat = \"synonyms\"\npath = \"{}\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\npace = 0",
            within("synonyms.txt")
        );
        let (common, target) = sink(&settings);
        let TargetConfig::File(config) = target else {
            panic!("{target:?}");
        };
        Self {
            keeper: Keeper::new(FileSink::new(config), &common, SystemClock::shared()),
            directory,
        }
    }

    /// From now on its script ends well.
    fn make_ready(&self) {
        fs::write(self.directory.path().join("ready"), "").unwrap();
    }

    fn file(&self) -> String {
        fs::read_to_string(self.directory.path().join("synonyms.txt")).unwrap()
    }

    async fn step(&mut self) -> Result<Step, SinkError> {
        let standing = Standing {
            is_confirmed: false,
            is_connected: true,
        };
        let gauges = SinkMetrics::default().of("file:cards");
        let wanted = wanted(&[("notebook", &["laptop"])], 1);
        self.keeper.step(wanted, standing, &gauges).await
    }
}

#[tokio::test]
async fn a_state_counts_only_once_its_command_ended_well_and_what_a_failing_one_says_is_shown() {
    let mut kept = Kept::running("test -e READY || { echo no such service >&2; exit 3; }");
    for _ in 0..2 {
        let failed = kept.step().await.unwrap_err();
        assert_eq!(failed.problem, Problem::Refused);
        assert_eq!(failed.words, "sh ended with exit status: 3: no such service");
        assert!(
            kept.file().contains("notebook => laptop, notebook"),
            "{}",
            kept.file()
        );
    }
    kept.make_ready();
    assert!(matches!(kept.step().await, Ok(Step::InForce(_))));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_hangs_is_ended_and_run_again() {
    let mut kept = Kept::running("until test -e READY; do sleep 0.05; done");
    let failed = kept.step().await.unwrap_err();
    assert_eq!(failed.problem, Problem::Refused);
    assert_eq!(failed.words, "sh does not end within 60s");
    kept.make_ready();
    tokio::time::resume();
    assert!(matches!(kept.step().await, Ok(Step::InForce(_))));
}

#[tokio::test]
async fn a_command_that_is_not_there_is_named() {
    let mut kept = Kept::running("");
    kept.keeper.target.config.command = vec!["/nowhere/reload".into()];
    let failed = kept.step().await.unwrap_err();
    assert!(
        failed.words.starts_with("/nowhere/reload can't be run: "),
        "{failed}"
    );
}
