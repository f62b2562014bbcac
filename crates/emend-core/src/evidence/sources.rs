//! Which sources are independent of each other.
//!
//! A work that has an id is one source wherever it is published: pages that share an id are one work, also by way of others
//! ([`joined`](super::joined)). Hosts at ACADEMIC and above publish the works of many, so
//! that each page is a source of its own. What else a registrable domain publishes is one source: five pages of one blog are
//! one, two papers in arXiv are two. A page without a host is a source of its own.

use std::fmt;

use super::{TrustLevel, WorkId, registrable_domain};

/// An independent source. Its text is stable, and different for different sources. A work is named by its least id, or by what
/// else is the same for all of its pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKey<W = WorkId> {
    /// A work.
    Work(W),
    /// A page, by its id.
    Page(String),
    /// A registrable domain.
    Domain(String),
}

impl<W> SourceKey<W> {
    /// The source of a page: its id, the work that it publishes if that has an id, its host in the form of
    /// [`host`](super::host), empty if it has none, and how far that is trusted without the verified layer, which depends on
    /// independent sources.
    pub fn of(page: &str, work: Option<W>, host: &str, level: TrustLevel) -> Self {
        match work {
            Some(work) => Self::Work(work),
            None if host.is_empty() || level.pages_are_sources() => Self::Page(page.to_owned()),
            None => Self::Domain(registrable_domain(host).to_owned()),
        }
    }
}

impl<W: fmt::Display> fmt::Display for SourceKey<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(work) => write!(f, "work:{work}"),
            Self::Page(page) => write!(f, "page:{page}"),
            Self::Domain(domain) => write!(f, "domain:{domain}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{
        super::joined,
        TrustLevel::{Academic, Blocked, Government, Low, Primary, Trusted, Unverified},
        *,
    };

    fn count(pages: &[(&str, &[&str], &str, TrustLevel)]) -> usize {
        let works = joined(
            pages
                .iter()
                .map(|(_, ids, ..)| ids.iter().map(|id| WorkId::parse(id).unwrap())),
        );
        let sources: Vec<_> = pages
            .iter()
            .zip(works)
            .map(|((page, ids, host, level), work)| {
                SourceKey::of(page, (!ids.is_empty()).then_some(work), host, *level)
            })
            .collect();
        sources.iter().collect::<HashSet<_>>().len()
    }

    #[test]
    fn pages_of_one_blog_are_one_source_and_papers_are_each_their_own() {
        let blog = ["p1", "p2", "p3", "p4", "p5"].map(|page| (page, &[][..], "www.blog.example", Unverified));
        assert_eq!(count(&blog), 1);
        let papers = [
            ("p1", &["arxiv:2101.00001"][..], "arxiv.org", Academic),
            ("p2", &["arxiv:2101.00002"], "arxiv.org", Academic),
        ];
        assert_eq!(count(&papers), 2);
    }

    #[test]
    fn pages_without_a_host_are_each_their_own() {
        let pages = [("p1", &[][..], "", Unverified), ("p2", &[], "", Unverified)];
        assert_eq!(count(&pages), 2);
    }

    #[test]
    fn one_work_is_one_source_wherever_it_is() {
        let copies = [
            ("p1", &["doi:10.1000/x"][..], "publisher.example", Academic),
            (
                "p2",
                &["arxiv:2101.00001", "doi:10.1000/X"],
                "arxiv.org",
                Academic,
            ),
            ("p3", &["doi:10.1000/x"], "blog.example", Unverified),
        ];
        assert_eq!(count(&copies), 1);
    }

    #[test]
    fn a_preprint_and_its_article_are_one_source_as_soon_as_a_third_page_has_both_ids() {
        let mut pages = vec![
            ("p1", &["arxiv:2101.00001"][..], "arxiv.org", Academic),
            ("p2", &["doi:10.1000/x"], "publisher.example", Academic),
        ];
        assert_eq!(count(&pages), 2);
        pages.push((
            "p3",
            &["doi:10.1000/x", "arxiv:2101.00001"],
            "index.example",
            Unverified,
        ));
        assert_eq!(count(&pages), 1);
    }

    #[test]
    fn without_a_work_the_level_says_whether_pages_count_apart() {
        for level in [Primary, Government, Academic, Trusted, Low, Unverified, Blocked] {
            let pages = [
                ("p1", &[][..], "a.example.org", level),
                ("p2", &[], "b.example.org", level),
            ];
            let expected = if level.weight() >= Academic.weight() { 2 } else { 1 };
            assert_eq!(count(&pages), expected, "{level}");
        }
    }
}
