//! The network between any two parties, good or bad: an address that stays while what is behind it comes and goes, and
//! that does to the bytes what it is told to ([`fault`]). TCP itself neither repeats nor reorders; what can be repeated and
//! reordered are messages, on the way of a batch over several connections ([`scrambler`]).
//!
//! Adding a fault: a variant of [`Fault`], and what it does in [`pump`].

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

/// Forwards TCP connections. Closes with its value.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    road: watch::Sender<Road>,
    /// How many connections there have been.
    accepted: Arc<AtomicU64>,
    harmed: Arc<AtomicUsize>,
    _accepting: AbortOnDropHandle<()>,
}

/// Where connections go, and how.
#[derive(Debug, Clone, PartialEq)]
struct Road {
    target: Option<SocketAddr>,
    /// Grows with each change of the target; connections of another number end.
    number: u64,
    held: bool,
    /// Connections of a lower number lead nowhere any more, and nobody is told.
    forsaken: u64,
    conditions: Conditions,
}

impl Gateway {
    /// A new address on the loopback. It leads nowhere yet: connections end at once.
    ///
    /// # Panics
    /// If the system has no port.
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

    /// A new address that leads there.
    pub async fn to(target: SocketAddr) -> Self {
        let gateway = Self::open().await;
        gateway.lead_to(target);
        gateway
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections go there; those that led elsewhere end.
    pub fn lead_to(&self, target: SocketAddr) {
        self.turn(Some(target));
    }

    /// From now on new connections go there; those that led elsewhere go on, as behind a balancer.
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

    /// Holds all traffic back, without ending a connection, until [`Gateway::release`]: stops reading. Nothing is lost.
    pub fn hold(&self) {
        self.road.send_modify(|road| road.held = true);
    }

    /// Lets go of what was held back.
    pub fn release(&self) {
        self.road.send_modify(|road| road.held = false);
    }

    /// From now on all of these are done to all connections, in a way that the seed decides. They take the place of what
    /// was done before.
    pub fn suffer(&self, faults: impl IntoIterator<Item = Fault>, seed: u64) {
        self.road
            .send_modify(|road| road.conditions = road.conditions.change(faults, seed));
    }

    /// From now on nothing is done to connections. Those that lost something stay as they are: mute.
    pub fn heal(&self) {
        self.suffer([], 0);
    }

    /// From now on all connections that there are swallow what is said, either way, and never end; new ones are not
    /// harmed. So it is after a host died without a word and another took its address over.
    pub fn forsake(&self) {
        let accepted = self.accepted.load(Ordering::SeqCst);
        self.road.send_modify(|road| road.forsaken = accepted);
    }

    /// To how many connections something was done so far that they can't get over.
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

/// Ends, and with it the connection, when both sides have, something breaks it, or the road is another.
async fn forward(client: TcpStream, line: Line) {
    let mut roads = line.roads();
    let road = roads.borrow().clone();
    let Some(target) = road.target else { return };
    let other_road = async {
        // An error: the gateway is gone, and so is this.
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
            // Without it small messages would wait for each other; then delays would not be the services'.
            let _ = side.set_nodelay(true);
        }
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        let there = pump::pump(client_read, server_write, &line, Direction::There);
        let back = pump::pump(server_read, client_write, &line, Direction::Back);
        // Whatever breaks one way ends both.
        let _ = tokio::try_join!(there, back);
    };
    tokio::select! {
        () = forwarding => {}
        () = other_road => {}
    }
}
