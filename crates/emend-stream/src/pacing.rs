//! Waking many streams without holding up what else there is to do.

use std::{sync::Arc, time::Duration};

use emend_base::Lifecycle;
use tokio::time::sleep;

use crate::audience::Audiences;

/// The pause after streams were woken, for each of them: about what it takes to write one update to it. So where updates are
/// many, several are written together, and deliveries leave half of a processor to commits. With three times that, a thousand
/// streams were not done with one of 20 updates a second when the next came: it waited, and so did nearly all.
const PAUSE_PER_STREAM: Duration = Duration::from_micros(15);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How many streams are woken at once. What else is to be done gets its turn after each such slice: with all of a thousand
/// in line at once, each step of a commit waits for some hundreds of deliveries.
const SLICE: usize = 32;
/// Wakes streams that have something to send, slice by slice: at once if the pause after those that were woken last is over, else at its end,
/// once for all that was published in it. There is one pause for all streams: it leaves the processor to commits.
pub async fn wake_streams(audiences: Arc<Audiences>, lifecycle: Lifecycle) {
    let _paced = audiences.pace();
    loop {
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            () = audiences.became_due() => {}
        }
        let mut wave = audiences.take_due();
        let pause = pause_after(wave.left());
        while wave.left() > 0 {
            wave.wake(SLICE);
            tokio::task::yield_now().await;
        }
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

/// How long streams are not woken after so many of them were.
fn pause_after(streams: usize) -> Duration {
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    PAUSE_PER_STREAM.saturating_mul(streams).min(LONGEST_PAUSE)
}
