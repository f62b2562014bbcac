//! `emend evidence citations`: papers related to a paper become pages of the evidence graph.
//!
//! Everything is fetched and scored before anything is written, by one call at the end: whoever stops the command before
//! leaves nothing behind.

mod options;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use clap::{Subcommand, value_parser};
use emend_base::{
    Entropy,
    http_client::{Client, ErrorKind, Key, Limits, ServiceError, Timer},
    lifecycle::Signals,
};
use emend_core::evidence::{EvidenceId, MAX_BEST, WorkId};
use emend_lab::citations::{
    encoded,
    open_alex::OpenAlex,
    paper::{Paper, Related},
    scorer::{Lexical, Scorer, Service},
    semantic_scholar::SemanticScholar,
    sources::{Counts, Given, Wanted, ask},
};
use emend_proto::learning::v1::{RankCitationsRequest, RankCitationsResponse};
use http::Uri;
use indicatif::ProgressBar;
use serde_json::json;

use self::options::{Keys, SourceArgs, base, in_header, key};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table, on_standard_error},
};

/// The most bytes of an answer of a source.
const MAX_ANSWER: usize = 5 << 20;

/// Fetch citations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence citations run --page page:17 --doi 10.1000/182
  emend evidence citations run --page page:17 --arxiv 2101.00001 --keep 5 --task t-17
  emend evidence citations run --page page:17 --title \"On a new theory\" --task-text \"does it hold?\"
  emend evidence citations run --page page:17 --pmid 123 --scorer http://127.0.0.1:9000/scores

What the paper cites and what cites it is fetched from Semantic Scholar and OpenAlex. The papers
are ranked by 0.5 for an influential citation (as Semantic Scholar says), 0.3 of the similarity
to the paper and 0.2 of the relevance to the task. The best become pages, joined to the paper's
page by CITES edges, with their abstracts as fragments. A page that is there already under any id
of a paper is used. A paper's domain is that of its journal's or archive's page, or none; it is never
doi.org. Papers without an abstract are not ranked; they are listed. Running it again changes nothing. If one source fails, the other one counts.

Texts are compared by the words that they share, or by a service (--scorer) that is sent
{\"query\": \"…\", \"texts\": [\"…\"]} and answers {\"scores\": [0.7]}, a number from 0 to 1 for each text.

With authentication it needs the role evidence-writer.

Keys are read from --semantic-scholar-key-file and --openalex-key-file, else from the environment
variables SEMANTIC_SCHOLAR_API_KEY and OPENALEX_API_KEY.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Fetch papers that a paper cites or that cite it, and keep the best
    Run(Box<Run>),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// The paper's page in the evidence graph
    #[arg(long, value_name = "ID", value_parser = EvidenceId::parse)]
    page: EvidenceId,
    #[command(flatten)]
    paper: Which,
    /// How many of the best become pages
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = value_parser!(i32).range(1..=MAX_BEST as i64))]
    keep: i32,
    /// Of the papers that it cites take this many, the first
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = value_parser!(u16).range(0..=100))]
    references: u16,
    /// Of the papers that cite it take this many
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = value_parser!(u16).range(0..=100))]
    cited_by: u16,
    /// The research task that the edges belong to
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// What the task is about: papers are relevant to this [default: the paper's title and abstract]
    #[arg(long, value_name = "TEXT")]
    task_text: Option<String>,
    /// The service that compares texts [default: compared by their words]
    #[arg(long, value_name = "URL", value_parser = base)]
    scorer: Option<Uri>,
    #[command(flatten)]
    sources: SourceArgs,
}

/// Which paper.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The paper's DOI
    #[arg(long, value_name = "DOI", value_parser = WorkId::doi)]
    doi: Option<WorkId>,
    /// The paper's `PubMed` id
    #[arg(long, value_name = "PMID", value_parser = WorkId::pmid)]
    pmid: Option<WorkId>,
    /// The paper's arXiv id
    #[arg(long, value_name = "ID", value_parser = WorkId::arxiv)]
    arxiv: Option<WorkId>,
    /// The paper's whole title
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    title: Option<String>,
}

/// What was fetched and scored.
#[derive(Debug)]
struct Gathered {
    /// What is to be written; none if nothing is known to be related.
    request: Option<RankCitationsRequest>,
    /// What was asked for in vain.
    failures: Vec<ServiceError>,
}

/// Fetches, scores, and writes by one call.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let Action::Run(run) = args.action;
    let sources = &run.sources;
    let keys = Keys {
        semantic_scholar: key(
            sources.semantic_scholar_key_file.as_deref(),
            "SEMANTIC_SCHOLAR_API_KEY",
        )?,
        openalex: key(sources.openalex_key_file.as_deref(), "OPENALEX_API_KEY")?,
    };
    // Where nothing can be written, nothing need be fetched.
    let mut evidence = context.evidence().await?;
    let mut signals = Signals::listen()?;
    let progress = ProgressBar::new_spinner();
    let asking = Asking {
        waiting: &context.clock,
        entropy: context.entropy.clone(),
        progress: progress.clone(),
    };
    let gathered = tokio::select! {
        _ = signals.recv() => Err(Failure::failed("stopped; nothing was written")),
        gathered = gather(&run, keys, &asking) => gathered,
    };
    progress.finish_and_clear();
    let Gathered { request, failures } = gathered?;
    for failure in &failures {
        let hint = format!("emend: {failure}; going on without that");
        eprintln!("{}", on_standard_error(&hint));
    }
    let Some(mut request) = request else {
        return print(
            &RankCitationsRequest::default(),
            &RankCitationsResponse::default(),
            &failures,
            output,
        );
    };
    request.namespace = context.namespace();
    let answer = tokio::select! {
        _ = signals.recv() => return Err(Failure::failed(
            "stopped while the citations were written: all are, or none; the same command again completes it",
        )),
        answer = evidence.rank_citations(context.request(request.clone())) => answer?.into_inner(),
    };
    print(&request, &answer, &failures, output)
}

/// What asking needs.
struct Asking<'a> {
    waiting: &'a dyn Timer,
    entropy: Entropy,
    progress: ProgressBar,
}

impl<'a> Asking<'a> {
    fn client(&self, service: &'static str, base: &Uri, key: Key, limits: Limits) -> Client<'a> {
        let progress = self.progress.clone();
        Client::new(
            service,
            base.clone(),
            key,
            limits,
            Arc::new(self.waiting),
            self.entropy.clone(),
            concat!("emend-cli/", env!("CARGO_PKG_VERSION")),
        )
        .on_retry(Box::new(move |what, wait| {
            progress.set_message(format!("{what}; again in {wait:.1?}"));
        }))
    }
}

/// Fetches what is related, from both sources at once, and scores it.
async fn gather(run: &Run, keys: Keys, asking: &Asking<'_>) -> Result<Gathered> {
    let sources = &run.sources;
    let limits = Limits {
        timeout: sources.source_timeout,
        attempts: sources.attempts,
        interval: sources.rate.0,
        max_answer: MAX_ANSWER,
    };
    let scholar = SemanticScholar(asking.client(
        "Semantic Scholar",
        &sources.semantic_scholar_url,
        in_header(keys.semantic_scholar)?,
        limits,
    ));
    let key = keys
        .openalex
        .map_or(Key::None, |key| Key::Parameter("api_key", encoded(&key)));
    let open_alex = OpenAlex(asking.client("OpenAlex", &sources.openalex_url, key, limits));
    let wanted = run.paper.wanted();
    let counts = Counts {
        references: run.references.into(),
        cited_by: run.cited_by.into(),
    };
    let (one, other) = tokio::join!(ask(&scholar, &wanted, counts), ask(&open_alex, &wanted, counts));
    let limits = Limits {
        interval: Duration::ZERO,
        ..limits
    };
    let request = match &run.scorer {
        Some(url) => {
            let service = Service(asking.client("the scorer", url, Key::None, limits));
            score(run, [&one, &other], &service).await
        }
        None => score(run, [&one, &other], &Lexical).await,
    };
    let request = request.map_err(|failure| failed(&[failure]))?;
    let is_known = one.paper.is_some() || other.paper.is_some();
    let mut failures = one.failures;
    failures.extend(other.failures);
    let is_answered = is_known && failures.iter().all(|failure| failure.kind == ErrorKind::NotFound);
    if request.is_none() && !is_answered {
        return Err(failed(&failures));
    }
    Ok(Gathered { request, failures })
}

/// What is to be written, scored; none if nothing is.
async fn score(
    run: &Run,
    given: [&Given; 2],
    scorer: &impl Scorer,
) -> Result<Option<RankCitationsRequest>, ServiceError> {
    let papers: Vec<&Paper> = given.iter().filter_map(|given| given.paper.as_ref()).collect();
    let mut related: Vec<&Related> = Vec::new();
    for one in given.iter().flat_map(|given| &given.related) {
        let is_the_paper =
            papers.iter().any(|paper| one.paper.is(paper)) || one.paper.page().page_id == run.page.as_str();
        // What has an id is merged where it is ranked.
        let is_there = one.paper.ids.is_empty() && related.iter().any(|other| one.paper.is(&other.paper));
        if !is_the_paper && !is_there {
            related.push(one);
        }
    }
    if related.is_empty() {
        return Ok(None);
    }
    let texts: Vec<String> = related
        .iter()
        .filter(|one| !one.paper.summary.is_empty())
        .map(|one| one.paper.text())
        .collect();
    let described = papers.iter().find(|paper| !paper.summary.is_empty());
    let paper = described.or(papers.first()).map(|paper| paper.text());
    let (mut similarity, mut relevance) = (Vec::new(), Vec::new());
    if !texts.is_empty() {
        similarity = scorer.scores(&paper.unwrap_or_default(), &texts).await?;
        relevance = match &run.task_text {
            Some(task) => scorer.scores(task, &texts).await?,
            None => similarity.clone(),
        };
    }
    let mut found = similarity.into_iter().zip(relevance);
    let related = related
        .iter()
        .map(|one| {
            let its_own = (!one.paper.summary.is_empty()).then(|| found.next()).flatten();
            let (similarity, relevance) = its_own.unwrap_or_default();
            one.message(similarity, relevance)
        })
        .collect();
    Ok(Some(RankCitationsRequest {
        namespace: String::new(),
        page_id: run.page.to_string(),
        related,
        keep: run.keep,
        task_id: run.task.clone(),
    }))
}

/// The failure of the command where nothing is left to go on with.
fn failed(failures: &[ServiceError]) -> Failure {
    let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let text = format!("{}\n  Nothing was written.", all.join("\n  "));
    if failures.iter().any(|failure| failure.kind == ErrorKind::Later) {
        Failure::Unavailable(text)
    } else if failures.iter().all(|failure| failure.kind == ErrorKind::NotFound) {
        Failure::NotFound(text)
    } else {
        Failure::failed(text)
    }
}

fn print(
    request: &RankCitationsRequest,
    answer: &RankCitationsResponse,
    failures: &[ServiceError],
    output: &mut Output<'_>,
) -> Result {
    let title = |page_id: &str| {
        let mut pages = request.related.iter().filter_map(|related| related.page.as_ref());
        pages
            .find(|page| page.page_id == page_id)
            .map(|page| page.title.clone())
            .unwrap_or_default()
    };
    let json = json!({
        "ranked": answer.ranked.iter().map(|paper| json!({
            "pageId": paper.page_id,
            "score": paper.score,
            "edgeId": paper.edge_id,
            "fragmentId": paper.fragment_id,
            "title": title(&paper.given_page_id),
        })).collect::<Vec<_>>(),
        "toBeFetched": answer.to_be_fetched,
        "merged": answer.merged,
        "failures": failures.iter().map(|failure| json!({
            "source": failure.service,
            "description": failure.message,
        })).collect::<Vec<_>>(),
    });
    let width = output.width();
    output.result(&json, || {
        if request.related.is_empty() {
            return "No paper is known that this one cites, or that cites it.".into();
        }
        let table = Table::new([
            ("SCORE", Column::Number),
            ("PAGE", Column::Fixed),
            ("TITLE", Column::Text),
        ])
        .with_rows(&answer.ranked, |paper| {
            [
                format!("{:.3}", paper.score),
                paper.page_id.clone(),
                title(&paper.given_page_id),
            ]
        });
        let mut text = format!(
            "{}{} joined to {} by CITES edges, {} the same as others\n",
            table.render(width),
            answer.ranked.len(),
            request.page_id,
            answer.merged
        );
        if !answer.to_be_fetched.is_empty() {
            text.push_str("Without an abstract, to be fetched: ");
            text.push_str(&answer.to_be_fetched.join(" "));
        }
        text
    })
}

impl Which {
    fn wanted(&self) -> Wanted {
        let id = self.doi.as_ref().or(self.pmid.as_ref()).or(self.arxiv.as_ref());
        match id {
            Some(id) => Wanted::Id(id.clone()),
            None => Wanted::Title(self.title.clone().unwrap_or_default()),
        }
    }
}
