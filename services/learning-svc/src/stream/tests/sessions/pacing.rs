//! Streams are woken at once after a quiet while, and where states follow each other quickly, once for several.

use emend_base::Lifecycle;
use emend_stream::pacing::wake_streams;
use tokio::time::sleep;

use super::*;

/// Reads everything there is, and listens with this counter.
fn listen(subscriber: &mut Subscriber, count: &Arc<Count>) {
    subscriber.read();
    let waker = Arc::clone(count).into();
    let mut cx = Context::from_waker(&waker);
    assert!(subscriber.session.poll_next_unpin(&mut cx).is_pending());
}

fn woken(count: &Arc<Count>) -> usize {
    count.0.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn while_streams_are_paced_states_are_published_at_once_and_streams_woken_once_for_all() {
    let (log, replica) = with_resources(1).await;
    let (mut subscriber, count) = (Subscriber::open(&replica, everything()).await, Arc::default());
    listen(&mut subscriber, &count);
    let audiences = replica.0.streams.audiences();
    let paced = audiences.pace();
    for round in 0..5 {
        commit(&log, &replica, &[write("k0", Some(&round.to_string()))]).await;
        assert_eq!(replica.state().unwrap().revision(), 2 + round);
    }
    assert_eq!(woken(&count), 0);
    audiences.became_due().await;
    drop(audiences.take_due());
    assert_eq!(woken(&count), 1);
    listen(&mut subscriber, &count);
    assert_eq!(subscriber.client.held, model_at(&log, 6));
    assert_eq!(subscriber.client.updates, 1);

    // Whoever ends pacing leaves nobody asleep.
    commit(&log, &replica, &[write("k0", None)]).await;
    assert_eq!(woken(&count), 1);
    drop(paced);
    assert_eq!(woken(&count), 2);
    listen(&mut subscriber, &count);
    commit(&log, &replica, &[write("k0", Some("again"))]).await;
    assert_eq!(woken(&count), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_many_states_wakes_at_once_and_the_others_after_a_pause() {
    let (log, replica) = with_resources(1).await;
    let lifecycle = Lifecycle::new();
    lifecycle.spawn(
        "wake streams",
        wake_streams(Arc::clone(replica.0.streams.audiences()), lifecycle.clone()),
    );
    tokio::task::yield_now().await;
    // As many as make a pause of 4 ms, to which 3.9 are rounded.
    let mut subscribers = Vec::new();
    for _ in 0..260 {
        subscribers.push((Subscriber::open(&replica, everything()).await, Arc::default()));
    }
    for at in 0..10 {
        for (subscriber, count) in &mut subscribers {
            listen(subscriber, count);
        }
        commit(&log, &replica, &[write("k0", Some(&at.to_string()))]).await;
        // The worker wakes all slices, and no time passes.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let expected = match at {
            0..4 => 1,
            4..8 => 2,
            _ => 3,
        };
        for (_, count) in &subscribers {
            assert_eq!(woken(count), expected, "after {at} ms");
        }
        sleep(Duration::from_millis(1)).await;
    }
    lifecycle.shutdown(Duration::from_secs(1)).await;
    for (subscriber, count) in &mut subscribers {
        listen(subscriber, count);
        assert_eq!(subscriber.client.held, model_at(&log, 11));
    }
}
