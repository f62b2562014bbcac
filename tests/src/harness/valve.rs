//! A TCP forwarder that can hold back what the server sends: to the server it looks like a client that reads its socket
//! slowly or not at all, however much its libraries would read ahead.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

/// How the server's output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// As it arrives.
    Free,
    /// One byte, then a pause of this length.
    Trickle(Duration),
    /// Not at all.
    Shut,
}

/// Forwards TCP connections to one address. Dropping it closes them.
#[derive(Debug)]
pub struct Valve {
    address: SocketAddr,
    flow: watch::Sender<Flow>,
    _accepting: AbortOnDropHandle<()>,
}

impl Valve {
    /// Opens a new address on the loopback that forwards to `target`.
    ///
    /// # Panics
    /// If the system has no free port.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (flow, flows) = watch::channel(Flow::Free);
        Self {
            address,
            flow,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(listener, target, flows))),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on all connections are read this way.
    pub fn turn(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, flows: watch::Receiver<Flow>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                connections.spawn(forward(client, target, flows.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn forward(client: TcpStream, target: SocketAddr, flows: watch::Receiver<Flow>) -> io::Result<()> {
    let server = TcpStream::connect(target).await?;
    for side in [&client, &server] {
        side.set_nodelay(true)?;
    }
    let (mut client_read, client_write) = client.into_split();
    let (server_read, mut server_write) = server.into_split();
    tokio::select! {
        sent = copy(&mut client_read, &mut server_write) => sent.map(|_| ()),
        read = read_back(server_read, client_write, flows) => read,
    }
}

async fn read_back(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut flows: watch::Receiver<Flow>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let flow = *flows.borrow_and_update();
        let read = match flow {
            Flow::Shut => {
                if flows.changed().await.is_err() {
                    return Ok(());
                }
                continue;
            }
            Flow::Trickle(pause) => {
                tokio::select! {
                    _ = flows.changed() => continue,
                    () = sleep(pause) => {}
                }
                from.read(&mut buffer[..1]).await?
            }
            Flow::Free => tokio::select! {
                biased;
                _ = flows.changed() => continue,
                read = from.read(&mut buffer) => read?,
            },
        };
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}
