//! The console: a page in a browser over the public RPCs, for reviewers, operators and owners of a search.
//!
//! It has no store and no rights of its own: every call is made with the token of the person at the browser, so whatever it
//! shows or does, that person can do with `emend` and grpcurl too. Pages are rendered here, from templates checked at compile
//! time; they work without JavaScript, except for what is live.
//!
//! Each module builds only on those before it:
//! * [`config`]: its settings. [`seal`]: what leaves for browsers and must come back unread and unchanged. `assets`: scripts and
//!   styles, named by their hash.
//! * `services`: the two services, called as somebody. `failure`: why a page can't be shown. `access`: what somebody may do.
//! * `session`: who is at the browser. `guard`: what every request must fulfil, and what every answer says.
//! * `live`: what changes, once for each account and namespace, told to all its open pages.
//! * `metrics`: what is counted and measured.
//! * `text`: languages, names of kinds and statuses, times, values. `labels`: what people call the fields of forms. `typed`: numbers
//!   and times that people type. `page`: what all pages have, with `told`: what a form did, and undoing that.
//! * `pages`: the pages. `server`: how each request becomes one. `sign_in`: signing in and out. `addresses`: where each page is.

mod access;
mod addresses;
mod assets;
pub mod config;
mod failure;
mod form;
mod guard;
mod labels;
mod live;
mod metrics;
mod page;
mod pages;
mod seal;
mod server;
mod services;
mod session;
mod sign_in;
mod text;
mod told;
mod typed;

pub use self::{
    config::{ConsoleArgs, ConsoleConfig},
    metrics::ConsoleMetrics,
    server::{Console, serve},
    services::Services,
};
