//! Hands newly stored events over to the relay: leased to this replica and sent at once, if there is room.

use emend_base::Entropy;
use emend_core::FeedbackId;
use feedback_store::records::{
    event::{self, NewEvent},
    feedback::Accepted,
    outbox::{Lease, LeaseHolder},
};
use tokio::time::Instant;

use crate::outbox::{
    config::RelayConfig,
    delivery_queue::{DeliveryQueue, Leased, Reservation},
};

/// Hands events over to the relay. Clones share its queue.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    delivery_queue: DeliveryQueue,
    holder: LeaseHolder,
    entropy: Entropy,
    config: RelayConfig,
}

/// Room in the relay's queue, and the lease under which to store the events that fill it.
#[derive(Debug)]
pub(crate) struct Reserved {
    room: Reservation,
    lease: Lease,
    expires: Instant,
}

impl Dispatch {
    /// Hands events over to `delivery_queue`.
    pub(crate) fn new(delivery_queue: DeliveryQueue, entropy: Entropy, config: RelayConfig) -> Self {
        Self {
            delivery_queue,
            holder: LeaseHolder::new(&entropy),
            entropy,
            config,
        }
    }

    /// Who leases.
    pub(crate) fn holder(&self) -> LeaseHolder {
        self.holder
    }

    /// A new lease.
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            token: self.holder.token(&self.entropy),
            duration: self.config.lease,
        }
    }

    /// Reserves room for this many events. To be called before they are stored, so that the lease does not expire later
    /// here than in the database.
    pub(crate) fn reserve(&self, count: usize) -> Option<Reserved> {
        let room = self.delivery_queue.reserve(count)?;
        let lease = self.lease();
        Some(Reserved {
            room,
            lease,
            expires: Instant::now() + lease.duration,
        })
    }

    /// Has stored events sent: from memory if they were leased, otherwise through a claim.
    pub(crate) fn stored(&self, reserved: Option<Reserved>, events: Vec<(NewEvent, Accepted)>) {
        if events.is_empty() {
            return;
        }
        match reserved {
            Some(Reserved { room, lease, expires }) => {
                let seen = Instant::now();
                room.fill(events.into_iter().map(|(new, accepted)| Leased {
                    event_id: new.id,
                    size: new.payload.len(),
                    event: event::complete(new.message, accepted),
                    attempts: 0,
                    token: lease.token,
                    expires,
                    seen,
                }));
            }
            None => self.delivery_queue.ask_for_claim(),
        }
    }

    /// Drops the events of this feedback from the queue, because they no longer say what is stored.
    pub(crate) fn forget(&self, id: FeedbackId) {
        self.delivery_queue.forget(id);
    }

    /// Requests a claim: something in the outbox is due that nobody holds.
    pub(crate) fn due(&self) {
        self.delivery_queue.ask_for_claim();
    }
}

impl Reserved {
    /// The lease under which to store the events.
    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }
}
