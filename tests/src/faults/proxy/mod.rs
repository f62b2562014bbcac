//! The network between any two parties, good or bad: an address that stays while what is behind it comes and goes, and
//! that subjects the bytes to the faults it is told to ([`fault`]). TCP itself neither repeats nor reorders; but
//! messages can be repeated and reordered, when a batch travels over several connections ([`scrambler`]).
//!
//! To add a fault: a variant of [`Fault`], and its effect in [`pump`].

pub mod fault;
mod pump;
pub mod scrambler;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use self::{
    fault::Conditions,
    pump::{Direction, Line},
};
pub use self::{fault::Fault, scrambler::Scrambler};

/// Forwards TCP connections. Dropping it closes them.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    road: watch::Sender<Road>,
    /// How many connections it has accepted so far.
    accepted: Arc<AtomicU64>,
    harmed: Arc<AtomicUsize>,
    _accepting: AbortOnDropHandle<()>,
}

/// Where connections go, and under which conditions.
#[derive(Debug, Clone, PartialEq)]
struct Road {
    target: Option<SocketAddr>,
    /// Incremented when the target changes; connections with another number end.
    number: u64,
    held: bool,
    /// Connections numbered below this silently lead nowhere.
    forsaken: u64,
    conditions: Conditions,
}

impl Gateway {
    /// A new address on the loopback. It leads nowhere yet: connections end immediately.
    ///
    /// # Panics
    /// If the system has no free port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (road, roads) = watch::channel(Road {
            target: None,
            number: 0,
            held: false,
            forsaken: 0,
            conditions: Conditions::default(),
        });
        let accepted = Arc::new(AtomicU64::new(0));
        let harmed = Arc::new(AtomicUsize::new(0));
        let accepting = accept(listener, roads, Arc::clone(&accepted), Arc::clone(&harmed));
        Self {
            address,
            road,
            accepted,
            harmed,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accepting)),
        }
    }

    /// A new address that leads to `target`.
    pub async fn to(target: SocketAddr) -> Self {
        let gateway = Self::open().await;
        gateway.lead_to(target);
        gateway
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections go to `target`; those that led elsewhere end.
    pub fn lead_to(&self, target: SocketAddr) {
        self.turn(Some(target));
    }

    /// From now on new connections go to `target`; existing ones continue, as behind a load balancer.
    pub fn prefer(&self, target: SocketAddr) {
        self.road.send_modify(|road| road.target = Some(target));
    }

    /// From now on nothing can be reached; all connections end.
    pub fn close(&self) {
        self.turn(None);
    }

    fn turn(&self, target: Option<SocketAddr>) {
        self.road.send_modify(|road| {
            road.target = target;
            road.number += 1;
        });
    }

    /// Stops reading, which holds all traffic back until [`Gateway::release`]. No connection ends and nothing is lost.
    pub fn hold(&self) {
        self.road.send_modify(|road| road.held = true);
    }

    /// Lets held traffic pass.
    pub fn release(&self) {
        self.road.send_modify(|road| road.held = false);
    }

    /// From now on all connections suffer all of these faults, with the chances decided by the seed. They replace the
    /// faults so far.
    pub fn suffer(&self, faults: impl IntoIterator<Item = Fault>, seed: u64) {
        self.road
            .send_modify(|road| road.conditions = road.conditions.change(faults, seed));
    }

    /// From now on connections suffer nothing. Those that lost something stay mute.
    pub fn heal(&self) {
        self.suffer([], 0);
    }

    /// From now on all existing connections swallow whatever is sent, in both directions, and never end; new ones are
    /// unharmed. This is what happens when a host dies silently and another takes over its address.
    pub fn forsake(&self) {
        let accepted = self.accepted.load(Ordering::SeqCst);
        self.road.send_modify(|road| road.forsaken = accepted);
    }

    /// The number of connections so far that suffered something they can't recover from.
    pub fn harmed(&self) -> usize {
        self.harmed.load(Ordering::SeqCst)
    }
}

async fn accept(
    listener: TcpListener,
    roads: watch::Receiver<Road>,
    accepted: Arc<AtomicU64>,
    harmed: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            client = listener.accept() => if let Ok((client, _)) = client {
                let line = Line::new(accepted.fetch_add(1, Ordering::SeqCst), roads.clone(), Arc::clone(&harmed));
                connections.spawn(forward(client, line));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards one connection until both sides have ended it, an error breaks it, or the road's number changes.
async fn forward(client: TcpStream, line: Line) {
    let mut roads = line.roads();
    let road = roads.borrow().clone();
    let Some(target) = road.target else { return };
    let other_road = async {
        // An error means that the gateway is dropped, so this ends too.
        let _ = roads.wait_for(|now| now.number != road.number).await;
    };
    let forwarding = async {
        if line.is_swallowed_at_once() {
            let (client_read, _client_write) = client.into_split();
            pump::swallow(client_read).await;
            return;
        }
        let Ok(server) = TcpStream::connect(target).await else {
            return;
        };
        for side in [&client, &server] {
            // Otherwise small messages wait for each other, and the delays are not the services' own.
            let _ = side.set_nodelay(true);
        }
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        let there = pump::pump(client_read, server_write, &line, Direction::There);
        let back = pump::pump(server_read, client_write, &line, Direction::Back);
        // An error in one direction ends both.
        let _ = tokio::try_join!(there, back);
    };
    tokio::select! {
        () = forwarding => {}
        () = other_road => {}
    }
}
