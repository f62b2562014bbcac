//! Which of the papers related to one are worth reading.

use std::cmp::Reverse;

use super::{Weight, WorkId, joined};
use crate::violation::Invalid;

/// How many papers are chosen if nobody says otherwise.
pub const DEFAULT_BEST: usize = 10;

/// How many papers may be chosen at most.
pub const MAX_BEST: usize = 100;

/// A paper that another one cites, or that cites it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelatedPaper {
    /// What it is known by. Papers that share an id are one.
    pub ids: Vec<WorkId>,
    /// Whether its abstract is known. Without one nothing can be said of it.
    pub has_abstract: bool,
    /// Whether it was of influence on the other, or the other on it.
    pub is_influential: bool,
    /// How similar the abstracts are.
    pub similarity: Weight,
    /// How relevant it is for the question.
    pub relevance: Weight,
}

impl RelatedPaper {
    /// 0.5 influential + 0.3 similarity + 0.2 relevance, in ten-millionths, so that equal ones are equal.
    fn score(&self) -> u32 {
        let influence = if self.is_influential {
            Weight::ONE
        } else {
            Weight::ZERO
        };
        5 * influence.millionths() + 3 * self.similarity.millionths() + 2 * self.relevance.millionths()
    }
}

/// A paper that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPaper {
    /// The places of what was given of it, in order.
    pub places: Vec<usize>,
    /// All that it is known by, the preferred id first.
    pub ids: Vec<WorkId>,
    /// Its score, from 0 to 1.
    pub score: f64,
}

/// The papers related to one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// The best, the best first; of equal ones that which was given first.
    pub best: Vec<RankedPaper>,
    /// The places of papers without an abstract, which is to be fetched: of each paper the first.
    pub to_fetch: Vec<usize>,
    /// How many were the same as one before.
    pub merged: usize,
}

/// How many papers to choose: 1 to 100, and 10 where 0 is given.
pub fn parse_best(number: u32) -> Result<usize, Invalid> {
    match usize::try_from(number) {
        Ok(0) => Ok(DEFAULT_BEST),
        Ok(best @ 1..=MAX_BEST) => Ok(best),
        _ => Err(Invalid::new(format!(
            "must be 1 to {MAX_BEST}, or 0 for {DEFAULT_BEST}, is {number}"
        ))),
    }
}

/// Chooses the best papers. Those that share a DOI, PMID or arXiv id are one, also by way of others; such a paper has an
/// abstract and influence if one of them has, and the highest similarity and relevance of those with an abstract.
pub fn rank(papers: &[RelatedPaper], best: usize) -> Ranking {
    let mut ranking = Ranking::default();
    let mut scored = Vec::new();
    for places in groups(papers) {
        ranking.merged += places.len() - 1;
        let mut merged = RelatedPaper::default();
        for paper in places.iter().map(|place| &papers[*place]) {
            merged.ids.extend(paper.ids.iter().cloned());
            merged.is_influential |= paper.is_influential;
            if paper.has_abstract {
                merged.has_abstract = true;
                merged.similarity = merged.similarity.max(paper.similarity);
                merged.relevance = merged.relevance.max(paper.relevance);
            }
        }
        if merged.has_abstract {
            scored.push((merged.score(), places, merged.ids));
        } else {
            ranking.to_fetch.extend(places.first());
        }
    }
    scored.sort_by_key(|(score, ..)| Reverse(*score));
    scored.truncate(best);
    ranking.best = scored
        .into_iter()
        .map(|(score, places, mut ids)| {
            ids.sort_unstable();
            ids.dedup();
            RankedPaper {
                places,
                ids,
                score: f64::from(score) / 1e7,
            }
        })
        .collect();
    ranking
}

/// The places of what is one paper, in the order of their first.
fn groups(papers: &[RelatedPaper]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); papers.len()];
    for (place, first) in joined(papers.iter().map(|paper| &paper.ids))
        .into_iter()
        .enumerate()
    {
        groups[first].push(place);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paper(ids: &[&str], is_influential: bool, similarity: f64, relevance: f64) -> RelatedPaper {
        RelatedPaper {
            ids: ids.iter().map(|id| WorkId::parse(id).unwrap()).collect(),
            has_abstract: true,
            is_influential,
            similarity: Weight::parse(similarity).unwrap(),
            relevance: Weight::parse(relevance).unwrap(),
        }
    }

    fn places(ranking: &Ranking) -> Vec<&[usize]> {
        ranking.best.iter().map(|paper| &*paper.places).collect()
    }

    #[test]
    fn influence_weighs_most_and_then_similarity_and_relevance() {
        let papers = [
            paper(&[], false, 1.0, 1.0),
            paper(&[], true, 0.0, 0.1),
            paper(&[], true, 0.5, 0.5),
            paper(&[], false, 0.0, 0.0),
        ];
        let ranking = rank(&papers, DEFAULT_BEST);
        let scores: Vec<_> = ranking
            .best
            .iter()
            .map(|paper| (paper.places[0], paper.score))
            .collect();
        assert_eq!(scores, [(2, 0.75), (1, 0.52), (0, 0.5), (3, 0.0)]);
        assert_eq!(places(&rank(&papers, 1)), [&[2][..]]);
    }

    #[test]
    fn of_equal_papers_the_one_given_first_is_first() {
        // 0.3 · 0.2 and 0.2 · 0.3 are not equal as floating-point numbers.
        let papers = [
            paper(&[], false, 0.2, 0.0),
            paper(&[], false, 0.0, 0.3),
            paper(&[], false, 0.2, 0.0),
        ];
        assert_eq!(places(&rank(&papers, 10)), [[0], [1], [2]]);
    }

    #[test]
    fn papers_that_share_an_id_are_one_also_by_way_of_others() {
        let mut papers = [
            paper(&["doi:10.1000/a"], false, 0.9, 0.1),
            paper(&["pmid:1"], false, 0.2, 0.2),
            paper(&["arxiv:2101.00001"], true, 0.0, 0.0),
            paper(&["doi:10.1000/A", "arxiv:2101.00001"], false, 0.1, 0.8),
            paper(&[], false, 0.1, 0.8),
        ];
        papers[2].has_abstract = false;
        let ranking = rank(&papers, 10);
        assert_eq!(places(&ranking), [&[0, 2, 3][..], &[4], &[1]]);
        let merged = &ranking.best[0];
        let ids: Vec<_> = merged.ids.iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["doi:10.1000/a", "arxiv:2101.00001"]);
        assert_eq!(merged.score.to_string(), "0.93");
        assert_eq!(ranking.merged, 2);
        assert_eq!(ranking.to_fetch, [0; 0]);
    }

    #[test]
    fn a_paper_without_an_abstract_is_skipped_and_to_be_fetched() {
        let mut papers = [
            paper(&["pmid:1"], true, 1.0, 1.0),
            paper(&["pmid:2"], false, 0.1, 0.1),
            paper(&["pmid:1"], true, 1.0, 1.0),
        ];
        papers[0].has_abstract = false;
        papers[2].has_abstract = false;
        let ranking = rank(&papers, 10);
        assert_eq!(
            (places(&ranking), &ranking.to_fetch[..]),
            (vec![&[1][..]], &[0][..])
        );
    }

    #[test]
    fn how_many_are_chosen_is_bounded() {
        for (number, best) in [
            (0, Some(10)),
            (1, Some(1)),
            (100, Some(100)),
            (101, None),
            (u32::MAX, None),
        ] {
            assert_eq!(parse_best(number).ok(), best, "{number}");
        }
    }

    fn some_papers() -> impl Strategy<Value = Vec<RelatedPaper>> {
        let paper = (
            proptest::collection::vec(1..8u64, 0..3),
            any::<bool>(),
            any::<bool>(),
            0..=1_000_000u32,
            0..=1_000_000u32,
        );
        let paper =
            paper.prop_map(
                |(ids, has_abstract, is_influential, similarity, relevance)| RelatedPaper {
                    ids: ids.into_iter().map(WorkId::Pmid).collect(),
                    has_abstract,
                    is_influential,
                    similarity: Weight::from_millionths(similarity),
                    relevance: Weight::from_millionths(relevance),
                },
            );
        proptest::collection::vec(paper, 0..12)
    }

    proptest! {
        #[test]
        fn no_id_is_in_two_papers_and_none_is_lost(papers in some_papers()) {
            let ranking = rank(&papers, MAX_BEST);
            let mut ids: Vec<_> = ranking.best.iter().flat_map(|paper| &paper.ids).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), all);
            let mut places: Vec<_> = ranking.best.iter().flat_map(|paper| paper.places.clone()).collect();
            places.sort_unstable();
            let with_abstract = (0..papers.len()).filter(|place| papers[*place].has_abstract);
            prop_assert!(with_abstract.into_iter().all(|place| places.binary_search(&place).is_ok()));
            prop_assert!(ranking.to_fetch.iter().all(|place| places.binary_search(place).is_err()));
        }

        #[test]
        fn scores_fall_from_at_most_1_and_fewer_are_the_first_of_more(papers in some_papers(), best in 1..12usize) {
            let all = rank(&papers, MAX_BEST);
            prop_assert!(all.best.iter().all(|paper| (0.0..=1.0).contains(&paper.score)));
            prop_assert!(all.best.windows(2).all(|pair| pair[0].score >= pair[1].score));
            let few = rank(&papers, best);
            prop_assert_eq!(&few.best[..], &all.best[..best.min(all.best.len())]);
        }
    }
}
