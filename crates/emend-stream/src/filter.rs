//! What a subscriber sees: which namespaces, which kinds, and whether users' own resources.
//!
//! A filter is the effective one, after authorization. Every resource belongs to one [`GroupId`], and a filter covers a
//! group wholly or not at all, so that digests of groups are digests of what a subscriber holds.

use std::{cmp::Ordering, sync::Arc};

use emend_core::Namespace;
use xxhash_rust::xxh3::xxh3_64;

/// Identifies a group: the resources that share one digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// The search application.
    pub namespace: Arc<str>,
    /// The kind's number, known to this version or not.
    pub kind: i32,
    /// Whether its resources are users' own.
    pub user_scoped: bool,
}

impl GroupId {
    /// The first and the last group a namespace can have.
    pub(crate) fn bounds(namespace: &Arc<str>) -> (Self, Self) {
        let bound = |kind, user_scoped| Self {
            namespace: Arc::clone(namespace),
            kind,
            user_scoped,
        };
        (bound(i32::MIN, false), bound(i32::MAX, true))
    }

    /// Compares the parts with which key order begins. A kind's global and user-scoped groups compare equal.
    pub(crate) fn cmp_key(&self, other: &Self) -> Ordering {
        (&self.namespace, self.kind).cmp(&(&other.namespace, other.kind))
    }
}

/// What a subscriber sees. Filters that cover the same namespaces and kinds are equal, in whatever order they were
/// listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    namespaces: Option<Box<[Arc<str>]>>,
    kinds: Option<Box<[i32]>>,
    include_user_scoped: bool,
}

impl Filter {
    /// Only these namespaces and kinds; an empty list means all.
    pub fn new(namespaces: &[Namespace], kinds: &[i32], include_user_scoped: bool) -> Self {
        let mut names: Vec<Arc<str>> = namespaces.iter().map(|name| name.as_str().into()).collect();
        names.sort_unstable();
        names.dedup();
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        Self {
            namespaces: (!names.is_empty()).then(|| names.into()),
            kinds: (!kinds.is_empty()).then(|| kinds.into()),
            include_user_scoped,
        }
    }

    /// The namespaces, sorted; none if it covers all.
    pub(crate) fn namespaces(&self) -> Option<&[Arc<str>]> {
        self.namespaces.as_deref()
    }

    /// Whether the subscriber sees the group's resources.
    pub fn covers(&self, group: &GroupId) -> bool {
        (self.include_user_scoped || !group.user_scoped)
            && self
                .kinds
                .as_ref()
                .is_none_or(|kinds| kinds.binary_search(&group.kind).is_ok())
            && self
                .namespaces
                .as_ref()
                .is_none_or(|names| names.binary_search(&group.namespace).is_ok())
    }

    /// XXH3-64 of the filter's canonical form. It must never change: cursors carry it.
    pub fn hash(&self) -> u64 {
        let mut bytes = vec![1, u8::from(self.include_user_scoped)];
        let mut list = |count: Option<usize>| {
            let count = count
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(u32::MAX);
            bytes.extend_from_slice(&count.to_le_bytes());
        };
        list(self.kinds.as_ref().map(|kinds| kinds.len()));
        list(self.namespaces.as_ref().map(|names| names.len()));
        for kind in self.kinds.iter().flatten() {
            bytes.extend_from_slice(&kind.to_le_bytes());
        }
        for name in self.namespaces.iter().flatten() {
            bytes.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        xxh3_64(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Namespace> {
        names.iter().map(|name| Namespace::parse(name).unwrap()).collect()
    }

    fn group(namespace: &str, kind: i32, user_scoped: bool) -> GroupId {
        GroupId {
            namespace: namespace.into(),
            kind,
            user_scoped,
        }
    }

    #[test]
    fn a_filter_covers_what_it_names_and_nothing_else() {
        let filter = Filter::new(&names(&["a", "b"]), &[1, 99], false);
        assert!(filter.covers(&group("a", 1, false)));
        assert!(filter.covers(&group("b", 99, false)));
        assert!(!filter.covers(&group("c", 1, false)));
        assert!(!filter.covers(&group("a", 2, false)));
        assert!(!filter.covers(&group("a", 1, true)));
        let all = Filter::new(&[], &[], true);
        assert!(all.covers(&group("z", 1234, true)));
    }

    #[test]
    fn order_and_repetition_do_not_change_a_filter() {
        let one = Filter::new(&names(&["a", "b"]), &[2, 1], false);
        let other = Filter::new(&names(&["b", "a", "b"]), &[1, 2, 2], false);
        assert_eq!(one, other);
        assert_eq!(one.hash(), other.hash());
    }

    #[test]
    fn hashes_of_filters_differ_and_never_change() {
        let filters = [
            Filter::new(&[], &[], false),
            Filter::new(&[], &[], true),
            Filter::new(&[], &[1], false),
            Filter::new(&names(&["a"]), &[], false),
            Filter::new(&names(&["a"]), &[1], false),
            Filter::new(&names(&["a", "b"]), &[], false),
            Filter::new(&names(&["ab"]), &[], false),
        ];
        let hashes: std::collections::HashSet<_> = filters.iter().map(Filter::hash).collect();
        assert_eq!(hashes.len(), filters.len());
        assert_eq!(format!("{:016x}", filters[0].hash()), "3bc3632afc114bd7");
        assert_eq!(format!("{:016x}", filters[4].hash()), "382f84ec9fc41f50");
    }
}
