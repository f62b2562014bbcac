//! Semantic Scholar's Academic Graph API. Which citations are influential is known from here only.

use emend_base::http_client::{Client, ErrorKind, ServiceError};
use emend_core::evidence::WorkId;
use serde::Deserialize;

use super::{
    encoded, encoded_path,
    paper::{Paper, Related, in_one_line, published_at},
    sources::{Source, Wanted, titled},
};

/// What is asked of a paper.
const FIELDS: &str = "title,abstract,externalIds,publicationVenue,openAccessPdf";

/// Semantic Scholar.
#[derive(Debug)]
pub struct SemanticScholar<'a>(pub Client<'a>);

/// A paper as it is sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    paper_id: Option<String>,
    title: Option<String>,
    r#abstract: Option<String>,
    external_ids: Option<ExternalIds>,
    publication_venue: Option<Place>,
    open_access_pdf: Option<Place>,
}

/// A journal, or a copy.
#[derive(Debug, Deserialize)]
struct Place {
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExternalIds {
    #[serde(rename = "DOI")]
    doi: Option<String>,
    pub_med: Option<String>,
    #[serde(rename = "ArXiv")]
    arxiv: Option<String>,
}

/// A list; papers whose citations a publisher withholds have none.
#[derive(Debug, Deserialize)]
struct Listed<T> {
    data: Option<Vec<Option<T>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Citation {
    #[serde(default)]
    is_influential: Option<bool>,
    #[serde(alias = "citedPaper", alias = "citingPaper")]
    paper: Option<Sent>,
}

impl Source for SemanticScholar<'_> {
    type Found = Sent;

    async fn find(&self, wanted: &Wanted) -> Result<Sent, ServiceError> {
        let found: Sent = match wanted {
            Wanted::Id(id) => {
                let id = match id {
                    WorkId::Doi(doi) => format!("DOI:{doi}"),
                    WorkId::Pmid(number) => format!("PMID:{number}"),
                    WorkId::Arxiv(id) => format!("ARXIV:{id}"),
                };
                let id = encoded_path(&id);
                self.0
                    .get(&format!("/graph/v1/paper/{id}?fields={FIELDS}"))
                    .await
                    .map_err(|failure| known(failure, "knows no paper with this id"))?
            }
            Wanted::Title(title) => {
                let path = format!(
                    "/graph/v1/paper/search/match?query={}&fields={FIELDS}",
                    encoded(title)
                );
                let answer: Result<Listed<Sent>, _> = self.0.get(&path).await;
                let found = answer.map_err(|failure| known(failure, "knows no paper with this title"))?;
                titled(
                    &self.0,
                    title,
                    found.data.into_iter().flatten().flatten(),
                    |paper| paper.title.as_deref().unwrap_or_default(),
                )?
            }
        };
        match found.paper_id {
            Some(_) => Ok(found),
            None => Err(self.0.error(ErrorKind::Never, "gave the paper no id")),
        }
    }

    fn paper(found: &Sent) -> Paper {
        found.paper()
    }

    async fn references(&self, paper: &Sent, count: usize) -> Result<Vec<Related>, ServiceError> {
        self.list(paper, "references", count, false).await
    }

    async fn cited_by(&self, paper: &Sent, count: usize) -> Result<Vec<Related>, ServiceError> {
        self.list(paper, "citations", count, true).await
    }
}

impl SemanticScholar<'_> {
    async fn list(
        &self,
        paper: &Sent,
        which: &str,
        count: usize,
        cites_the_paper: bool,
    ) -> Result<Vec<Related>, ServiceError> {
        let id = encoded(paper.paper_id.as_deref().unwrap_or_default());
        let path = format!("/graph/v1/paper/{id}/{which}?fields={FIELDS},isInfluential&limit={count}");
        let listed: Listed<Citation> = self.0.get(&path).await?;
        let citations = listed.data.into_iter().flatten().flatten().take(count);
        Ok(citations
            .filter_map(|citation| {
                let paper = citation.paper.filter(|paper| paper.paper_id.is_some())?;
                Some(Related {
                    paper: paper.paper(),
                    is_influential: citation.is_influential.unwrap_or(false),
                    cites_the_paper,
                })
            })
            .collect())
    }
}

impl Sent {
    fn paper(&self) -> Paper {
        let mut ids = Vec::new();
        if let Some(sent) = &self.external_ids {
            ids.extend(sent.doi.as_deref().and_then(|doi| WorkId::doi(doi).ok()));
            ids.extend(sent.pub_med.as_deref().and_then(|pmid| WorkId::pmid(pmid).ok()));
            ids.extend(sent.arxiv.as_deref().and_then(|id| WorkId::arxiv(id).ok()));
        }
        let place = |place: &'_ Option<Place>| place.as_ref().and_then(|place| place.url.clone());
        let places = [place(&self.publication_venue), place(&self.open_access_pdf)];
        let id = in_one_line(self.paper_id.as_deref().unwrap_or_default());
        Paper {
            ids,
            url: format!("https://www.semanticscholar.org/paper/{}", encoded(&id)),
            domain: published_at(places.iter().map(Option::as_deref)),
            source_id: format!("semanticscholar:{id}"),
            title: in_one_line(self.title.as_deref().unwrap_or_default()),
            summary: in_one_line(self.r#abstract.as_deref().unwrap_or_default()),
        }
    }
}

/// A failure whose reason is that there is no such paper says so.
fn known(failure: ServiceError, what: &str) -> ServiceError {
    match failure.kind {
        ErrorKind::NotFound => ServiceError {
            message: what.to_owned(),
            ..failure
        },
        ErrorKind::Later | ErrorKind::Refused(_) | ErrorKind::Misplaced | ErrorKind::Never => failure,
    }
}
