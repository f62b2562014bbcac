//! Moves bytes from one side to the other, under the network's conditions.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::tcp::{OwnedReadHalf, OwnedWriteHalf},
    sync::watch,
    time::sleep,
};

use super::{Road, fault::Plan};
use crate::harness::Dice;

/// The most bytes moved at once.
const PIECE: usize = 16 * 1024;
/// A throttled direction moves about this many pieces a second.
const PIECES_PER_SECOND: usize = 50;

/// What both directions of one connection share.
#[derive(Debug)]
pub(super) struct Line {
    number: u64,
    roads: watch::Receiver<Road>,
    /// Some of what was sent is lost: nothing that follows would make sense.
    is_mute: AtomicBool,
    /// The same, for what was sent back to the client.
    is_unanswered: AtomicBool,
    is_harmed: AtomicBool,
    harmed: Arc<AtomicUsize>,
}

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client.
    There = 0,
    /// To the client.
    Back = 1,
}

impl Line {
    pub(super) fn new(number: u64, roads: watch::Receiver<Road>, harmed: Arc<AtomicUsize>) -> Self {
        Self {
            number,
            roads,
            is_mute: AtomicBool::new(false),
            is_unanswered: AtomicBool::new(false),
            is_harmed: AtomicBool::new(false),
            harmed,
        }
    }

    pub(super) fn roads(&self) -> watch::Receiver<Road> {
        self.roads.clone()
    }

    /// Whether it starts in a black hole.
    pub(super) fn is_swallowed_at_once(&self) -> bool {
        let swallowed = self.roads.borrow().conditions.is_black_hole();
        if swallowed {
            self.harm();
        }
        swallowed
    }

    /// Whether nothing passes in that direction any more.
    fn is_mute(&self, direction: Direction) -> bool {
        let (hole, unanswered) = {
            let road = self.roads.borrow();
            let forsaken = self.number < road.forsaken;
            (
                forsaken || road.conditions.is_black_hole(),
                road.conditions.loses_answers(),
            )
        };
        if hole {
            self.is_mute.store(true, Ordering::SeqCst);
            self.harm();
        }
        if unanswered && direction == Direction::Back {
            self.is_unanswered.store(true, Ordering::SeqCst);
            self.harm();
        }
        self.is_mute.load(Ordering::SeqCst)
            || direction == Direction::Back && self.is_unanswered.load(Ordering::SeqCst)
    }

    fn harm(&self) {
        if !self.is_harmed.swap(true, Ordering::SeqCst) {
            self.harmed.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn plan(&self, direction: Direction) -> (Plan, Dice) {
        let way = self.number * 2 + direction as u64;
        self.roads.borrow().conditions.plan(way)
    }
}

/// Reads and discards until the peer is gone.
pub(super) async fn swallow(mut from: OwnedReadHalf) {
    let mut buffer = vec![0; PIECE];
    while matches!(from.read(&mut buffer).await, Ok(read) if read > 0) {}
}

/// Moves bytes in one direction. An error ends the connection in both.
pub(super) async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    line: &Line,
    direction: Direction,
) -> io::Result<()> {
    let (mut plan, mut dice) = line.plan(direction);
    let mut roads = line.roads();
    let mut buffer = vec![0; PIECE];
    loop {
        let piece = plan
            .bytes_per_second
            .map_or(PIECE, |rate| (rate / PIECES_PER_SECOND).clamp(1, PIECE));
        let read = from.read(&mut buffer[..piece]).await;
        if roads.wait_for(|road| !road.held).await.is_err() {
            return Ok(());
        }
        if line.is_mute(direction) {
            match read {
                Ok(1..) => continue,
                // The other side is not told.
                Ok(0) | Err(_) => return Ok(()),
            }
        }
        let read = read?;
        if read == 0 {
            return to.shutdown().await;
        }
        if plan.number != roads.borrow().conditions.number {
            (plan, dice) = line.plan(direction);
        }
        pause(&plan, &dice, read).await;
        if let Some(left) = &mut plan.cut {
            if *left <= read {
                line.harm();
                to.write_all(&buffer[..*left]).await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            *left -= read;
        }
        if let Some(left) = &mut plan.half_close {
            if *left <= read {
                line.harm();
                to.write_all(&buffer[..*left]).await?;
                to.shutdown().await?;
                swallow(from).await;
                return Ok(());
            }
            *left -= read;
        }
        to.write_all(&buffer[..read]).await?;
    }
}

async fn pause(plan: &Plan, dice: &Dice, bytes: usize) {
    if let Some(most) = plan.delay {
        let millis = usize::try_from(most.as_millis()).unwrap_or(usize::MAX);
        sleep(Duration::from_millis(dice.below(millis + 1) as u64)).await;
    }
    if let Some(rate) = plan.bytes_per_second {
        let micros = bytes.saturating_mul(1_000_000) / rate;
        sleep(Duration::from_micros(micros as u64)).await;
    }
}
