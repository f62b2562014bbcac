//! Who calls, and who may do what.
//!
//! [`AuthLayer`] identifies the caller from the request's credentials ([`authorization`]), using the principals that the
//! [`Authenticator`] knows from a file ([`config`]), and refuses callers without the role that the method requires
//! ([`Rule`]). Handlers check namespaces: each begins with [`open`], or asks [`Access`] for each item.
//! docs/security.md explains all this to operators.

mod access;
mod addressed;
pub mod args;
mod authenticator;
pub mod authorization;
mod config;
mod directory;
mod jwt;
mod layer;
mod principal;
mod role;
mod rules;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;

pub(crate) use self::rules::Rules;
pub use self::{
    access::{Access, Call, open},
    addressed::{Addresses, Namespaces},
    authenticator::Authenticator,
    config::ConfigError,
    layer::{AuthLayer, Authenticated, Gate, GateLayer},
    principal::{Grant, Principal, Reach},
    role::Role,
    rules::{Reaches, Rule, rule},
    token::{TokenHash, mint},
};
