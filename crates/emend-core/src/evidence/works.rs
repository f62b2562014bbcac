//! Which pages or papers are one work: those that share an id, also by way of others.

use std::{collections::HashMap, hash::Hash};

/// Of each of these, by its place, the first that it is one work with: they share an id, also by way of others. One that is a
/// work of its own is its own first.
///
/// Disjoint sets by union and find: Tarjan, "Efficiency of a Good But Not Linear Set Union Algorithm", 1975.
pub fn joined<I: Eq + Hash>(all: impl IntoIterator<Item = impl IntoIterator<Item = I>>) -> Vec<usize> {
    // Of each an earlier one that is the same, or itself: the first is found by following them.
    let mut same_as: Vec<usize> = Vec::new();
    let mut with_id: HashMap<I, usize> = HashMap::new();
    for (place, ids) in all.into_iter().enumerate() {
        same_as.push(place);
        for id in ids {
            let other = *with_id.entry(id).or_insert(place);
            let (one, other) = (first_of(&mut same_as, place), first_of(&mut same_as, other));
            same_as[one.max(other)] = one.min(other);
        }
    }
    (0..same_as.len())
        .map(|place| first_of(&mut same_as, place))
        .collect()
}

fn first_of(same_as: &mut [usize], mut place: usize) -> usize {
    while same_as[place] != place {
        same_as[place] = same_as[same_as[place]];
        place = same_as[place];
    }
    place
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::joined;

    #[test]
    fn what_shares_any_id_is_one_also_by_way_of_a_third() {
        let preprint = vec!["arxiv:2101.00001"];
        let article = vec!["doi:10.1000/x"];
        let index = vec!["arxiv:2101.00001", "doi:10.1000/x"];
        let blog: Vec<&str> = Vec::new();
        assert_eq!(
            joined([preprint.clone(), article.clone(), blog.clone()]),
            [0, 1, 2]
        );
        assert_eq!(joined([preprint, article, blog, index]), [0, 0, 2, 0]);
    }

    proptest! {
        #[test]
        fn two_are_one_work_exactly_where_ids_lead_from_one_to_the_other(
            all in proptest::collection::vec(proptest::collection::vec(0..12u8, 0..3), 0..12),
        ) {
            let first = joined(&all);
            for place in 0..all.len() {
                // Everything that can be reached from this one, by going through all again and again.
                let mut reached: HashSet<usize> = HashSet::from([place]);
                loop {
                    let ids: HashSet<u8> = reached.iter().flat_map(|place| all[*place].iter().copied()).collect();
                    let more: Vec<usize> = (0..all.len())
                        .filter(|place| !reached.contains(place) && all[*place].iter().any(|id| ids.contains(id)))
                        .collect();
                    if more.is_empty() {
                        break;
                    }
                    reached.extend(more);
                }
                for other in 0..all.len() {
                    prop_assert_eq!(first[place] == first[other], reached.contains(&other), "{} {}", place, other);
                }
            }
        }
    }
}
