//! What a work is known by, whoever publishes it: its DOI, PMID or arXiv id, each in one form for all its spellings.

use std::fmt;

use crate::violation::{Invalid, bounded_text};

/// Maximum length of an id as written, in characters.
const MAX_CHARS: usize = 512;

/// What comes before the DOI of each paper in arXiv, which is the paper's arXiv id written otherwise.
const DOI_OF_ARXIV: &str = "10.48550/arxiv.";

/// An id of a work. Its text is `doi:10.1000/x`, `pmid:123` or `arxiv:2101.00001`.
///
/// The order of the types is that of preference: of several ids of one work the least is its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkId {
    /// A DOI in lower case: DOIs do not distinguish it (ISO 26324).
    Doi(String),
    /// A number in `PubMed`.
    Pmid(u64),
    /// An arXiv id without its version: `2101.00001`, or `hep-th/9901001` as before April 2007.
    Arxiv(String),
}

impl WorkId {
    /// Parses a DOI, alone, after `doi:` or as the address that resolves it. The DOI of a paper in arXiv is its arXiv id.
    pub fn doi(raw: &str) -> Result<Self, Invalid> {
        let text = in_lower_case(raw)?;
        let doi = after(&text, &["doi.org/", "dx.doi.org/", "www.doi.org/"], "doi:");
        let is_doi = doi.split_once('/').is_some_and(|(prefix, suffix)| {
            let registrant = prefix.strip_prefix("10.").unwrap_or_default();
            !suffix.is_empty()
                && registrant.split('.').all(is_number)
                && registrant.split('.').next().is_some_and(|first| first.len() >= 4)
                && !doi.contains(char::is_whitespace)
        });
        match doi.strip_prefix(DOI_OF_ARXIV) {
            _ if !is_doi => Err(Invalid::new(format!(
                "must be a DOI, as 10.1000/182 or https://doi.org/10.1000/182, is {raw:?}"
            ))),
            Some(of_arxiv) => Self::arxiv(of_arxiv),
            None => Ok(Self::Doi(doi.to_owned())),
        }
    }

    /// Parses a PMID, alone, after `pmid:` or as its address in `PubMed`.
    pub fn pmid(raw: &str) -> Result<Self, Invalid> {
        let text = in_lower_case(raw)?;
        let pmid = after(
            &text,
            &["pubmed.ncbi.nlm.nih.gov/", "www.ncbi.nlm.nih.gov/pubmed/"],
            "pmid:",
        );
        let digits = pmid.trim_end_matches('/');
        match digits.parse() {
            Ok(number @ 1..=9_999_999_999) if is_number(digits) => Ok(Self::Pmid(number)),
            _ => Err(Invalid::new(format!(
                "must be a PMID, a number of 1 to 10 digits, is {raw:?}"
            ))),
        }
    }

    /// Parses an arXiv id, alone, after `arxiv:` or as the address of its abstract or PDF. Versions of a paper are one
    /// work, and the subject class of an old id does not matter.
    pub fn arxiv(raw: &str) -> Result<Self, Invalid> {
        let text = in_lower_case(raw)?;
        let addresses = ["abs", "pdf", "html"].map(|form| format!("arxiv.org/{form}/"));
        let addresses = addresses.each_ref().map(String::as_str);
        let id = after(&text, &addresses, "arxiv:");
        let id = id.strip_suffix(".pdf").unwrap_or(id);
        let id = match id.rsplit_once('v') {
            Some((id, version)) if is_number(version) => id,
            _ => id,
        };
        let is_number_of = |part: &str, lengths: &[usize]| is_number(part) && lengths.contains(&part.len());
        if let Some((archive, number)) = id.split_once('/') {
            let archive = archive.split('.').next().unwrap_or_default();
            let is_archive =
                |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
            if is_number_of(number, &[7]) && archive.split('-').all(is_archive) {
                return Ok(Self::Arxiv(format!("{archive}/{number}")));
            }
        } else if let Some((month, number)) = id.split_once('.')
            && is_number_of(month, &[4])
            && is_number_of(number, &[4, 5])
        {
            return Ok(Self::Arxiv(id.to_owned()));
        }
        Err(Invalid::new(format!(
            "must be an arXiv id, as 2101.00001 or hep-th/9901001, is {raw:?}"
        )))
    }

    /// Parses an id that says what it is: its text, or an address.
    pub fn parse(raw: &str) -> Result<Self, Invalid> {
        let text = in_lower_case(raw)?;
        let mentions = |word: &str| {
            text.starts_with(&format!("{word}:"))
                || address(&text).is_some_and(|address| address.contains(word))
        };
        if mentions("doi") {
            Self::doi(raw)
        } else if mentions("arxiv") {
            Self::arxiv(raw)
        } else if mentions("pmid") || mentions("pubmed") {
            Self::pmid(raw)
        } else {
            Err(Invalid::new(format!(
                "must be a DOI, PMID or arXiv id, as doi:10.1000/182, pmid:123 or arxiv:2101.00001, is {raw:?}"
            )))
        }
    }
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Doi(doi) => write!(f, "doi:{doi}"),
            Self::Pmid(number) => write!(f, "pmid:{number}"),
            Self::Arxiv(id) => write!(f, "arxiv:{id}"),
        }
    }
}

/// The part of a host, in the form of [`host`](super::host), that somebody registered: `example.co.jp` of
/// `www.example.co.jp`. A host without one, such as `co.jp` or `intranet`, stands for itself.
pub fn registrable_domain(host: &str) -> &str {
    psl::domain_str(host).unwrap_or(host)
}

/// Domains that lead to what others published: resolvers of ids, and indexes of papers.
const LEADING_ELSEWHERE: [&str; 10] = [
    "core.ac.uk",
    "crossref.org",
    "datacite.org",
    "doi.org",
    "handle.net",
    "openalex.org",
    "pubmed.ncbi.nlm.nih.gov",
    "scholar.google.com",
    "semanticscholar.org",
    "unpaywall.org",
];

/// Whether a host, in the form of [`host`](super::host), only leads to what others published, as `doi.org` and its subdomains do.
/// It is the source of nothing: what speaks against one paper there would speak against all publishers.
pub fn leads_elsewhere(host: &str) -> bool {
    let is_at_or_below = |domain: &&str| {
        let before = host.strip_suffix(*domain);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    LEADING_ELSEWHERE.iter().any(is_at_or_below)
}

fn in_lower_case(raw: &str) -> Result<String, Invalid> {
    bounded_text(raw, 1, MAX_CHARS).map(|text| text.to_ascii_lowercase())
}

/// What follows one of the addresses, or the word before a bare id.
fn after<'t>(text: &'t str, addresses: &[&str], word: &str) -> &'t str {
    if let Some(address) = address(text) {
        let mut known = addresses.iter().filter_map(|known| address.strip_prefix(known));
        return known.next().unwrap_or(text);
    }
    text.strip_prefix(word).unwrap_or(text).trim_start()
}

fn address(text: &str) -> Option<&str> {
    text.strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn resolvers_and_indexes_of_papers_are_the_source_of_nothing() {
        for host in [
            "doi.org",
            "dx.doi.org",
            "api.openalex.org",
            "pubmed.ncbi.nlm.nih.gov",
        ] {
            assert!(leads_elsewhere(host), "{host}");
        }
        for host in [
            "arxiv.org",
            "notdoi.org",
            "www.ncbi.nlm.nih.gov",
            "doi.org.example",
            "",
        ] {
            assert!(!leads_elsewhere(host), "{host}");
        }
    }

    #[test]
    fn spellings_of_one_work_have_one_text() {
        for (raw, expected) in [
            ("doi:10.1000/X", "doi:10.1000/x"),
            ("DOI: 10.1000/x ", "doi:10.1000/x"),
            ("https://doi.org/10.1000/X", "doi:10.1000/x"),
            ("http://dx.doi.org/10.1000.10/a/b", "doi:10.1000.10/a/b"),
            ("https://doi.org/10.48550/arXiv.2101.00001", "arxiv:2101.00001"),
            ("pmid:00123", "pmid:123"),
            ("https://pubmed.ncbi.nlm.nih.gov/123/", "pmid:123"),
            ("arXiv:2101.00001v3", "arxiv:2101.00001"),
            ("https://arxiv.org/abs/2101.00001v12", "arxiv:2101.00001"),
            ("https://arxiv.org/pdf/0704.0001v1.pdf", "arxiv:0704.0001"),
            ("arxiv:hep-th/9901001v2", "arxiv:hep-th/9901001"),
            ("https://arxiv.org/abs/math.GT/0309136", "arxiv:math/0309136"),
        ] {
            assert_eq!(
                WorkId::parse(raw).map(|id| id.to_string()),
                Ok(expected.to_owned()),
                "{raw}"
            );
        }
        assert_eq!(WorkId::doi("10.1000/X"), WorkId::parse("doi:10.1000/x"));
        assert_eq!(WorkId::arxiv("2101.00001v2"), WorkId::parse("arxiv:2101.00001"));
        assert_eq!(WorkId::pmid("7"), Ok(WorkId::Pmid(7)));
    }

    #[test]
    fn what_is_no_id_is_refused_and_told_what_is() {
        for raw in [
            "",
            "10.1000/x",
            "doi:",
            "doi:10.1000",
            "doi:10.1000/",
            "doi:11.1000/x",
            "doi:10.1/x",
            "doi:10.1000/a b",
            "https://example.org/10.1000/x",
            "pmid:0",
            "pmid:-1",
            "pmid:+1",
            "pmid:12345678901",
            "arxiv:2101.001",
            "arxiv:21.00001",
            "arxiv:hep-th/99010",
            "arxiv:hep_th/9901001",
            "arxiv:v2",
        ] {
            assert!(WorkId::parse(raw).is_err(), "{raw:?}");
        }
        let refused = WorkId::parse("doi:x").unwrap_err();
        assert!(refused.0.contains("10.1000/182"), "{refused}");
    }

    #[test]
    fn the_registrable_domain_is_below_a_public_or_private_suffix() {
        for (host, expected) in [
            ("www.example.org", "example.org"),
            ("a.b.example.co.jp", "example.co.jp"),
            ("x.jane.github.io", "jane.github.io"),
            ("github.io", "github.io"),
            ("co.jp", "co.jp"),
            ("intranet", "intranet"),
        ] {
            assert_eq!(registrable_domain(host), expected, "{host}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_an_id_is_read_as_that_id(
            raw in "(doi:10\\.[0-9]{4,6}/\\PC{1,9}|pmid:[0-9]{1,12}|arxiv:([0-9]{4}\\.[0-9]{4,5}|[a-z-]{2,7}/[0-9]{7})(v[0-9])?)",
        ) {
            if let Ok(id) = WorkId::parse(&raw) {
                prop_assert_eq!(WorkId::parse(&id.to_string()), Ok(id));
            }
        }
    }
}
