//! `emend admin backup`: made of a running pair under load, it is sound, and a pair that starts on it goes on.

use std::{
    env, fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use emend_base::testing::skipped;
use emend_proto::common::v1::ResourceKind;
use emend_tests::harness::{
    Feedback, Learning, System, alias,
    deployment::Up,
    process::{emend, run},
    says,
    system::Service,
    wait::{eventually, holds},
};
use tokio::{process::Command, task::JoinHandle};

use crate::documents::postgres_programs;

const LOADERS: usize = 6;

/// Learns without end.
struct Load {
    stop: Arc<AtomicBool>,
    learned: Arc<AtomicUsize>,
    loaders: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(feedback: &Feedback) -> Self {
        let (stop, learned) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let loaders = (0..LOADERS).map(|who| {
            let (feedback, stop, learned) = (feedback.clone(), Arc::clone(&stop), Arc::clone(&learned));
            tokio::spawn(async move {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = format!("{who} {number}");
                    feedback.learn(says("jane", alias(&key, "jane-doe"))).await;
                    learned.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Self {
            loaders: loaders.collect(),
            stop,
            learned,
        }
    }

    /// Waits until more is learned.
    async fn goes_on(&self) {
        let learned = || self.learned.load(Ordering::Relaxed);
        let before = learned();
        eventually("the load goes on", async || {
            holds(learned() > before, || {
                format!("{before} were learned and no more")
            })
        })
        .await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for loader in self.loaders {
            loader.await.unwrap();
        }
    }
}

/// The names of what is in a directory, in order, without its lock.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "emend.lock").collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_made_under_load_are_sound_and_the_newest_can_be_restored() {
    let mut up = Up::start().await;
    let data = up.data_dir().display().to_string();
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("backups");
    let to = into.display().to_string();
    let load = Load::start(&Feedback::at(up.feedback));
    let mut newest = String::new();
    for _ in 0..4 {
        load.goes_on().await;
        // It has found the copy sound, or it would have failed.
        let made = emend(&[
            "admin",
            "backup",
            &to,
            "--data-dir",
            &data,
            "--keep",
            "2",
            "--json",
        ])
        .await;
        assert_eq!(made.code, 0, "{made:#?}");
        newest = made.json()["backup"].as_str().unwrap().to_owned();
    }
    load.goes_on().await;
    load.end().await;
    let kept = names(&into);
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(newest.ends_with(kept.last().unwrap()), "{newest}, {kept:?}");
    assert_eq!(names(Path::new(&newest)), ["feedback.db", "learning.db"]);
    up.process.terminate().await;
    up.process.ended().await;

    for command in [&["admin", "new-epoch"][..], &["doctor"]] {
        let ran = emend(&[command, &["--data-dir", &newest]].concat()).await;
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let restored = Up::start_with(&["--data-dir", &newest]).await;
    let found = Learning::at(restored.learning)
        .resolve(ResourceKind::EntityAlias, "0 0", "")
        .await;
    assert!(found.r#match.is_some(), "what was learned is there: {found:?}");
    let feedback = Feedback::at(restored.feedback);
    feedback.learn(says("jane", alias("0 0", "jane-roe"))).await;
}

/// The script of `components/backup-postgresql`, with the variables that its `CronJob` sets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cron_jobs_dump_is_restored_elsewhere_and_sound() {
    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/k8s/components/backup-postgresql");
    let job = fs::read_to_string(component.join("cron-job.yaml")).unwrap();
    let Some(system) = System::postgres(1, 1).await else {
        return;
    };
    let programs = postgres_programs();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(programs.into_iter().chain(env::split_paths(&path))).unwrap();
    if !env::split_paths(&path).any(|directory| directory.join("pg_dump").is_file()) {
        skipped("there is no pg_dump");
        return;
    }
    let elsewhere = system.database.another().await;
    let [from, to] = [&system.database, &elsewhere].map(|database| database.url(Service::Feedback, None));
    let backups = tempfile::tempdir().unwrap();
    let directory = backups.path().display().to_string();
    let back_up = async |from: &str, to: &str| {
        let mut command = Command::new("sh");
        command.arg(component.join("backup.sh")).env("PATH", &path);
        for (name, value) in [
            ("BACKUPS", &*directory),
            ("KEEP", "1"),
            ("BACKUP_URL", from),
            ("RESTORE_URL", to),
        ] {
            assert!(job.contains(&format!("name: {name}, ")), "{name}");
            command.env(name, value);
        }
        run("backup.sh", command).await
    };
    let load = Load::start(&system.feedback());
    for _ in 0..2 {
        load.goes_on().await;
        back_up(&from, &to).await.unwrap();
        let ran = emend(&["doctor", "--database-url", &to]).await;
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    load.goes_on().await;
    load.end().await;
    assert_eq!(names(backups.path()).len(), 1);
    let refused = back_up(&from, &from).await.unwrap_err();
    assert!(refused.contains("nothing is done"), "{refused}");
    system.stop().await;
}

#[tokio::test]
async fn what_is_no_data_directory_is_not_backed_up() {
    let directory = tempfile::tempdir().unwrap();
    let [data, into] = ["data", "backups"].map(|name| directory.path().join(name));
    let ran = emend(&[
        "admin",
        "backup",
        &into.display().to_string(),
        "--data-dir",
        &data.display().to_string(),
    ])
    .await;
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(!data.exists() && !into.exists(), "nothing is made");
}
