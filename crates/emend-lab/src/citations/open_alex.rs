//! OpenAlex's API of works.

use emend_base::http_client::{Client, ErrorKind, ServiceError};
use std::collections::BTreeMap;

use emend_core::evidence::WorkId;
use serde::Deserialize;

use super::{
    encoded, encoded_path,
    paper::{Paper, Related, in_one_line, published_at},
    sources::{Source, Wanted, titled},
};

/// What is asked of a work that is related.
const FIELDS: &str = "id,title,ids,abstract_inverted_index,primary_location";
/// The work that OpenAlex puts in the place of those that it deletes.
const DELETED: &str = "W4285719527";
/// Results of a search by title that are looked through.
const FOUND: usize = 5;

/// OpenAlex.
#[derive(Debug)]
pub struct OpenAlex<'a>(pub Client<'a>);

/// A work as it is sent.
#[derive(Debug, Deserialize)]
pub struct Work {
    id: Option<String>,
    title: Option<String>,
    ids: Option<Ids>,
    /// Each word of the abstract, with where it stands.
    abstract_inverted_index: Option<BTreeMap<String, Option<Vec<u64>>>>,
    referenced_works: Option<Vec<Option<String>>>,
    primary_location: Option<Location>,
}

/// Where a work is published.
#[derive(Debug, Deserialize)]
struct Location {
    landing_page_url: Option<String>,
    source: Option<Journal>,
}

/// A journal or an archive.
#[derive(Debug, Deserialize)]
struct Journal {
    homepage_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Ids {
    doi: Option<String>,
    pmid: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Works {
    results: Option<Vec<Option<Work>>>,
}

impl Works {
    fn each(self) -> impl Iterator<Item = Work> {
        self.results.into_iter().flatten().flatten()
    }
}

impl Source for OpenAlex<'_> {
    type Found = Work;

    async fn find(&self, wanted: &Wanted) -> Result<Work, ServiceError> {
        let fields = format!("{FIELDS},referenced_works");
        match wanted {
            Wanted::Id(id) => {
                let id = match id {
                    WorkId::Doi(doi) => format!("doi:{doi}"),
                    WorkId::Pmid(number) => format!("pmid:{number}"),
                    WorkId::Arxiv(id) => format!("doi:10.48550/arxiv.{id}"),
                };
                let path = format!("/works/{}?select={fields}", encoded_path(&id));
                self.0
                    .get(&path)
                    .await
                    .map_err(|failure: ServiceError| match failure.kind {
                        ErrorKind::NotFound => {
                            self.0.error(ErrorKind::NotFound, "knows no paper with this id")
                        }
                        ErrorKind::Later
                        | ErrorKind::Refused(_)
                        | ErrorKind::Misplaced
                        | ErrorKind::Never => failure,
                    })
            }
            Wanted::Title(title) => {
                let search = encoded(title);
                let path = format!("/works?search={search}&per_page={FOUND}&select={fields}");
                let found: Works = self.0.get(&path).await?;
                titled(&self.0, title, found.each(), |work| {
                    work.title.as_deref().unwrap_or_default()
                })
            }
        }
    }

    fn paper(found: &Work) -> Paper {
        found.paper()
    }

    async fn references(&self, work: &Work, count: usize) -> Result<Vec<Related>, ServiceError> {
        let wanted: Vec<&str> = work
            .referenced_works
            .iter()
            .flatten()
            .flatten()
            .filter_map(|id| number(id))
            .filter(|id| *id != DELETED)
            .take(count)
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let filter = format!("openalex:{}", wanted.join("|"));
        let mut works = self.list(&filter, wanted.len()).await?;
        // They are sent in an order of their own.
        works.sort_by_key(|work| wanted.iter().position(|id| work.number() == Some(*id)));
        Ok(related(&works, false))
    }

    async fn cited_by(&self, work: &Work, count: usize) -> Result<Vec<Related>, ServiceError> {
        let Some(id) = work.number() else {
            return Err(self.0.error(ErrorKind::Never, "gave the paper no id"));
        };
        let works = self.list(&format!("cites:{id}"), count).await?;
        Ok(related(&works, true))
    }
}

impl OpenAlex<'_> {
    async fn list(&self, filter: &str, count: usize) -> Result<Vec<Work>, ServiceError> {
        let filter = encoded_path(filter);
        let path = format!("/works?filter={filter}&per_page={count}&select={FIELDS}");
        let works: Works = self.0.get(&path).await?;
        Ok(works.each().take(count).collect())
    }
}

fn related(works: &[Work], cites_the_paper: bool) -> Vec<Related> {
    works
        .iter()
        .filter(|work| work.number().is_some() && !work.is_deleted())
        .map(|work| Related {
            paper: work.paper(),
            is_influential: false,
            cites_the_paper,
        })
        .collect()
}

/// `W123` of `https://openalex.org/W123`.
fn number(id: &str) -> Option<&str> {
    let number = id.rsplit('/').next()?;
    let digits = number.strip_prefix('W')?;
    (!digits.is_empty() && digits.len() < 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(number)
}

impl Work {
    fn number(&self) -> Option<&str> {
        number(self.id.as_deref()?)
    }

    /// Whether it stands for what OpenAlex has deleted, in the place of many works.
    fn is_deleted(&self) -> bool {
        let title = self.title.as_deref().unwrap_or_default();
        self.number() == Some(DELETED) || title.trim().eq_ignore_ascii_case("deleted work")
    }

    fn paper(&self) -> Paper {
        let number = self.number().unwrap_or_default();
        let mut ids = Vec::new();
        if let Some(sent) = &self.ids {
            ids.extend(sent.doi.as_deref().and_then(|doi| WorkId::doi(doi).ok()));
            ids.extend(sent.pmid.as_deref().and_then(|pmid| WorkId::pmid(pmid).ok()));
        }
        let location = self.primary_location.as_ref();
        let journal = location.and_then(|location| location.source.as_ref());
        let domain = published_at([
            location.and_then(|location| location.landing_page_url.as_deref()),
            journal.and_then(|journal| journal.homepage_url.as_deref()),
        ]);
        Paper {
            ids,
            source_id: format!("openalex:{number}"),
            url: format!("https://openalex.org/{number}"),
            domain,
            title: in_one_line(self.title.as_deref().unwrap_or_default()),
            summary: self
                .abstract_inverted_index
                .as_ref()
                .map(text_of)
                .unwrap_or_default(),
        }
    }
}

/// The text of which each word is given with where it stands.
fn text_of(index: &BTreeMap<String, Option<Vec<u64>>>) -> String {
    let mut words: Vec<(u64, &str)> = index
        .iter()
        .flat_map(|(word, places)| places.iter().flatten().map(move |place| (*place, word.as_str())))
        .collect();
    words.sort_unstable();
    let words: Vec<&str> = words.into_iter().map(|(_, word)| word).collect();
    in_one_line(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abstract_is_read_in_the_order_of_its_words() {
        let index = r#"{"theory": [2, 18446744073709551615], "A": [0], "new": [1], "lost": null}"#;
        assert_eq!(
            text_of(&serde_json::from_str(index).unwrap()),
            "A new theory theory"
        );
    }

    #[test]
    fn only_the_number_of_a_work_is_taken() {
        assert_eq!(number("https://openalex.org/W12"), Some("W12"));
        for bad in ["https://openalex.org/A12", "W", "W1|W2", ""] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
