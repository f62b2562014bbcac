//! What the tests stand on: services and the sockets in front of them, typed clients, subscribers, and waiting for
//! conditions.

pub mod clients;
pub mod console;
pub mod deployment;
pub mod dice;
pub mod edge;
pub mod held;
pub mod http;
pub mod installations;
pub mod load;
pub mod node;
pub mod otlp;
pub mod process;
pub mod prometheus;
pub mod refusing;
pub mod rpc;
pub mod says;
pub mod start;
pub mod stored;
pub mod subscriber;
pub mod system;
pub mod tamper;
pub mod valve;
pub mod wait;
pub mod wary;
pub mod waterfall;

pub use crate::faults::proxy::{self as gateway, Gateway};
pub use clients::{Feedback, Learning, as_stored};
pub use dice::Dice;
pub use held::{Held, Key};
pub use rpc::{answered, refused};
pub use says::{NAMESPACE, alias, phrase, prohibit, says, verb};
pub use stored::Stored;
pub use subscriber::{StreamEvent, Subscriber};
pub use system::{Database, System};
pub use valve::{Flow, Valve};
pub use wait::{eventually, within};

/// Stamps each test on both databases, with a system of one replica of each service. Without a PostgreSQL server, that
/// half is skipped with one line of output. After the test the system must shut down gracefully.
#[macro_export]
macro_rules! both_databases {
    ($( $(#[$meta:meta])* async fn $name:ident($system:ident) $body:block )+) => { $(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn check($system: &mut $crate::harness::System) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let mut system = $crate::harness::System::sqlite().await;
                check(&mut system).await;
                system.stop().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(mut system) = $crate::harness::System::postgres(1, 1).await {
                    check(&mut system).await;
                    system.stop().await;
                }
            }
        }
    )+ };
}

/// Like [`both_databases!`], on PostgreSQL only, with the given numbers of replicas of feedback-svc and of
/// learning-svc.
#[macro_export]
macro_rules! replicated {
    ($( $(#[$meta:meta])* async fn $name:ident($system:ident: $feedback:literal x $learning:literal) $body:block )+) => { $(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn check($system: &mut $crate::harness::System) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(mut system) = $crate::harness::System::postgres($feedback, $learning).await {
                    check(&mut system).await;
                    system.stop().await;
                }
            }
        }
    )+ };
}
