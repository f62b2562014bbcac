//! Papers as the sources know them, and what they become.

use emend_core::evidence::{EvidenceId, WorkId, host, leads_elsewhere};
use emend_proto::learning::v1 as pb;
use http::Uri;

use super::encoded_path;

/// Characters of a title at most, as learning-svc takes it.
const MAX_TITLE_CHARS: usize = 1_024;
/// Characters of an abstract at most, as learning-svc takes it.
const MAX_ABSTRACT_CHARS: usize = 32_768;

/// A paper.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paper {
    /// What it is known by everywhere.
    pub ids: Vec<WorkId>,
    /// What it is known by in its source, for example `openalex:W1`.
    pub source_id: String,
    /// Where its source shows it.
    pub url: String,
    /// The domain of its journal's or archive's page; empty if that is not known.
    pub domain: String,
    /// Its title; may be empty.
    pub title: String,
    /// Its abstract; empty if the source has none.
    pub summary: String,
}

/// A paper related to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// The paper.
    pub paper: Paper,
    /// Whether the citation is an influential one.
    pub is_influential: bool,
    /// Whether it cites the other; otherwise the other cites it.
    pub cites_the_paper: bool,
}

impl Paper {
    /// Its title and its abstract: what it is compared by.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.title, self.summary).trim().to_owned()
    }

    /// Whether it is known by an id that the other one is known by.
    pub fn is(&self, other: &Self) -> bool {
        self.source_id == other.source_id || self.ids.iter().any(|id| other.ids.contains(id))
    }

    /// Its page. The id and the address are made of the work's preferred id, so that they are the same whatever source it is from.
    pub fn page(&self) -> pb::EvidencePage {
        let preferred = self
            .ids
            .iter()
            .min()
            .filter(|id| EvidenceId::parse(&id.to_string()).is_ok());
        let (page_id, url) = match preferred {
            Some(id) => (id.to_string(), address(id)),
            None => (self.source_id.clone(), self.url.clone()),
        };
        let mut page = pb::EvidencePage {
            page_id,
            domain: self.domain.clone(),
            url,
            title: self.title.chars().take(MAX_TITLE_CHARS).collect(),
            ..pb::EvidencePage::default()
        };
        for id in &self.ids {
            match id {
                WorkId::Doi(doi) => page.doi.clone_from(doi),
                WorkId::Pmid(pmid) => page.pmid = pmid.to_string(),
                WorkId::Arxiv(arxiv) => page.arxiv_id.clone_from(arxiv),
            }
        }
        page
    }
}

impl Paper {
    /// Ids under which its page may be there already: those of its works and of its source.
    fn other_page_ids(&self) -> Vec<String> {
        let page_id = self.page().page_id;
        let ids = self.ids.iter().map(WorkId::to_string);
        let ids = ids.chain([self.source_id.clone()]);
        ids.filter(|id| *id != page_id && EvidenceId::parse(id).is_ok())
            .collect()
    }
}

/// The domain of the first of these addresses that is where something was published, and does not only lead there; empty if none is.
pub fn published_at<'a>(addresses: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let hosts = addresses.into_iter().flatten().filter_map(|address| {
        let address: Uri = address.trim().parse().ok()?;
        let host = host(address.host()?).ok()?.to_string();
        (!leads_elsewhere(&host)).then_some(host)
    });
    hosts.into_iter().next().unwrap_or_default()
}

impl Related {
    /// As it is sent, with what it scores.
    pub fn message(&self, similarity: f64, relevance: f64) -> pb::RelatedPaper {
        pb::RelatedPaper {
            page: Some(self.paper.page()),
            r#abstract: self.paper.summary.chars().take(MAX_ABSTRACT_CHARS).collect(),
            is_influential: self.is_influential,
            similarity,
            relevance,
            cites_the_paper: self.cites_the_paper,
            other_page_ids: self.paper.other_page_ids(),
        }
    }
}

/// Where a work is shown.
fn address(id: &WorkId) -> String {
    match id {
        WorkId::Doi(doi) => format!("https://doi.org/{}", encoded_path(doi)),
        WorkId::Pmid(number) => format!("https://pubmed.ncbi.nlm.nih.gov/{number}/"),
        WorkId::Arxiv(id) => format!("https://arxiv.org/abs/{id}"),
    }
}

/// A text in one line, without what can't be shown.
pub fn in_one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_alike_whatever_source_its_paper_is_from() {
        let doi = WorkId::doi("10.1000/A<1>").unwrap();
        let paper = |ids: &[WorkId], source: &str| Paper {
            ids: ids.to_vec(),
            source_id: source.into(),
            url: "https://openalex.org/W1".into(),
            ..Paper::default()
        };
        let one = paper(&[WorkId::Pmid(7), doi.clone()], "semanticscholar:1").page();
        let other = paper(&[doi], "openalex:W1").page();
        assert_eq!((&one.page_id, &one.url), (&other.page_id, &other.url));
        assert_eq!((one.doi.as_str(), one.pmid.as_str()), ("10.1000/a<1>", "7"));
        assert_eq!(one.url, "https://doi.org/10.1000/a%3C1%3E");
        let long = WorkId::doi(&format!("10.1000/{}", "x".repeat(300))).unwrap();
        let unnamed = paper(&[long], "openalex:W1").page();
        assert_eq!(
            (unnamed.page_id.as_str(), unnamed.url.as_str()),
            ("openalex:W1", "https://openalex.org/W1")
        );
    }

    #[test]
    fn a_papers_domain_is_where_it_was_published_and_never_what_leads_there() {
        for (addresses, domain) in [
            (
                &["https://doi.org/10.1000/1", "https://www.Journal.example/1"][..],
                "www.journal.example",
            ),
            (
                &[
                    "http://dx.doi.org/10.1000/1",
                    "https://pubmed.ncbi.nlm.nih.gov/1/",
                ],
                "",
            ),
            (&["https://arxiv.org/abs/2101.00001"], "arxiv.org"),
            (&["https://192.0.2.1/x", "no address", ""], ""),
            (&[], ""),
        ] {
            let addresses = addresses.iter().map(|address| Some(*address));
            assert_eq!(published_at(addresses.chain([None])), domain);
        }
        let doi = WorkId::doi("10.1000/1").unwrap();
        let related = Related {
            paper: Paper {
                ids: vec![doi],
                source_id: "openalex:W1".into(),
                summary: "x".repeat(40_000),
                ..Paper::default()
            },
            is_influential: false,
            cites_the_paper: false,
        };
        let message = related.message(0.0, 0.0);
        assert_eq!(message.page.unwrap().domain, "");
        assert_eq!(message.other_page_ids, ["openalex:W1"]);
        assert_eq!(message.r#abstract.len(), MAX_ABSTRACT_CHARS);
    }

    #[test]
    fn a_text_is_brought_into_one_line() {
        assert_eq!(in_one_line(" On \u{7}a\n\tnew  theory "), "On a new theory");
    }
}
