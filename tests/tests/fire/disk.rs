//! A full disk: what cannot be stored is refused with that reason, what was acknowledged stays, and once there is space
//! everything works again, without a restart.

use std::{fs, path::Path};

use emend_audit::Waiting;
use emend_tests::{
    faults::{Fleet, Run, Storage, bounded, disk::Disk, rounds},
    harness::{eventually, wait::holds},
};
use tempfile::TempDir;
use tonic::Code;

/// Copies the databases' files from disks that only their processes see to where an audit can read them, once no
/// delivery is pending: from a copy nothing is delivered any more, and retracted feedback counts as delivered once its
/// retraction is, even if its own event is still waiting.
async fn copies(fleet: &mut Fleet, directories: [&Path; 2]) -> Storage {
    let seen = [
        fleet.feedback[0].sees(directories[0]),
        fleet.learning[0].sees(directories[1]),
    ];
    eventually("nothing waits on the disks", || async {
        let copies = Storage::Sqlite {
            feedback: copied(&seen[0])?,
            learning: copied(&seen[1])?,
        };
        match emend_audit::waiting(&copies.databases()).await {
            Ok(Waiting {
                events: 0,
                contests: 0,
            }) => Ok(copies),
            still => Err(format!("{still:?}")),
        }
    })
    .await
}

/// A copy of a directory, unless its database was checkpointed meanwhile.
fn copied(directory: &Path) -> Result<TempDir, String> {
    let files = || -> Vec<_> {
        let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
        // The shared index is rebuilt from the log.
        files
            .filter(|file| file.extension() != Some("db-shm".as_ref()))
            .collect()
    };
    let databases = || -> Vec<_> {
        let databases = files()
            .into_iter()
            .filter(|file| file.extension() == Some("db".as_ref()));
        databases
            .map(|file| fs::metadata(file).unwrap().modified().unwrap())
            .collect()
    };
    let before = databases();
    assert!(!before.is_empty(), "a database is in {}", directory.display());
    let copy = tempfile::tempdir().unwrap();
    for file in files() {
        fs::copy(
            &file,
            copy.path().join(file.file_name().expect("a file has a name")),
        )
        .unwrap();
    }
    holds(databases() == before, || "the log was folded back".to_owned())?;
    Ok(copy)
}

/// Each service's directory.
fn directories(storage: &Storage) -> [&Path; 2] {
    let Storage::Sqlite { feedback, learning } = storage else {
        unreachable!("disks are filled on SQLite")
    };
    [feedback.path(), learning.path()]
}

/// Fills the services' disks in turn. Refused callers are told so, with this code and reason.
async fn failure_is_reported(name: &str, storage: Storage, disks: [Disk; 2], refusal: (Code, &str)) {
    let directories = directories(&storage).map(Path::to_owned);
    let mut fleet = Fleet::stopped(storage, 1, 1).await;
    disks[0].hold(&mut fleet.feedback[0]);
    disks[1].hold(&mut fleet.learning[0]);
    fleet.start_all().await;

    let mut run = Run::begin(name, fleet).await;
    for _ in 0..rounds(2, 20) {
        run.goes_on().await;
        disks[0].fill(&mut run.fleet.feedback[0]).await;
        run.load().is_refused_by(10).await;
        disks[0].free(&mut run.fleet.feedback[0]).await;
        run.goes_on().await;
        // feedback-svc keeps accepting submissions: only operators are refused.
        disks[1].fill(&mut run.fleet.learning[0]).await;
        run.load().is_refused_by(5).await;
        disks[1].free(&mut run.fleet.learning[0]).await;
    }
    run.goes_on().await;
    run.stop_load().await;
    let refusals = &run.record.refusals;
    let (code, reason) = refusal;
    assert!(refusals.of(code, reason) > 0, "{refusals:?}");
    let [feedback, learning] = &directories;
    let copies = copies(&mut run.fleet, [feedback, learning]).await;
    // Kept until the end: without the directory the process would lose the disk mounted there.
    let _mounted = std::mem::replace(&mut run.fleet.storage, copies);
    run.questions().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_and_freed_space_is_used() {
    bounded(async {
        let storage = Storage::sqlite();
        let [feedback, learning] = directories(&storage);
        // If nothing can be mounted, the other test still runs.
        if let (Some(feedback), Some(learning)) =
            (Disk::mounted(feedback).await, Disk::mounted(learning).await)
        {
            let refusal = (Code::ResourceExhausted, "STORAGE_FULL");
            failure_is_reported("disk", storage, [feedback, learning], refusal).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_size_limit_is_reported_and_lifting_it_is_enough() {
    bounded(async {
        if let (Some(feedback), Some(learning)) = (Disk::size_limit().await, Disk::size_limit().await) {
            let refusal = (Code::Unavailable, "DATABASE_UNAVAILABLE");
            failure_is_reported("file-size", Storage::sqlite(), [feedback, learning], refusal).await;
        }
    })
    .await;
}
