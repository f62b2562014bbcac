//! Where a server listens, and the refusal to listen where strangers could connect unauthenticated.
//!
//! Without a file that says who may do what, anyone who can connect can read and write everything. So an address beyond
//! loopback is then refused unless a flag explicitly allows it.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::builder::Resettable;
use tokio::net::{TcpListener, lookup_host};

/// The flag that allows listening beyond loopback unauthenticated.
pub const ALLOW_FLAG: &str = "--allow-unauthenticated";

/// Who may connect. Flattened into the arguments of everything that listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Exposure {
    /// A file that says which caller may do what and which tokens identify callers, described in docs/security.md; read
    /// again when it changes, and without it callers are not authenticated
    #[arg(long, value_name = "FILE")]
    pub auth_config: Option<PathBuf>,
    /// Listen beyond loopback although callers are not authenticated: anyone who can connect can read and write
    /// everything
    #[arg(long)]
    pub allow_unauthenticated: bool,
    /// Do not answer server reflection, which describes the published protos to clients that do not have them and needs
    /// no authentication
    #[arg(long)]
    pub no_reflection: bool,
}

/// Where a stand-alone service listens. The program that flattens this names the default address.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = Resettable::Reset)]
pub struct ListenArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: String,
    /// Who may connect.
    #[command(flatten)]
    pub exposure: Exposure,
}

impl ListenArgs {
    /// What is wrong with these arguments, of which `flag` gives the address, as far as can be told without listening or resolving
    /// names.
    pub fn check(&self, flag: &str) -> Option<String> {
        check(&self.listen, &self.exposure).map(|error| format!("{flag}: {error}"))
    }

    /// Listens at the configured address.
    pub async fn bind(&self) -> Result<TcpListener, ListenError> {
        bind(&self.listen, &self.exposure).await
    }
}

/// An address to connect to for one that is listened on: a server that listens on all interfaces is reachable on
/// loopback.
pub fn reachable(mut listening: SocketAddr) -> SocketAddr {
    if listening.ip().is_unspecified() {
        listening.set_ip(match listening {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    listening
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Not an address.
    #[error(
        "{address:?} is not an address to listen on, expected HOST:PORT, for example 127.0.0.1:7401: {source}"
    )]
    Address {
        /// As given.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Strangers could connect.
    #[error(
        "refusing to listen on {address}: it is not a loopback address and callers are not authenticated, so anyone \
         who can connect could read and write everything; listen on 127.0.0.1, authenticate callers with \
         --auth-config, or pass {ALLOW_FLAG} to allow this"
    )]
    Exposed {
        /// The address as resolved.
        address: SocketAddr,
    },
    /// The system refused.
    #[error("can't listen on {address}: {source}")]
    Bind {
        /// As given.
        address: String,
        /// Why not.
        source: io::Error,
    },
}

/// What is wrong with listening on `address` (`HOST:PORT`), as far as can be told without listening or resolving names.
pub fn check(address: &str, exposure: &Exposure) -> Option<ListenError> {
    if let Err(source) = formed(address) {
        let address = address.to_owned();
        return Some(ListenError::Address { address, source });
    }
    let address: SocketAddr = address.parse().ok()?;
    exposed(&[address], exposure).err()
}

/// Fails unless it has the form of `HOST:PORT`; the name of a host is not resolved.
pub(crate) fn formed(address: &str) -> io::Result<()> {
    let wrong = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    match address.rsplit_once(':') {
        _ if address.parse::<SocketAddr>().is_ok() => Ok(()),
        Some((_, port)) if port.parse::<u16>().is_err() => wrong("invalid port value"),
        Some((host, _)) if !host.is_empty() && !host.contains(':') => Ok(()),
        _ => wrong("invalid socket address"),
    }
}

/// Listens on `address` (`HOST:PORT`) unless that would expose an unauthenticated service. A host name is refused if
/// any of its addresses is beyond loopback.
pub async fn bind(address: &str, exposure: &Exposure) -> Result<TcpListener, ListenError> {
    let resolved: Vec<SocketAddr> = lookup_host(address)
        .await
        .map_err(|source| ListenError::Address {
            address: address.to_owned(),
            source,
        })?
        .collect();
    exposed(&resolved, exposure)?;
    TcpListener::bind(&*resolved)
        .await
        .map_err(|source| ListenError::Bind {
            address: address.to_owned(),
            source,
        })
}

/// Fails if strangers could connect to one of the addresses and that is not allowed.
fn exposed(addresses: &[SocketAddr], exposure: &Exposure) -> Result<(), ListenError> {
    let beyond = addresses
        .iter()
        .find(|address| !address.ip().to_canonical().is_loopback());
    match beyond {
        Some(beyond) if !exposure.allow_unauthenticated && exposure.auth_config.is_none() => {
            Err(ListenError::Exposed { address: *beyond })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        listen: ListenArgs,
    }

    const OPEN: Exposure = Exposure {
        auth_config: None,
        allow_unauthenticated: true,
        no_reflection: false,
    };
    const CLOSED: Exposure = Exposure {
        auth_config: None,
        allow_unauthenticated: false,
        no_reflection: false,
    };

    #[tokio::test]
    async fn loopback_needs_no_permission() {
        for address in ["127.0.0.1:0", "localhost:0"] {
            let listener = bind(address, &CLOSED).await.unwrap();
            assert!(listener.local_addr().unwrap().ip().is_loopback());
        }
    }

    #[tokio::test]
    async fn beyond_loopback_is_refused_and_the_refusal_names_the_flag() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7401", "[::ffff:192.0.2.1]:7401"] {
            let refusal = bind(address, &CLOSED).await.unwrap_err();
            assert!(
                matches!(refusal, ListenError::Exposed { .. }),
                "{address}: {refusal}"
            );
            assert!(refusal.to_string().contains(ALLOW_FLAG));
        }
    }

    #[tokio::test]
    async fn the_flag_allows_it() {
        let program = Program::parse_from(["service", "--listen", "0.0.0.0:0", ALLOW_FLAG]);
        assert_eq!(program.listen.exposure, OPEN);
        assert!(program.listen.bind().await.is_ok());
    }

    #[tokio::test]
    async fn with_authentication_a_service_may_listen_anywhere() {
        let program = Program::parse_from(["service", "--listen", "0.0.0.0:0", "--auth-config", "auth.toml"]);
        assert!(program.listen.bind().await.is_ok());
        assert_eq!(program.listen.check("--listen"), None);
    }

    #[tokio::test]
    async fn what_has_not_the_form_of_an_address_is_refused_before_listening_as_when_listening() {
        for address in [
            "zzz",
            "7401",
            "",
            ":7401",
            "localhost:",
            "localhost:70000",
            "::1:7401:x",
        ] {
            let refused = bind(address, &CLOSED).await.map(drop);
            assert!(matches!(refused, Err(ListenError::Address { .. })), "{address}");
            let checked = ListenArgs {
                listen: address.to_owned(),
                exposure: CLOSED,
            };
            let complaint = checked.check("--listen").unwrap_or_default();
            assert!(
                complaint.starts_with("--listen: ") && complaint.contains("expected HOST:PORT"),
                "{address}: {complaint}"
            );
        }
        for address in [
            "127.0.0.1:0",
            "[::1]:7401",
            "localhost:7401",
            "emend.example:7401",
        ] {
            assert!(check(address, &CLOSED).is_none(), "{address}");
        }
    }

    #[test]
    fn a_server_that_listens_on_all_interfaces_is_reached_on_loopback() {
        let reached = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:7402"), "127.0.0.1:7402");
        assert_eq!(reached("[::]:7402"), "[::1]:7402");
        assert_eq!(reached("10.0.0.7:7402"), "10.0.0.7:7402");
    }

    #[tokio::test]
    async fn an_invalid_address_and_one_in_use_are_different_errors() {
        assert!(matches!(
            bind("7401", &CLOSED).await.unwrap_err(),
            ListenError::Address { .. }
        ));
        let taken = bind("127.0.0.1:0", &CLOSED).await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        assert!(matches!(
            bind(&address, &CLOSED).await.unwrap_err(),
            ListenError::Bind { .. }
        ));
    }
}
