//! A subscriber on a network that breaks its streams: it connects again from its cursor whenever that happens, and holds
//! every stream to the guarantees.

use std::{fmt, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::harness::{Heard, Subscriber, wary, within};

/// Before it connects again.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug)]
pub struct Listener {
    goal: watch::Sender<Option<i64>>,
    listening: JoinHandle<Subscriber>,
}

impl Listener {
    /// Of everything at that address.
    pub fn start(address: impl fmt::Display, id: &str) -> Self {
        let (goal, goals) = watch::channel(None);
        let subscriber = Subscriber::of_everything(id);
        let address = address.to_string();
        Self {
            goal,
            listening: tokio::spawn(listen(subscriber, address, goals)),
        }
    }

    /// Waits until it has applied `revision`; answers with the subscriber and with all it holds.
    ///
    /// # Panics
    /// If a guarantee was broken.
    pub async fn until(self, revision: i64) -> Subscriber {
        self.goal.send_replace(Some(revision));
        let listened = within("the subscriber is at the newest state", self.listening).await;
        listened.expect("no guarantee is broken")
    }
}

async fn listen(
    mut subscriber: Subscriber,
    address: String,
    goals: watch::Receiver<Option<i64>>,
) -> Subscriber {
    let mut reached = None;
    let arrived = |reached: Option<i64>| {
        let goal = *goals.borrow();
        goal.is_some_and(|goal| reached.is_some_and(|reached| reached >= goal))
    };
    loop {
        // A channel for each stream: a connection that has gone silent is not used again.
        if subscriber.connect(&wary::channel(&address)).await.is_ok() {
            // Bookmarks come every second, so it does not miss its goal for long.
            while let Ok(heard) = subscriber.try_next().await {
                match heard {
                    Heard::Snapshot { revision, .. }
                    | Heard::Bookmark(revision)
                    | Heard::Update { to: revision, .. } => reached = Some(revision),
                    Heard::Resumed | Heard::Drain(_) => {}
                    Heard::End => break,
                }
                if arrived(reached) {
                    return subscriber;
                }
            }
        }
        sleep(PAUSE).await;
    }
}
