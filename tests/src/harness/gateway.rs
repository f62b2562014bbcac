//! An address that stays while what is behind it comes and goes: where services and databases are reached in tests that
//! restart them, take them away, or hold back their traffic.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

/// Forwards TCP connections. Closes with its value.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    road: watch::Sender<Road>,
    _accepting: AbortOnDropHandle<()>,
}

/// Where connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Road {
    target: Option<SocketAddr>,
    /// Grows with each change of the target; connections of another number end.
    number: u64,
    held: bool,
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
        });
        Self {
            address,
            road,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(listener, roads))),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections go there; those that led elsewhere end.
    pub fn lead_to(&self, target: SocketAddr) {
        self.turn(Some(target));
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

    /// Holds all traffic back, without ending a connection, until [`Gateway::release`].
    pub fn hold(&self) {
        self.road.send_modify(|road| road.held = true);
    }

    /// Lets go of what was held back.
    pub fn release(&self) {
        self.road.send_modify(|road| road.held = false);
    }
}

async fn accept(listener: TcpListener, roads: watch::Receiver<Road>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                connections.spawn(forward(client, roads.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Ends, and with it the connection, when either side does or the road is another.
async fn forward(client: TcpStream, mut roads: watch::Receiver<Road>) {
    let road = *roads.borrow();
    let Some(target) = road.target else { return };
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    for side in [&client, &server] {
        // Without it small messages would wait for each other; then delays would not be the services'.
        let _ = side.set_nodelay(true);
    }
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let there = pump(client_read, server_write, roads.clone());
    let back = pump(server_read, client_write, roads.clone());
    tokio::select! {
        _ = async { tokio::join!(there, back) } => {}
        _ = roads.wait_for(|now| now.number != road.number) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut roads: watch::Receiver<Road>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if roads.wait_for(|road| !road.held).await.is_err() {
            return Ok(());
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}
