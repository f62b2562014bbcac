//! A full disk: what cannot be stored is refused and said so, what was acknowledged stays, and with room again all goes on,
//! without a restart.

use std::{fs, path::Path};

use emend_tests::{
    faults::{Fleet, Member, Run, Storage, bounded, disk::Disk, rounds},
    harness::NAMESPACE,
};
use tempfile::TempDir;
use tonic::Code;

/// The database's files on a disk that only its process sees, copied to where an audit can read them.
fn copied(member: &mut Member, directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(member.sees(directory)).unwrap() {
        let file = file.unwrap();
        // The shared index is made anew from the log.
        if !file.file_name().to_string_lossy().ends_with("-shm") {
            fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
    }
    copy
}

/// Each service's directory.
fn directories(storage: &Storage) -> [&Path; 2] {
    let Storage::Sqlite { feedback, learning } = storage else {
        unreachable!("disks are filled on SQLite")
    };
    [feedback.path(), learning.path()]
}

/// Fills the services' disks in turn. Who is refused is told so: by this code, for this reason.
async fn is_said_so(name: &str, storage: Storage, disks: [Disk; 2], refusal: (Code, &str)) {
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
        // feedback-svc takes submissions all the while: only operators are refused.
        disks[1].fill(&mut run.fleet.learning[0]).await;
        run.load().is_refused_by(5).await;
        disks[1].free(&mut run.fleet.learning[0]).await;
    }
    run.goes_on().await;
    run.stop_load().await;
    let refusals = &run.record.refusals;
    let (code, reason) = refusal;
    assert!(refusals.of(code, reason) > 0, "{refusals:?}");
    run.fleet.feedback_clients()[0].all_delivered(NAMESPACE).await;
    let [feedback, learning] = directories;
    // Not dropped before the end: without the directory the process would lose the disk that it sees there.
    let copies = Storage::Sqlite {
        feedback: copied(&mut run.fleet.feedback[0], &feedback),
        learning: copied(&mut run.fleet.learning[0], &learning),
    };
    let _mounted = std::mem::replace(&mut run.fleet.storage, copies);
    run.questions().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_so_and_with_room_again_all_goes_on() {
    bounded(async {
        let storage = Storage::sqlite();
        let [feedback, learning] = directories(&storage);
        // Where nothing can be mounted, the other test is there all the same.
        if let (Some(feedback), Some(learning)) =
            (Disk::mounted(feedback).await, Disk::mounted(learning).await)
        {
            let refusal = (Code::ResourceExhausted, "STORAGE_FULL");
            is_said_so("disk", storage, [feedback, learning], refusal).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_may_get_no_longer_are_said_so_and_when_they_may_all_goes_on() {
    bounded(async {
        if let (Some(feedback), Some(learning)) = (Disk::size_limit().await, Disk::size_limit().await) {
            let refusal = (Code::Unavailable, "DATABASE_UNAVAILABLE");
            is_said_so("file-size", Storage::sqlite(), [feedback, learning], refusal).await;
        }
    })
    .await;
}
