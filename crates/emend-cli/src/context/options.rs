//! The options that every command accepts.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use emend_base::{config::FromVariables, telemetry::LogArgs};

use crate::words;

/// Options accepted before and after every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// feedback-svc's address, or those of several replicas, separated by commas; for `up` the one to listen on
    /// [default: 127.0.0.1:7401]
    #[arg(long, global = true, env = "EMEND_FEEDBACK_ADDR", value_name = "HOST:PORT")]
    pub feedback_addr: Option<String>,
    /// learning-svc's address, or those of several replicas, separated by commas; for `up` the one to listen on
    /// [default: 127.0.0.1:7402]
    #[arg(long, global = true, env = "EMEND_LEARNING_ADDR", value_name = "HOST:PORT")]
    pub learning_addr: Option<String>,
    /// CA certificates (PEM) to verify the services with; addresses without http:// then use TLS
    #[arg(long, global = true, env = "EMEND_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Client certificate (PEM); addresses without http:// then use TLS
    #[arg(long, global = true, env = "EMEND_CLIENT_CERT", value_name = "FILE")]
    pub client_cert: Option<PathBuf>,
    /// Private key (PEM) of the client certificate
    #[arg(long, global = true, env = "EMEND_CLIENT_KEY", value_name = "FILE")]
    pub client_key: Option<PathBuf>,
    /// The search application [default: default]
    #[arg(long, short, global = true, env = "EMEND_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,
    /// File with the bearer token that authenticates you to the services
    #[arg(long, global = true, env = "EMEND_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print JSON: one line for each result
    #[arg(long, global = true)]
    pub json: bool,
    /// How long a call may take: a number and ms, s, m or h [default: 30s; what a language model may be asked for waits as long as
    /// the service does]
    #[arg(
        long, global = true, env = "EMEND_TIMEOUT", value_name = "SPAN",
        value_parser = words::duration
    )]
    pub timeout: Option<Duration>,
    /// The log on standard error.
    #[command(flatten)]
    pub log: LogArgs,
    /// Which of all options environment variables give.
    #[arg(skip)]
    pub from_variables: FromVariables,
}
