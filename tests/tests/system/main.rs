//! All of Emend over the wire, on both databases. It is one test binary, so that it is linked once.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

/// Metrics that only services with TLS show; `manifests/secured.rs` and `security/certificates.rs` check them.
const ONLY_WITH_TLS: [&str; 4] = [
    "emend_certificate_not_before_timestamp_seconds",
    "emend_certificate_not_after_timestamp_seconds",
    "emend_client_certificate_not_before_timestamp_seconds",
    "emend_client_certificate_not_after_timestamp_seconds",
];

mod addresses;
mod alerts;
mod assistants;
mod backup;
mod claims;
mod concurrency;
mod console;
mod documents;
mod domains;
mod edge;
mod epoch;
mod erasure;
mod evidence;
mod examples;
mod feedback;
mod few_shot;
mod filters;
mod health;
mod import;
mod installation;
mod intent;
mod lagging;
mod large;
mod ledger;
mod lists;
mod near;
mod nodes;
mod outage;
mod policy;
mod probe;
mod profiles;
mod prompts;
mod queries;
mod random_walk;
mod real_clients;
mod replicas;
mod review;
mod search_ratings;
mod security;
mod shutdown;
mod sinks;
mod standings;
mod start;
mod story;
mod stream;
mod synonyms;
mod telemetry;
mod tuning;
mod validation;
mod widget;
