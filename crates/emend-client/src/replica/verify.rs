//! Compares the server's digests with this node's.
//!
//! It must know nothing of what is done if they differ.

use std::{collections::BTreeMap, fmt};

use emend_core::Digest;
use emend_proto::learning::v1 as pb;

use super::{ProtocolViolation, holdings::Group};

/// The result of comparing digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All compared digests are equal.
    Same,
    /// These differ: something is missing or wrong on either side.
    Differs(Vec<Difference>),
}

impl Verdict {
    /// Whether any differ.
    pub fn differs(&self) -> bool {
        matches!(self, Self::Differs(_))
    }
}

/// A group whose digests differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The group.
    pub group: Group,
    /// The server's.
    pub theirs: Digest,
    /// This node's.
    pub ours: Digest,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group:
                Group {
                    namespace,
                    kind,
                    user_scoped,
                },
            theirs,
            ours,
        } = self;
        let scope = if *user_scoped { "user" } else { "global" };
        write!(
            f,
            "{namespace}, kind {kind}, {scope}: the server has {} resources ({:032x}), this node {} ({:032x})",
            theirs.count, theirs.sum, ours.count, ours.sum
        )
    }
}

/// The server's digests, parsed.
pub(super) type Theirs = BTreeMap<Group, Digest>;

/// Compares all groups: `theirs` has a digest for every group that is not empty on the server.
pub(super) fn all(ours: &BTreeMap<Group, Digest>, theirs: Theirs) -> Verdict {
    let missing = ours.keys().filter(|group| !theirs.contains_key(group));
    let missing: Vec<_> = missing.map(|group| (group.clone(), Digest::default())).collect();
    compared(ours, theirs.into_iter().chain(missing))
}

/// Compares only the groups in `theirs`.
pub(super) fn some(ours: &BTreeMap<Group, Digest>, theirs: Theirs) -> Verdict {
    compared(ours, theirs)
}

fn compared(ours: &BTreeMap<Group, Digest>, theirs: impl IntoIterator<Item = (Group, Digest)>) -> Verdict {
    let differences: Vec<_> = theirs
        .into_iter()
        .filter_map(|(group, theirs)| {
            let ours = ours.get(&group).copied().unwrap_or_default();
            (ours != theirs).then_some(Difference { group, theirs, ours })
        })
        .collect();
    if differences.is_empty() {
        Verdict::Same
    } else {
        Verdict::Differs(differences)
    }
}

/// Parses the server's digests.
pub(super) fn parse(digests: &[pb::Digest]) -> Result<Theirs, ProtocolViolation> {
    digests
        .iter()
        .map(|digest| {
            let hash = <[u8; 16]>::try_from(&*digest.hash)
                .map_err(|_| ProtocolViolation::malformed("a digest", "its hash has not 16 bytes"))?;
            let group = Group {
                namespace: digest.namespace.clone(),
                kind: digest.kind,
                user_scoped: digest.user_scoped,
            };
            Ok((
                group,
                Digest {
                    count: digest.count,
                    sum: u128::from_be_bytes(hash),
                },
            ))
        })
        .collect()
}
