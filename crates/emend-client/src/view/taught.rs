//! Synonyms as they are listed, and a view that knows these and nothing else: what would be searched with them, without a node.

use std::{borrow::Cow, collections::BTreeMap};

use emend_base::{Entropy, SharedClock};
use emend_core::{
    Invalid, Kind, Learned, NormalizedKey, Relation, ResourceValue, Revision, Synonym, Violations,
};
use emend_proto::common::v1::Resource;
use emend_wire::parse;

use super::{Fact, LearnedView};

/// A synonym that everybody has been taught, or might be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaughtSynonym {
    term: String,
    representative: String,
    value: ResourceValue,
}

impl TaughtSynonym {
    /// A term that is to stand for another, as people write both.
    pub fn new(term: &str, relation: Relation, representative: &str) -> Result<Self, Invalid> {
        let learned = Learned::Synonym(Synonym {
            relation,
            representative: representative.to_owned(),
        });
        Ok(Self {
            term: NormalizedKey::parse(term)?.as_str().to_owned(),
            representative: NormalizedKey::parse(representative)?.as_str().to_owned(),
            value: ResourceValue::new(term, learned),
        })
    }

    /// As `ListResources` has it.
    pub fn listed(resource: Resource) -> Result<Self, Violations> {
        let key = resource.key.unwrap_or_default();
        let parsed = parse::resource_key(Some(&key))?;
        let value = parse::resource_value(resource.value.as_ref(), Some(&parsed), &key.key)?;
        Ok(Self {
            term: key.key,
            representative: key.qualifier,
            value,
        })
    }
}

impl LearnedView {
    /// A view that knows these synonyms of a namespace and nothing else; of equal pairs the last.
    pub fn of_synonyms(
        namespace: &str,
        synonyms: &[TaughtSynonym],
        entropy: &Entropy,
        clock: SharedClock,
    ) -> Self {
        let (mut publisher, view) = Self::new(entropy, clock);
        let pairs: BTreeMap<(&str, &str), &ResourceValue> = synonyms
            .iter()
            .map(|synonym| ((&*synonym.term, &*synonym.representative), &synonym.value))
            .collect();
        let facts = pairs.iter().map(|(&(key, qualifier), &value)| Fact {
            namespace,
            kind: Kind::Synonym,
            key,
            qualifier,
            user_id: "",
            revision: Revision(1),
            value: Some(Cow::Borrowed(value)),
        });
        publisher.replace(pairs.len(), facts, Revision(1));
        view
    }
}
