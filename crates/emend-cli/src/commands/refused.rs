//! Which items of a batch a service refuses, so that they are named by their lines and the others are stored.

use std::collections::BTreeSet;

use emend_proto::learning::v1::ImportError;

use super::import::import_error;
use crate::{failure::Failure, transfer::RowError};

/// What a service says of one item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its place in the batch, from 0.
    pub(super) index: usize,
    /// What is wrong with it.
    pub(super) error: RowError,
}

/// What a refusal says of items of the list with this name, such as `edges[3].target: is not known`. Their fields are called
/// as `named`. Empty if the refusal is about something else. Of many bad items a refusal names only the first.
pub(super) fn items(failure: &Failure, list: &str, named: &str) -> Vec<Item> {
    let Failure::Refused(explained) = failure else {
        return Vec::new();
    };
    let violations = explained.field_violations.iter();
    violations
        .filter_map(|violation| item(list, named, &violation.field, &violation.description))
        .collect()
}

fn item(list: &str, named: &str, field: &str, description: &str) -> Option<Item> {
    let (index, rest) = field.strip_prefix(list)?.strip_prefix('[')?.split_once(']')?;
    let field = format!("{named}{rest}");
    Some(Item {
        index: index.parse().ok()?,
        error: RowError::field(field.trim_start_matches('.'), description),
    })
}

/// Items, each with its line.
pub(super) type Batch<T> = Vec<(u64, T)>;

/// The lines of refused items, and the batch without them; nothing if the refusal names none of the batch.
pub(super) fn without<T>(batch: Batch<T>, items: Vec<Item>) -> Option<(Vec<ImportError>, Batch<T>)> {
    let refused: BTreeSet<usize> = items.iter().map(|item| item.index).collect();
    let errors: Vec<ImportError> = items
        .into_iter()
        .filter_map(|item| Some(import_error(batch.get(item.index)?.0, item.error)))
        .collect();
    if errors.is_empty() {
        return None;
    }
    let good = batch.into_iter().enumerate();
    let good = good
        .filter(|(index, _)| !refused.contains(index))
        .map(|(_, item)| item);
    Some((errors, good.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_refuses_is_named_by_its_line_and_the_others_are_kept() {
        let refused = |field| item("edges", "edge", field, "is not known");
        let batch = vec![(4, 'a'), (9, 'b'), (12, 'c')];
        let found = refused("edges[1].source.fragment_id").unwrap();
        let (errors, good) = without(batch.clone(), vec![found]).unwrap();
        assert_eq!(
            (errors[0].line, &*errors[0].field),
            (9, "edge.source.fragment_id")
        );
        assert_eq!(good, [(4, 'a'), (12, 'c')]);
        assert!(without(batch, vec![refused("edges[3]").unwrap()]).is_none());
        for elsewhere in ["namespace", "claims[0].text", "edges"] {
            assert_eq!(refused(elsewhere), None, "{elsewhere}");
        }
        let field = item("queries", "", "queries[0].query_id", "is required")
            .unwrap()
            .error
            .field;
        assert_eq!(field, "query_id");
    }
}
