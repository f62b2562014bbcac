//! A semaphore that no single client can exhaust.
//!
//! While plenty of permits are free, a client may take any number of them. The last quarter is reserved for clients
//! that hold few: a client that holds a 64th of all permits or more gets none of it. So one client, whatever it does,
//! leaves a quarter of the permits to others. Waiting clients are granted permits in round robin, however many requests
//! each has queued.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_core::Caller;
use tokio::sync::oneshot;
use tonic::{Extensions, Request, transport::server::TcpConnectInfo};

use crate::fair_queue::FairQueue;

/// One part in this many of the permits is reserved for clients that hold few.
const RESERVED_PART: usize = 4;
/// One part in this many of the permits is the most that a client may hold when only reserved ones are left.
const LARGEST_PART: usize = 64;

/// The client that a permit is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientKey {
    /// An authenticated client, from any address.
    Caller(Caller),
    /// An unauthenticated client, by IPv4 address or by the /64 of its IPv6 address, because a host has a whole /64.
    Address(IpAddr),
    /// Nothing is known about the client.
    Unknown,
}

impl ClientKey {
    /// By caller if authenticated, else by address.
    pub fn of(caller: Option<&Caller>, address: Option<IpAddr>) -> Self {
        match (caller, address) {
            (Some(caller), _) if *caller != Caller::anonymous() => Self::Caller(caller.clone()),
            (_, Some(address)) => Self::Address(match address.to_canonical() {
                IpAddr::V6(address) => {
                    let host = (1_u128 << 64) - 1;
                    IpAddr::V6((u128::from(address) & !host).into())
                }
                address @ IpAddr::V4(_) => address,
            }),
            (_, None) => Self::Unknown,
        }
    }

    /// The sender of `request`, as far as earlier layers identified it.
    pub fn of_request<T>(request: &Request<T>) -> Self {
        Self::in_extensions(request.extensions())
    }

    pub(crate) fn in_extensions(extensions: &Extensions) -> Self {
        let address = extensions
            .get::<TcpConnectInfo>()
            .and_then(|info| info.remote_addr);
        Self::of(extensions.get::<Caller>(), address.map(|address| address.ip()))
    }
}

/// A fixed number of permits. Clones share them.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    permits: usize,
    /// The most that a client may hold when only the reserved permits are left.
    share: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: Held,
    waiting: FairQueue<Waiter>,
    /// How many have ever waited; numbers the waiters.
    waited: u64,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// Only clients that hold permits have an entry.
    by: HashMap<ClientKey, usize>,
}

/// A pending request for a permit, with the channel on which it is granted.
#[derive(Debug)]
struct Waiter {
    number: u64,
    granted: oneshot::Sender<Permit>,
}

/// Permits held by one client, released when dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: FairSemaphore,
    client: ClientKey,
    count: usize,
}

/// A pending [`FairSemaphore::acquire`]; dropping it leaves the queue.
struct PendingAcquire<'a> {
    semaphore: &'a FairSemaphore,
    client: ClientKey,
    number: u64,
    permit: oneshot::Receiver<Permit>,
}

impl Held {
    fn by(&self, client: &ClientKey) -> usize {
        self.by.get(client).copied().unwrap_or(0)
    }

    fn add(&mut self, client: &ClientKey, count: usize) {
        self.all += count;
        *self.by.entry(client.clone()).or_default() += count;
    }

    fn subtract(&mut self, client: &ClientKey, count: usize) {
        self.all -= count;
        if let Some(own) = self.by.get_mut(client) {
            *own -= count;
            if *own == 0 {
                self.by.remove(client);
            }
        }
    }
}

impl Shared {
    /// Whether the client may have `more` permits in addition.
    fn admits(&self, held: &Held, client: &ClientKey, more: usize) -> bool {
        let Some(left) = self.permits.checked_sub(held.all + more) else {
            return false;
        };
        // Where nobody holds any, nobody is kept out: so a request that takes nearly all is met at all.
        left >= self.permits / RESERVED_PART || held.by(client) + more <= self.share || held.all == 0
    }
}

impl FairSemaphore {
    /// A semaphore of this many permits, at least one.
    pub fn of(permits: usize) -> Self {
        Self::with_share(permits, 1)
    }

    /// The same, where a client may hold up to `least` permits even when only the reserved ones are left.
    pub fn with_share(permits: usize, least: usize) -> Self {
        let permits = permits.max(1);
        Self(Arc::new(Shared {
            permits,
            share: (permits / LARGEST_PART).max(least),
            state: Mutex::default(),
        }))
    }

    /// A permit, if one is available to the client.
    pub fn try_acquire(&self, client: ClientKey) -> Option<Permit> {
        self.try_acquire_many(client, 1)
    }

    /// That many permits, if they are available to the client; more than exist count as all of them.
    pub fn try_acquire_many(&self, client: ClientKey, count: usize) -> Option<Permit> {
        let mut permit = self.empty_permit(client);
        permit.try_grow(count.min(self.0.permits)).then_some(permit)
    }

    /// Waits for a permit until it is the client's turn.
    pub async fn acquire(&self, client: ClientKey) -> Permit {
        let mut waiting = {
            let mut state = self.state();
            if self.0.admits(&state.held, &client, 1) {
                return self.hand_out(&mut state.held, client);
            }
            let (granted, permit) = oneshot::channel();
            let number = state.waited;
            state.waited += 1;
            state.waiting.push(client.clone(), Waiter { number, granted });
            PendingAcquire {
                semaphore: self,
                client,
                number,
                permit,
            }
        };
        let permit = (&mut waiting.permit).await;
        permit.expect("invariant: a waiter without a permit is in the queue")
    }

    /// A permit of size zero, for a client that does not know yet how many it needs.
    pub fn empty_permit(&self, client: ClientKey) -> Permit {
        Permit {
            semaphore: self.clone(),
            client,
            count: 0,
        }
    }

    /// Whether the client would get one more permit after it released `own` and others released `others`.
    pub fn would_admit(&self, client: &ClientKey, own: usize, others: usize) -> bool {
        let state = self.state();
        let free = (self.0.permits + own + others).saturating_sub(state.held.all);
        let held = state.held.by(client).saturating_sub(own);
        free > self.0.permits / RESERVED_PART || free > 0 && held < self.0.share
    }

    /// How many permits the client holds.
    pub fn held_by(&self, client: &ClientKey) -> usize {
        self.state().held.by(client)
    }

    /// Grants a permit that [`Shared::admits`] has allowed.
    fn hand_out(&self, held: &mut Held, client: ClientKey) -> Permit {
        held.add(&client, 1);
        Permit {
            semaphore: self.clone(),
            client,
            count: 1,
        }
    }

    /// Takes permits back and grants them to the waiters whose turn it is.
    fn take_back(&self, from: &ClientKey, count: usize) {
        let mut granted = Vec::new();
        {
            let State { held, waiting, .. } = &mut *self.state();
            held.subtract(from, count);
            while let Some((client, waiter)) = waiting.pop(
                |client| self.0.admits(held, client, 1),
                |waiter| !waiter.granted.is_closed(),
            ) {
                granted.push((waiter, self.hand_out(held, client)));
            }
        }
        for (waiter, permit) in granted {
            // If the waiter has just gone away, dropping the permit releases it at once.
            let _ = waiter.granted.send(permit);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The client that holds it.
    pub fn client(&self) -> &ClientKey {
        &self.client
    }

    /// Adds `by` permits if they are available to the client, else none.
    pub fn try_grow(&mut self, by: usize) -> bool {
        let held = &mut self.semaphore.state().held;
        let admitted = self.semaphore.0.admits(held, &self.client, by);
        if admitted && by > 0 {
            held.add(&self.client, by);
            self.count += by;
        }
        admitted
    }

    /// Releases `by` permits, or all if there are fewer.
    pub fn shrink(&mut self, by: usize) {
        let by = by.min(self.count);
        if by > 0 {
            self.count -= by;
            self.semaphore.take_back(&self.client, by);
        }
    }

    /// Resizes to `count` permits if they are available to the client, else leaves the size unchanged.
    pub fn try_resize(&mut self, count: usize) -> bool {
        if count > self.count {
            return self.try_grow(count - self.count);
        }
        self.shrink(self.count - count);
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink(self.count);
    }
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        let Self {
            semaphore,
            client,
            number,
            ..
        } = self;
        semaphore
            .state()
            .waiting
            .remove(client, |waiter| waiter.number == *number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn from(address: &str) -> ClientKey {
        ClientKey::of(Some(&Caller::anonymous()), Some(address.parse().unwrap()))
    }

    /// As many permits as the client gets.
    fn all_of(semaphore: &FairSemaphore, client: &ClientKey) -> Vec<Permit> {
        std::iter::from_fn(|| semaphore.try_acquire(client.clone())).collect()
    }

    fn is_empty(semaphore: &FairSemaphore) -> bool {
        let State { held, waiting, .. } = &mut *semaphore.state();
        held.all == 0 && held.by.is_empty() && waiting.pop(|_| true, |_| true).is_none()
    }

    #[test]
    fn one_holder_leaves_a_quarter_to_others() {
        let semaphore = FairSemaphore::of(256);
        let hog = all_of(&semaphore, &from("192.0.2.1"));
        assert_eq!(hog.len(), 192);
        assert!(semaphore.try_acquire(from("192.0.2.2")).is_some());
    }

    #[test]
    fn each_holder_gets_a_share_of_what_is_left() {
        let semaphore = FairSemaphore::of(256);
        let _hog = all_of(&semaphore, &from("192.0.2.1"));
        let others: Vec<_> = (2..=30)
            .map(|n| all_of(&semaphore, &from(&format!("192.0.2.{n}"))))
            .collect();
        let counts: Vec<_> = others.iter().map(Vec::len).collect();
        assert_eq!(counts[..16], [4; 16]);
        assert_eq!(counts[16..], [0; 13], "there are no more places");
    }

    #[test]
    fn released_permits_are_reused_and_holders_without_any_are_forgotten() {
        let semaphore = FairSemaphore::of(4);
        let (one, other) = (from("192.0.2.1"), from("192.0.2.2"));
        let held = all_of(&semaphore, &one);
        assert_eq!(held.len(), 3);
        let last = semaphore.try_acquire(other.clone());
        assert!(last.is_some() && semaphore.try_acquire(from("192.0.2.3")).is_none());
        drop(held);
        assert_eq!(all_of(&semaphore, &other).len(), 2, "with the one it has, three");
        drop(last);
        assert!(is_empty(&semaphore));
    }

    #[test]
    fn several_permits_are_acquired_together_or_not_at_all() {
        let semaphore = FairSemaphore::of(256);
        let mut hog = semaphore.empty_permit(from("192.0.2.1"));
        assert!(hog.try_grow(190) && !hog.try_grow(3) && hog.try_grow(2));
        let mut other = semaphore.empty_permit(from("192.0.2.2"));
        assert!(!other.try_grow(5), "more than a share of the last quarter");
        assert!(other.try_grow(4) && !other.try_grow(1));
        drop(hog);
        assert!(other.try_grow(188));
        drop(other);
        assert!(is_empty(&semaphore));
    }

    #[test]
    fn a_single_permit_goes_to_the_first_holder() {
        let semaphore = FairSemaphore::of(1);
        let permit = semaphore.try_acquire(from("192.0.2.1"));
        assert!(permit.is_some() && semaphore.try_acquire(from("192.0.2.2")).is_none());
    }

    #[test]
    fn a_client_is_its_name_or_its_address_with_ipv6_cut_to_64_bits() {
        let web = Caller::parse("web").unwrap();
        let (here, there) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        assert_eq!(ClientKey::of(Some(&web), here), ClientKey::of(Some(&web), there));
        assert_ne!(ClientKey::of(None, here), ClientKey::of(None, there));
        assert_eq!(from("2001:db8:0:1::1"), from("2001:db8:0:1:ffff::2"));
        assert_ne!(from("2001:db8:0:1::1"), from("2001:db8:0:2::1"));
        assert_eq!(from("::ffff:192.0.2.1"), from("192.0.2.1"));
        assert_eq!(ClientKey::of(None, None), ClientKey::Unknown);
    }

    #[test]
    fn asking_for_more_than_all_permits_acquires_all() {
        let semaphore = FairSemaphore::with_share(8, 8);
        let all = semaphore.try_acquire_many(from("192.0.2.1"), 100).unwrap();
        assert!(semaphore.try_acquire_many(from("192.0.2.2"), 100).is_none());
        drop(all);
        assert!(semaphore.try_acquire_many(from("192.0.2.2"), 8).is_some());
    }

    #[test]
    fn a_permit_that_cannot_grow_is_unchanged() {
        let semaphore = FairSemaphore::with_share(8, 8);
        let mut permit = semaphore.empty_permit(from("192.0.2.1"));
        assert!(permit.try_resize(6) && !permit.try_resize(9));
        assert_eq!(semaphore.held_by(permit.client()), 6);
        assert!(permit.try_resize(2) && permit.try_resize(0));
        assert!(is_empty(&semaphore));
    }

    #[tokio::test]
    async fn waiting_holders_get_permits_round_robin() {
        let semaphore = FairSemaphore::of(4);
        let (greedy, modest) = (from("192.0.2.1"), from("192.0.2.2"));
        let mut held = all_of(&semaphore, &greedy);
        held.extend(semaphore.try_acquire(from("192.0.2.3")));
        assert_eq!(held.len(), 4);
        let mut waiting: Vec<_> = [&greedy, &greedy, &modest, &modest]
            .map(|client| Box::pin(semaphore.acquire(client.clone())))
            .into();
        for waiter in &mut waiting {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        // The first permit released is in the last quarter: not for a client that holds two.
        drop(held.pop());
        let first = waiting.remove(2).now_or_never().expect("the modest one's turn");
        // The following ones go round the clients in turn, and within a client to the first in its queue.
        drop(held.pop());
        assert!(waiting[0].as_mut().now_or_never().is_none());
        drop(held.pop());
        let second = waiting.remove(0).now_or_never().expect("the greedy one's turn");
        assert!(waiting[0].as_mut().now_or_never().is_none());
        drop((first, second, held, waiting));
        assert!(is_empty(&semaphore));
    }

    #[tokio::test]
    async fn a_cancelled_wait_takes_no_permit() {
        let semaphore = FairSemaphore::of(1);
        let permit = semaphore.try_acquire(from("192.0.2.1")).unwrap();
        let mut gone = Box::pin(semaphore.acquire(from("192.0.2.2")));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut granted = Box::pin(semaphore.acquire(from("192.0.2.2")));
        assert!(granted.as_mut().now_or_never().is_none());
        drop(gone);
        drop(permit);
        assert_eq!(
            semaphore.held_by(&from("192.0.2.2")),
            1,
            "it is his, whether he has looked or not"
        );
        drop(granted);
        assert!(is_empty(&semaphore));
    }
}
