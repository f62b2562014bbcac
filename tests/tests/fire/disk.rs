//! A full disk: what cannot be stored is refused and said so, what was acknowledged stays, and with room again all goes on,
//! without a restart.

use std::{fs, path::Path};

use emend_tests::{
    faults::{Fleet, Member, Run, Storage, bounded, disk::SmallDisk, rounds},
    harness::NAMESPACE,
};
use tempfile::TempDir;
use tonic::Code;

/// Room for the write-ahead log and more.
const SIZE: &str = "96m";

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_so_and_with_room_again_all_goes_on() {
    bounded(async {
        let storage = Storage::sqlite();
        let Storage::Sqlite { feedback, learning } = &storage else {
            unreachable!("made so just now")
        };
        let directories = [feedback.path().to_owned(), learning.path().to_owned()];
        let mut fleet = Fleet::stopped(storage, 1, 1).await;
        let mut disks = Vec::new();
        for directory in &directories {
            let Some(disk) = SmallDisk::at(directory).await else {
                return;
            };
            disks.push(disk);
        }
        disks[0].hold(&mut fleet.feedback[0], SIZE);
        disks[1].hold(&mut fleet.learning[0], SIZE);
        fleet.start_all().await;

        let mut run = Run::begin("disk", fleet).await;
        for _ in 0..rounds(2, 20) {
            run.goes_on().await;
            disks[0].fill(&mut run.fleet.feedback[0]);
            run.load().is_refused_by(10).await;
            disks[0].free(&mut run.fleet.feedback[0]);
            run.goes_on().await;
            // feedback-svc takes submissions all the while: only operators are refused.
            disks[1].fill(&mut run.fleet.learning[0]);
            run.load().is_refused_by(5).await;
            disks[1].free(&mut run.fleet.learning[0]);
        }
        run.goes_on().await;
        run.stop_load().await;
        let refusals = &run.record.refusals;
        assert!(
            refusals.of(Code::ResourceExhausted, "STORAGE_FULL") > 0,
            "{refusals:?}"
        );
        run.fleet.feedback_clients()[0].all_delivered(NAMESPACE).await;
        let [feedback, learning] = directories;
        // Not dropped before the end: without the directory the process would lose the disk that it sees there.
        let copies = Storage::Sqlite {
            feedback: copied(&mut run.fleet.feedback[0], &feedback),
            learning: copied(&mut run.fleet.learning[0], &learning),
        };
        let _mounted = std::mem::replace(&mut run.fleet.storage, copies);
        run.questions().await;
    })
    .await;
}
