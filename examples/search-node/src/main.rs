//! `search-node index` and `search-node serve`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write, sink},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use emend_client::{
    Clock as _, Entropy, FeedbackClient, InstallationId, Lifecycle, Namespace, Subscriber, SystemClock,
};
use search_node::{
    backend::Backend,
    corpus,
    index::{Counts, SearchIndex},
    serve::{Addresses, serve},
};
use tracing_subscriber::EnvFilter;

/// How long open requests may take at the end.
const GRACE: Duration = Duration::from_secs(5);

/// A search backend that learns from its users.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write what has changed in the corpus into the index
    Index(IndexArguments),
    /// Search, as a service and as a page
    Serve(ServeArguments),
}

#[derive(Debug, clap::Args)]
struct IndexArguments {
    /// The directory of the corpus, whose .jsonl files are read
    #[arg(long, value_name = "DIR", default_value = "examples/search-node/corpus")]
    corpus: PathBuf,
    /// The directory of the index
    #[arg(long, value_name = "DIR", default_value = "target/search-node/index")]
    index: PathBuf,
    /// A file to which a line is added for each record, saying what became of it
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct ServeArguments {
    /// Where feedback-svc is, to which searches are recorded
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7401")]
    feedback: String,
    /// Where learning-svc is
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7402")]
    learning: String,
    /// The search application
    #[arg(long, value_name = "NAME", default_value = "cards")]
    namespace: String,
    /// This node's id
    #[arg(long, value_name = "ID", default_value = "search-node-1")]
    node: String,
    /// Where to keep a copy of what was learned
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Id of an installation to accept instead of the one that the copy is of
    #[arg(long, value_name = "ID", value_parser = |id: &str| InstallationId::parse(id).map_err(|invalid| invalid.to_string()))]
    accept_installation: Option<InstallationId>,
    /// The directory of the index
    #[arg(long, value_name = "DIR", default_value = "target/search-node/index")]
    index: PathBuf,
    /// The directory of the corpus, written into the index first; empty: searched as the index is
    #[arg(long, value_name = "DIR", default_value = "examples/search-node/corpus")]
    corpus: PathBuf,
    /// Where to serve the service
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7421")]
    grpc: SocketAddr,
    /// Where to serve the page
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7422")]
    http: SocketAddr,
    /// Where feedback-svc takes ratings over HTTP, as http://HOST:PORT; without it the page has no thumbs
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    ratings: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().command {
        Command::Index(arguments) => {
            let summary = update(&arguments)?;
            print(&summary, arguments.dry_run);
            Ok(())
        }
        Command::Serve(arguments) => run(&arguments).await,
    }
}

fn update(arguments: &IndexArguments) -> Result<BTreeMap<String, Counts>> {
    let records = corpus::read(&arguments.corpus)?;
    let index = SearchIndex::open(&arguments.index)?;
    let mut audit: Box<dyn Write> = match &arguments.audit {
        Some(path) => {
            let file = File::options().append(true).create(true).open(path);
            Box::new(BufWriter::new(file.with_context(|| path.display().to_string())?))
        }
        None => Box::new(sink()),
    };
    let summary = index.update(&records, arguments.dry_run, SystemClock.now(), &mut audit)?;
    audit.flush()?;
    Ok(summary)
}

fn print(summary: &BTreeMap<String, Counts>, is_dry_run: bool) {
    let upserted = if is_dry_run { "TO UPSERT" } else { "UPSERTED" };
    println!(
        "{:<12} {upserted:>9} {:>9} {:>9} {:>9}",
        "NAMESPACE", "UNCHANGED", "EMPTY", "REMOVED"
    );
    for (namespace, counts) in summary {
        println!(
            "{namespace:<12} {:>9} {:>9} {:>9} {:>9}",
            counts.upserted, counts.unchanged, counts.empty, counts.removed
        );
    }
}

async fn run(arguments: &ServeArguments) -> Result<()> {
    let namespace = Namespace::parse(&arguments.namespace).context("--namespace")?;
    let index = SearchIndex::open(&arguments.index)?;
    if arguments.corpus != Path::new("") {
        let records = corpus::read(&arguments.corpus)?;
        index.update(&records, false, SystemClock.now(), &mut sink())?;
    }
    let lifecycle = Lifecycle::new();
    let mut subscriber = Subscriber::builder(format!("http://{}", arguments.learning), &arguments.node)
        .version(env!("CARGO_PKG_VERSION"))
        .namespace(namespace.to_string())
        .include_user_scoped(true);
    if let Some(file) = &arguments.state {
        subscriber = subscriber.copy(file);
    }
    if let Some(installation) = arguments.accept_installation {
        subscriber = subscriber.accept_installation(installation);
    }
    let node = subscriber.spawn(&lifecycle).await?;
    let feedback = FeedbackClient::new(format!("http://{}", arguments.feedback))?;
    let recorder = feedback.recorder(&namespace, &lifecycle);
    let backend = Backend::new(index, node.view().clone(), namespace, Entropy::system()).recording(recorder);
    let at = Addresses {
        grpc: arguments.grpc,
        http: arguments.http,
    };
    let at = serve(Arc::new(backend), at, &arguments.ratings, &lifecycle).await?;
    println!(
        "search-node: http://{} (page), {} (SearchService)",
        at.http, at.grpc
    );
    tokio::select! {
        () = lifecycle.soft().cancelled() => {}
        signal = tokio::signal::ctrl_c() => signal?,
    }
    lifecycle.shutdown(GRACE).await;
    Ok(())
}
