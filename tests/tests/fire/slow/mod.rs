//! Slow and hostile subscribers: some do not read, some read a byte a second, some come and go, some come back all at
//! once. The server's memory stays within a measured bound, the others get everything promptly, and all end at the
//! newest state.
//!
//! `EMEND_TEST_LONG=1` makes the stalls last at least a minute, and the rest longer.

mod scene;

use std::{pin::pin, time::Duration};

use emend_tests::{
    audit::stream::{Guarantee, Recorder, everything},
    faults::runs::short_or_long,
    harness::{Flow, NAMESPACE, Valve, eventually, wait::holds, within},
};
use futures::future::join_all;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

use self::scene::{Scene, of_its_own, patient};

/// What one subscriber that does not read may cost: its connection's full send buffer, one batch encoded for its filter
/// alone, and the allocator's rounding.
const EACH_STALLED: u64 = 1_536 * 1024;
/// How much more memory the same work may take when repeated: database caches, the allocator's pages.
const AGAIN: u64 = 32 * 1024 * 1024;
/// How much rounds may differ by chance.
const A_MOMENT: Duration = Duration::from_secs(2);
/// The number of imports beforehand, while all read, until the cache of encoded batches has its full size.
const BEFORE: u32 = 6;
/// The minimum number of changes during the stall.
const CHANGES: u32 = 10_000;
/// How many of them one import makes.
const AT_ONCE: u32 = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_delays_no_other_and_takes_bounded_memory() {
    let mut scene = Scene::start().await;
    let healthy = scene.healthy();
    // By flow control: the connection is read, but not the stream.
    let windows: Vec<Recorder> = (0..4)
        .map(|n| scene.subscriber(of_its_own(&format!("window-{n}"))))
        .collect();
    // By the socket, which is not read.
    let mut sockets = Vec::new();
    for n in 0..4 {
        let valve = Valve::to(scene.address).await;
        let request = of_its_own(&format!("socket-{n}"));
        let recorder = Recorder::with(&scene.run, valve.address(), request, patient());
        sockets.push((valve, recorder, Flow::Shut));
    }
    for n in 0..2 {
        let valve = Valve::to(scene.address).await;
        let request = of_its_own(&format!("trickle-{n}"));
        let recorder = Recorder::with(&scene.run, valve.address(), request, patient());
        sockets.push((valve, recorder, Flow::Trickle(Duration::from_secs(1))));
    }
    let all = || {
        let sockets = sockets.iter().map(|(_, recorder, _)| recorder);
        healthy.iter().chain(&windows).chain(sockets)
    };

    // While all read: what the work itself takes.
    let (mut most, mut longest) = (0, Duration::ZERO);
    for round in 0..BEFORE {
        let begun = Instant::now();
        let head = scene.write(AT_ONCE, round).await;
        join_all(all().map(|recorder| recorder.reaches(head))).await;
        longest = longest.max(begun.elapsed());
        most = most.max(scene.resident());
    }
    let stalled = windows.len() + sockets.len();
    let bound = most + EACH_STALLED * u64::try_from(stalled).unwrap() + AGAIN;

    for recorder in &windows {
        recorder.stall();
    }
    for (valve, recorder, flow) in &sockets {
        valve.turn(*flow);
        scene.run.stall_begins(recorder.name());
    }
    let until = Instant::now() + Duration::from_secs(short_or_long(0, 60));
    let (mut head, mut round, mut most_stalled) = (0, BEFORE, 0);
    while round < BEFORE + CHANGES / AT_ONCE || Instant::now() < until {
        let begun = Instant::now();
        head = scene.write(AT_ONCE, round).await;
        join_all(healthy.iter().map(|recorder| recorder.reaches(head))).await;
        let took = begun.elapsed();
        // Waiting for a stalled subscriber would take seconds; the rest is ordinary variation on a busy machine.
        assert!(
            took <= 5 * longest + A_MOMENT,
            "{took:?}, {longest:?} while all read"
        );
        let resident = scene.resident();
        scene.run.resident(resident, bound);
        most_stalled = most_stalled.max(resident);
        round += 1;
    }
    println!(
        "{stalled} stalled for {} changes: resident at most {} KiB, {} KiB while all read, bound {} KiB",
        (round - BEFORE) * AT_ONCE,
        most_stalled / 1024,
        most / 1024,
        bound / 1024
    );
    for recorder in all().skip(healthy.len()) {
        let behind = recorder.position().is_none_or(|cursor| cursor.revision < head);
        assert!(behind, "{} still stalls", recorder.name());
    }
    for recorder in &windows {
        recorder.go_on(head);
    }
    for (valve, recorder, _) in &sockets {
        scene.run.stall_ends(recorder.name(), head);
        valve.turn(Flow::Free);
    }

    let log = scene.log().await;
    join_all(all().map(|recorder| recorder.reaches_head(&log))).await;
    for recorder in healthy {
        let summary = recorder.audited(&log).await;
        assert!(summary.checked(Guarantee::Isolated) > 0 && summary.checked(Guarantee::NonBlocking) > 0);
        assert_eq!(summary.conflated, 0, "who keeps up gets every version: {summary}");
    }
    for recorder in windows
        .into_iter()
        .chain(sockets.into_iter().map(|(_, recorder, _)| recorder))
    {
        let summary = recorder.audited(&log).await;
        assert!(
            summary.conflated > 0,
            "it was spared what it had missed: {summary}"
        );
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_come_and_go_leave_no_memory_behind() {
    let mut scene = Scene::start().await;
    let healthy = scene.healthy();
    let restless: Vec<Recorder> = (0..4)
        .map(|n| scene.subscriber(of_its_own(&format!("restless-{n}"))))
        .collect();
    let head = scene.write(AT_ONCE, 0).await;
    join_all(
        healthy
            .iter()
            .chain(&restless)
            .map(|recorder| recorder.reaches(head)),
    )
    .await;
    let (files, before) = (scene.open_files(), scene.resident());

    let (rounds, visits) = short_or_long((5, 20), (60, 50));
    for round in 1..=rounds {
        let mut writing = pin!(scene.write(AT_ONCE / 4, round));
        let coming_and_going = async {
            for visit in 0..visits {
                // Leaves in the middle of whatever it is being sent.
                for recorder in &restless {
                    recorder.cut();
                }
                // Sends nothing at all, or only the beginning of a preface.
                let silent = TcpStream::connect(scene.address).await.unwrap();
                if visit % 2 == 0 {
                    silent.try_write(b"PRI * HTTP/2").unwrap();
                }
                let guest = scene.subscriber(everything(&format!("guest-{round}-{visit}")));
                guest.reaches(0).await;
            }
        };
        let (head, ()) = tokio::join!(&mut writing, coming_and_going);
        join_all(healthy.iter().map(|recorder| recorder.reaches(head))).await;
        scene.run.resident(scene.resident(), before + AGAIN);
    }

    let log = scene.log().await;
    join_all(restless.iter().map(|recorder| recorder.reaches_head(&log))).await;
    eventually("its sockets are closed", || async {
        let now = scene.open_files();
        // The database's own files may come and go.
        holds(now <= files + 4, || format!("{now} open files, {files} before"))
    })
    .await;
    for recorder in healthy.into_iter().chain(restless) {
        recorder.audited(&log).await;
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_returning_nodes_all_get_what_they_missed() {
    let mut scene = Scene::start().await;
    let healthy = scene.healthy();
    let crowd: Vec<Recorder> = (0..200)
        .map(|n| {
            let mut request = everything(&format!("crowd-{n}"));
            // Most share a filter, some have one of their own.
            if n % 4 == 0 {
                request.namespaces = vec![NAMESPACE.into(), format!("of-{n}")];
            }
            scene.subscriber_by_the_gate(request)
        })
        .collect();
    let rounds = short_or_long(2, 20);
    let mut head = scene.write_short(500, 0).await;
    join_all(crowd.iter().map(|recorder| recorder.reaches(head))).await;
    let bound = scene.resident() + AGAIN + 200 * 256 * 1024;
    for round in 1..=rounds {
        scene.close_gate();
        for half in 0..2 {
            head = scene.write_short(500, 2 * round + half).await;
        }
        join_all(healthy.iter().map(|recorder| recorder.reaches(head))).await;
        scene.open_gate();
        let back = join_all(crowd.iter().map(|recorder| recorder.reaches(head)));
        let mut back = pin!(back);
        // Sampled while they reconnect.
        while timeout(Duration::from_millis(20), &mut back).await.is_err() {
            scene.run.resident(scene.resident(), bound);
        }
        scene.run.resident(scene.resident(), bound);
    }
    let log = scene.log().await;
    for recorder in healthy {
        recorder.audited(&log).await;
    }
    for recorder in crowd {
        let summary = recorder.audited(&log).await;
        assert!(summary.resumed >= usize::try_from(rounds).unwrap(), "{summary}");
        assert_eq!(
            summary.snapshots.values().sum::<usize>(),
            1,
            "only the first time: {summary}"
        );
    }
    within("the scene ends", scene.stop()).await;
}
