//! `search-node index` and `search-node serve`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, IsTerminal as _, Write, sink, stderr},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use emend_base::http_client::model::{Endpoint, Parameters, bearer, bearer_from_file};
use emend_client::{
    Clock as _, Entropy, FeedbackClient, InstallationId, Lifecycle, Namespace, Subscriber, SystemClock,
};
use http::Uri;
#[cfg(feature = "lindera")]
use search_node::words::Words;
use search_node::{
    backend::Backend,
    corpus,
    embedding::{Embedded, RecordEmbedder, http::Model},
    index::SearchIndex,
    serve::{Addresses, serve},
    update::Counts,
};
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

/// How long open requests may take at the end.
const GRACE: Duration = Duration::from_secs(5);
/// How long the embedding server may take for the vectors of a batch of records, and how often it is asked for them.
const BATCH_TIMEOUT: Duration = Duration::from_mins(1);
const BATCH_ATTEMPTS: u32 = 3;
/// Where the embedding server's key is, if it is in no file.
const KEY: &str = "EMBEDDING_KEY";

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
    #[command(flatten)]
    words: WordArguments,
    #[command(flatten)]
    embedding: EmbeddingArguments,
}

#[derive(Debug, clap::Args)]
struct WordArguments {
    /// The directory of a dictionary of Japanese that lindera reads, by which texts are cut; without it by ICU's
    #[cfg(feature = "lindera")]
    #[arg(long, value_name = "DIR")]
    dictionary: Option<PathBuf>,
}

impl WordArguments {
    /// The index, of these words.
    #[cfg_attr(
        not(feature = "lindera"),
        expect(clippy::unused_self, reason = "there is no other dictionary")
    )]
    fn open(&self, index: &Path) -> Result<SearchIndex> {
        #[cfg(feature = "lindera")]
        if let Some(dictionary) = &self.dictionary {
            return SearchIndex::open_with(index, Words::by_dictionary(dictionary)?);
        }
        SearchIndex::open(index)
    }
}

#[derive(Debug, clap::Args)]
struct EmbeddingArguments {
    /// Below which address an OpenAI-compatible server has /embeddings; without it only words are searched
    #[arg(long = "embedding-url", value_name = "URL", requires = "model")]
    url: Option<Uri>,
    /// The model that makes the vectors
    #[arg(long = "embedding-model", value_name = "NAME", requires = "url")]
    model: Option<String>,
    /// What its vectors are called; another name has all records embedded again [default: the model's]
    #[arg(long = "embedding-version", value_name = "NAME", requires = "url")]
    version: Option<String>,
    /// A file with the server's key; without it the environment variable `EMBEDDING_KEY` may have it
    #[arg(long = "embedding-key-file", value_name = "FILE", requires = "url")]
    key_file: Option<PathBuf>,
    /// How long a search waits for its vector, in milliseconds
    #[arg(long = "embedding-timeout", value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout: u64,
}

impl EmbeddingArguments {
    /// The model; `None` if vectors are not wanted.
    fn endpoint(&self, timeout: Duration, attempts: u32) -> Result<Option<Model>> {
        let (Some(url), Some(model)) = (&self.url, &self.model) else {
            return Ok(None);
        };
        let key = match (&self.key_file, std::env::var(KEY)) {
            (Some(file), _) => Some(bearer_from_file("the embedding server", file)?),
            (None, Ok(key)) => Some(bearer(&key).context(KEY)?),
            (None, Err(_)) => None,
        };
        let endpoint = Endpoint {
            url: url.clone(),
            model: model.clone(),
            key,
            timeout,
            attempts,
            parameters: Parameters::default(),
        };
        let clock = Arc::new(SystemClock::shared());
        let version = self.version.as_ref().unwrap_or(model);
        Model::new(&endpoint, version, clock, Entropy::system()).map(Some)
    }

    /// The model for vectors of records; a batch may take long.
    fn for_records(&self) -> Result<Option<Model>> {
        self.endpoint(BATCH_TIMEOUT, BATCH_ATTEMPTS)
    }

    /// The model for the vectors of queries, which are waited for.
    fn for_queries(&self) -> Result<Option<Model>> {
        self.endpoint(Duration::from_millis(self.timeout), 1)
    }
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
    #[command(flatten)]
    words: WordArguments,
    #[command(flatten)]
    embedding: EmbeddingArguments,
}

#[tokio::main]
async fn main() -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        // A log in a file is read without a terminal.
        .with_ansi(stderr().is_terminal())
        .init();
    match Arguments::parse().command {
        Command::Index(arguments) => index(&arguments).await,
        Command::Serve(arguments) => run(&arguments).await,
    }
}

async fn index(arguments: &IndexArguments) -> Result<()> {
    let records = corpus::read(&arguments.corpus)?;
    let index = arguments.words.open(&arguments.index)?;
    let mut audit: Box<dyn Write> = match &arguments.audit {
        Some(path) => {
            let file = File::options().append(true).create(true).open(path);
            Box::new(BufWriter::new(file.with_context(|| path.display().to_string())?))
        }
        None => Box::new(sink()),
    };
    let model = arguments.embedding.for_records()?;
    // A dry run makes no vectors.
    let embedded = match &model {
        Some(model) if arguments.dry_run => Some(Embedded::none(model)),
        Some(model) => Some(Embedded::of_changed(&index, &records, model).await?),
        None => None,
    };
    let now = SystemClock.now();
    let summary = index.update(&records, embedded.as_ref(), arguments.dry_run, now, &mut audit)?;
    audit.flush()?;
    print(&summary, arguments.dry_run);
    match embedded.and_then(|embedded| embedded.failure) {
        Some(failure) => {
            let count: usize = summary.values().map(|counts| counts.not_embedded).sum();
            bail!(
                "{count} records have no vector and are found by words alone; the next run tries again: {failure:#}"
            )
        }
        None => Ok(()),
    }
}

fn print(summary: &BTreeMap<String, Counts>, is_dry_run: bool) {
    let [upserted, embedded] = if is_dry_run {
        ["TO UPSERT", "TO EMBED"]
    } else {
        ["UPSERTED", "EMBEDDED"]
    };
    println!(
        "{:<12} {upserted:>9} {:>9} {:>9} {:>9} {embedded:>9}",
        "NAMESPACE", "UNCHANGED", "EMPTY", "REMOVED"
    );
    for (namespace, counts) in summary {
        println!(
            "{namespace:<12} {:>9} {:>9} {:>9} {:>9} {:>9}",
            counts.upserted, counts.unchanged, counts.empty, counts.removed, counts.embedded
        );
    }
}

async fn run(arguments: &ServeArguments) -> Result<()> {
    let namespace = Namespace::parse(&arguments.namespace).context("--namespace")?;
    let lifecycle = Lifecycle::new();
    let index = Arc::new(arguments.words.open(&arguments.index)?);
    if arguments.corpus != Path::new("") {
        let records = corpus::read(&arguments.corpus)?;
        index.update(&records, None, false, SystemClock.now(), &mut sink())?;
        // Searches do not wait for it: words are searched meanwhile.
        if let Some(model) = arguments.embedding.for_records()? {
            let worker = RecordEmbedder::new(Arc::clone(&index), Box::new(model));
            let stop = lifecycle.soft().clone();
            lifecycle.spawn("embed records", worker.run(stop.cancelled_owned()));
        }
    }
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
    let mut backend =
        Backend::new(index, node.view().clone(), namespace, Entropy::system()).recording(recorder);
    if let Some(model) = arguments.embedding.for_queries()? {
        backend = backend.embedding(Box::new(model));
    }
    let at = Addresses {
        grpc: arguments.grpc,
        http: arguments.http,
    };
    let at = serve(Arc::new(backend), at, &arguments.ratings, &lifecycle).await?;
    println!(
        "search-node: http://{} (page), {} (SearchService)",
        at.http, at.grpc
    );
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = lifecycle.soft().cancelled() => {}
        signal = ctrl_c() => signal?,
        _ = terminate.recv() => {}
    }
    lifecycle.shutdown(GRACE).await;
    Ok(())
}
