//! Compares the server's digests with this node's.

use std::{collections::BTreeMap, fmt};

use emend_core::Digest;
use emend_proto::learning::v1 as pb;

use super::{ProtocolViolation, holdings::Group};

/// The result of comparing digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DigestCheck {
    /// All compared digests are equal.
    Same,
    /// These differ: something is missing or wrong on either side.
    Differs(Vec<Difference>),
}

impl DigestCheck {
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
    pub server: Digest,
    /// This node's.
    pub node: Digest,
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
            server,
            node,
        } = self;
        let scope = if *user_scoped { "user" } else { "global" };
        write!(
            f,
            "{namespace}, kind {kind}, {scope}: the server has {} resources ({:032x}), this node {} ({:032x})",
            server.count, server.sum, node.count, node.sum
        )
    }
}

/// The server's digests, parsed.
pub(super) type ServerDigests = BTreeMap<Group, Digest>;

/// Compares all groups: `server` has a digest for every group that is not empty on the server.
pub(super) fn compare_all(node: &BTreeMap<Group, Digest>, server: ServerDigests) -> DigestCheck {
    let missing = node.keys().filter(|group| !server.contains_key(group));
    let missing: Vec<_> = missing.map(|group| (group.clone(), Digest::default())).collect();
    compare(node, server.into_iter().chain(missing))
}

/// Compares only the groups in `server`.
pub(super) fn compare_listed(node: &BTreeMap<Group, Digest>, server: ServerDigests) -> DigestCheck {
    compare(node, server)
}

fn compare(node: &BTreeMap<Group, Digest>, server: impl IntoIterator<Item = (Group, Digest)>) -> DigestCheck {
    let differences: Vec<_> = server
        .into_iter()
        .filter_map(|(group, server)| {
            let node = node.get(&group).copied().unwrap_or_default();
            (node != server).then_some(Difference { group, server, node })
        })
        .collect();
    if differences.is_empty() {
        DigestCheck::Same
    } else {
        DigestCheck::Differs(differences)
    }
}

/// Parses the server's digests.
pub(super) fn parse(digests: &[pb::Digest]) -> Result<ServerDigests, ProtocolViolation> {
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
