//! Nodes and edges of the evidence graph as lines of JSON: what `emend evidence import` reads, and in the form in which
//! `emend evidence export` writes.
//!
//! A line is an object with one field, the sort, whose fields are those of the wire contract, with enums in lower case. Fields
//! that only exports have are accepted and left out, so that an export can be imported; unknown ones are errors.

use emend_core::{
    Invalid,
    evidence::{EdgeRelation, NodeType},
};
use emend_proto::learning::v1::{
    ClaimAdoption, EvidenceClaim, EvidenceEdge, EvidenceFragment, EvidencePage, NodeRef,
    UpsertEvidenceRequest, node_ref::Node,
};
use prost::Message as _;
use serde_json::{Map, Value};

use super::{RowError, record::EMPTY_KEY};

/// What a line is about, in the order in which it can be imported: each names only what comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A page of a source.
    Page,
    /// A part of a page.
    Fragment,
    /// A claim.
    Claim,
    /// An edge.
    Edge,
}

impl Sort {
    /// All sorts, in this order.
    pub const ALL: [Self; 4] = [Self::Page, Self::Fragment, Self::Claim, Self::Edge];

    /// The field of a line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Fragment => "fragment",
            Self::Claim => "claim",
            Self::Edge => "edge",
        }
    }

    /// The field of an upsert in which messages of the sort are.
    pub const fn list(self) -> &'static str {
        match self {
            Self::Page => "pages",
            Self::Fragment => "fragments",
            Self::Claim => "claims",
            Self::Edge => "edges",
        }
    }
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Material {
    /// A page.
    Page(EvidencePage),
    /// A fragment.
    Fragment(EvidenceFragment),
    /// A claim.
    Claim(EvidenceClaim),
    /// An edge.
    Edge(EvidenceEdge),
}

impl Material {
    /// What it is about.
    pub const fn sort(&self) -> Sort {
        match self {
            Self::Page(_) => Sort::Page,
            Self::Fragment(_) => Sort::Fragment,
            Self::Claim(_) => Sort::Claim,
            Self::Edge(_) => Sort::Edge,
        }
    }

    /// Its bytes in a request.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Page(page) => page.encoded_len(),
            Self::Fragment(fragment) => fragment.encoded_len(),
            Self::Claim(claim) => claim.encoded_len(),
            Self::Edge(edge) => edge.encoded_len(),
        }
    }

    /// Adds it to a request.
    pub fn add_to(self, request: &mut UpsertEvidenceRequest) {
        match self {
            Self::Page(page) => request.pages.push(page),
            Self::Fragment(fragment) => request.fragments.push(fragment),
            Self::Claim(claim) => request.claims.push(claim),
            Self::Edge(edge) => request.edges.push(edge),
        }
    }

    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, RowError> {
        let object: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| RowError::row(format!("is not a JSON object: {error}")))?;
        let mut sorts = object.into_iter();
        let (Some((name, value)), None) = (sorts.next(), sorts.next()) else {
            return Err(RowError::row(
                "must have one field: page, fragment, claim or edge",
            ));
        };
        let sort = Sort::ALL
            .into_iter()
            .find(|sort| sort.name() == name)
            .ok_or_else(|| match &*name {
                "" => RowError::row(EMPTY_KEY),
                name => RowError::field(name, "must be page, fragment, claim or edge"),
            })?;
        let Value::Object(object) = value else {
            return Err(RowError::field(&name, "must be an object"));
        };
        let mut fields = Fields { sort, object };
        let material = match sort {
            Sort::Page => Self::Page(fields.page()?),
            Sort::Fragment => Self::Fragment(fields.fragment()?),
            Sort::Claim => Self::Claim(fields.claim()?),
            Sort::Edge => Self::Edge(fields.edge()?),
        };
        fields.end()?;
        Ok(material)
    }
}

/// The end of an edge as JSON: its id alone if that begins with the sort (`fragment:abc123`), else `{"fragment": "abc123"}`.
pub fn node_json(node: Option<&NodeRef>) -> Value {
    let Some((sort, id)) = node.and_then(parts) else {
        return Value::Null;
    };
    if sort_of(id) == Some(sort) {
        id.into()
    } else {
        Map::from_iter([(sort.name().to_owned(), id.into())]).into()
    }
}

/// The end of an edge for people.
pub fn node_text(node: Option<&NodeRef>) -> String {
    match node_json(node) {
        Value::String(id) => id,
        _ => node
            .and_then(parts)
            .map(|(sort, id)| format!("{} {id}", sort.name()))
            .unwrap_or_default(),
    }
}

fn parts(node: &NodeRef) -> Option<(NodeType, &str)> {
    Some(match node.node.as_ref()? {
        Node::PageId(id) => (NodeType::Page, id),
        Node::FragmentId(id) => (NodeType::Fragment, id),
        Node::ClaimId(id) => (NodeType::Claim, id),
    })
}

/// The sort that an id begins with.
fn sort_of(id: &str) -> Option<NodeType> {
    sort_named(id.split_once(':')?.0)
}

fn sort_named(name: &str) -> Option<NodeType> {
    NodeType::ALL.into_iter().find(|sort| sort.name() == name)
}

fn node(sort: NodeType, id: String) -> NodeRef {
    NodeRef {
        node: Some(match sort {
            NodeType::Page => Node::PageId(id),
            NodeType::Fragment => Node::FragmentId(id),
            NodeType::Claim => Node::ClaimId(id),
        }),
    }
}

/// Fields that only exports have, besides those that the sort has for import.
const EXPORTED: [(&str, &[Sort]); 28] = {
    const CLAIM: &[Sort] = &[Sort::Claim];
    const EDGE: &[Sort] = &[Sort::Edge];
    [
        ("level", &[Sort::Page, Sort::Claim]),
        ("domain", CLAIM),
        ("status", CLAIM),
        ("decision", CLAIM),
        ("alpha", CLAIM),
        ("beta", CLAIM),
        ("confidence", &[Sort::Claim, Sort::Edge]),
        ("uncertainty", CLAIM),
        ("controversy", CLAIM),
        ("supporting_count", CLAIM),
        ("refuting_count", CLAIM),
        ("neutral_count", CLAIM),
        ("evidence_count", CLAIM),
        ("independent_sources", CLAIM),
        ("verdict", CLAIM),
        ("count_all", CLAIM),
        ("one_per_source", CLAIM),
        ("created_at", CLAIM),
        ("updated_at", CLAIM),
        ("source_domain", EDGE),
        ("source_level", EDGE),
        ("target_domain", EDGE),
        ("target_level", EDGE),
        ("reviewed", EDGE),
        ("corrected", EDGE),
        ("reviewed_at", EDGE),
        ("review_reason", EDGE),
        ("feedback_id", EDGE),
    ]
};

/// The fields of a line that are not read yet.
struct Fields {
    sort: Sort,
    object: Map<String, Value>,
}

impl Fields {
    fn page(&mut self) -> Result<EvidencePage, RowError> {
        Ok(EvidencePage {
            page_id: self.text("page_id")?,
            domain: self.text("domain")?,
            url: self.text("url")?,
            title: self.text("title")?,
            doi: self.text("doi")?,
            pmid: self.text("pmid")?,
            arxiv_id: self.text("arxiv_id")?,
        })
    }

    fn fragment(&mut self) -> Result<EvidenceFragment, RowError> {
        Ok(EvidenceFragment {
            fragment_id: self.text("fragment_id")?,
            page_id: self.text("page_id")?,
            text: self.text("text")?,
        })
    }

    fn claim(&mut self) -> Result<EvidenceClaim, RowError> {
        Ok(EvidenceClaim {
            claim_id: self.text("claim_id")?,
            task_id: self.text("task_id")?,
            text: self.text("text")?,
            page_id: self.text("page_id")?,
            adoption: self.word("adoption", |word| match word {
                "adopted" => Ok(ClaimAdoption::Adopted.into()),
                "not_adopted" => Ok(ClaimAdoption::NotAdopted.into()),
                _ => Err(Invalid::new("must be adopted or not_adopted")),
            })?,
            dangerous_patterns: self.texts("dangerous_patterns")?,
        })
    }

    fn edge(&mut self) -> Result<EvidenceEdge, RowError> {
        let relation = self.word("relation", |word| {
            EdgeRelation::parse(word).map(EdgeRelation::number)
        })?;
        let nli_label = self.word("nli_label", |word| {
            EdgeRelation::parse_label(word).map(EdgeRelation::number)
        })?;
        // In an export the relation is as reviewed: what a person says is not what the backend says.
        let is_reviewed = self.object.get("reviewed") == Some(&Value::Bool(true));
        Ok(EvidenceEdge {
            edge_id: self.text("edge_id")?,
            relation: if is_reviewed && nli_label != 0 {
                nli_label
            } else {
                relation
            },
            source: self.node("source")?,
            target: self.node("target")?,
            task_id: self.text("task_id")?,
            nli_label,
            nli_confidence: self.number("nli_confidence")?,
        })
    }

    /// A field's value; null counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.object.remove(name).filter(|value| !value.is_null())
    }

    fn error(&self, name: &str, why: impl Into<String>) -> RowError {
        RowError::field(&format!("{}.{name}", self.sort.name()), why)
    }

    fn text(&mut self, name: &str) -> Result<String, RowError> {
        match self.take(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.error(name, "must be a string")),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, RowError> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        serde_json::from_value(value).map_err(|_| self.error(name, "must be a list of strings"))
    }

    fn number(&mut self, name: &str) -> Result<Option<f64>, RowError> {
        let value = self.take(name);
        let number = value.as_ref().and_then(Value::as_f64);
        match value {
            Some(_) if number.is_none() => Err(self.error(name, "must be a number")),
            _ => Ok(number),
        }
    }

    /// An enum's number; 0 if it is absent.
    fn word(&mut self, name: &str, parse: impl Fn(&str) -> Result<i32, Invalid>) -> Result<i32, RowError> {
        match &*self.text(name)? {
            "" => Ok(0),
            word => parse(word).map_err(|Invalid(why)| self.error(name, why)),
        }
    }

    fn node(&mut self, name: &str) -> Result<Option<NodeRef>, RowError> {
        let found = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(id)) => sort_of(&id).map(|sort| node(sort, id)),
            Some(Value::Object(object)) if object.len() == 1 => {
                object.into_iter().find_map(|(sort, id)| match id {
                    Value::String(id) => Some(node(sort_named(&sort)?, id)),
                    _ => None,
                })
            }
            Some(_) => None,
        };
        found.map(Some).ok_or_else(|| {
            self.error(
                name,
                "must be an id that begins with page:, fragment: or claim:, or an object such as {\"fragment\": \"abc123\"}",
            )
        })
    }

    /// Refuses what is left, except for what only exports have.
    fn end(self) -> Result<(), RowError> {
        let is_exported = |name: &str| {
            EXPORTED
                .iter()
                .any(|(known, sorts)| *known == name && sorts.contains(&self.sort))
        };
        match self.object.keys().find(|name| !is_exported(name)) {
            None => Ok(()),
            Some(name) if name.is_empty() => Err(RowError::field(self.sort.name(), EMPTY_KEY)),
            Some(name) => Err(self.error(name, "is not a field that is known here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::EdgeRelation as PbRelation;

    use super::*;

    #[test]
    fn a_line_has_the_fields_of_the_wire_contract() {
        let line = r#"{"edge": {"edge_id": "edge:7", "relation": "supports", "source": "fragment:abc123",
            "target": {"claim": "c-12"}, "task_id": "t-17", "nli_label": "Refutes", "nli_confidence": 1}}"#;
        let Ok(Material::Edge(edge)) = Material::parse(line) else {
            panic!("it is an edge")
        };
        assert_eq!((edge.edge_id.as_str(), edge.task_id.as_str()), ("edge:7", "t-17"));
        assert_eq!(
            (edge.relation(), edge.nli_label()),
            (PbRelation::Supports, PbRelation::Refutes)
        );
        assert_eq!(edge.nli_confidence, Some(1.0));
        let ends = [edge.source, edge.target].map(|end| end.and_then(|end| end.node));
        let expected = [
            Node::FragmentId("fragment:abc123".into()),
            Node::ClaimId("c-12".into()),
        ];
        assert_eq!(ends, expected.map(Some));
    }

    #[test]
    fn an_exported_edge_that_was_corrected_is_imported_as_the_model_said() {
        let line = r#"{"edge": {"edge_id": "edge:7", "relation": "refutes", "source": "fragment:abc123",
            "target": {"claim": "c-12"}, "nli_label": "supports", "reviewed": true, "corrected": true}}"#;
        let Ok(Material::Edge(edge)) = Material::parse(line) else {
            panic!("it is an edge")
        };
        assert_eq!(
            (edge.relation(), edge.nli_label()),
            (PbRelation::Supports, PbRelation::Supports)
        );
    }

    #[test]
    fn what_is_null_or_left_out_is_not_set() {
        let line = r#"{"claim": {"claim_id": "claim:1", "adoption": null, "dangerous_patterns": null}}"#;
        let expected = EvidenceClaim {
            claim_id: "claim:1".into(),
            ..EvidenceClaim::default()
        };
        assert_eq!(Material::parse(line), Ok(Material::Claim(expected)));
    }

    #[test]
    fn an_end_is_its_id_alone_only_if_that_says_the_sort() {
        for (end, json) in [
            (Node::FragmentId("fragment:a".into()), r#""fragment:a""#),
            (Node::FragmentId("a".into()), r#"{"fragment":"a"}"#),
            (Node::ClaimId("fragment:a".into()), r#"{"claim":"fragment:a"}"#),
            (
                Node::PageId("https://example.org".into()),
                r#"{"page":"https://example.org"}"#,
            ),
        ] {
            let end = NodeRef { node: Some(end) };
            assert_eq!(node_json(Some(&end)).to_string(), json);
            let line = format!(r#"{{"edge": {{"source": {json}}}}}"#);
            let Ok(Material::Edge(edge)) = Material::parse(&line) else {
                panic!("{line}")
            };
            assert_eq!(edge.source, Some(end));
        }
    }

    #[test]
    fn an_error_names_the_field_and_what_it_must_be() {
        for (line, field, part) in [
            ("[]", "", "not a JSON object"),
            ("{}", "", "must have one field"),
            (r#"{"page": {}, "claim": {}}"#, "", "must have one field"),
            (
                r#"{"pages": {}}"#,
                "pages",
                "must be page, fragment, claim or edge",
            ),
            (r#"{"": {}}"#, "", "a key is empty"),
            (r#"{"claim": {"": 1}}"#, "claim", "a key is empty"),
            (r#"{"page": "p"}"#, "page", "must be an object"),
            (r#"{"page": {"id": "p"}}"#, "page.id", "is not a field"),
            (
                r#"{"fragment": {"adoption": "adopted"}}"#,
                "fragment.adoption",
                "is not a field",
            ),
            (
                r#"{"claim": {"claim_id": 7}}"#,
                "claim.claim_id",
                "must be a string",
            ),
            (
                r#"{"claim": {"adoption": "yes"}}"#,
                "claim.adoption",
                "must be adopted or not_adopted",
            ),
            (
                r#"{"claim": {"dangerous_patterns": "x"}}"#,
                "claim.dangerous_patterns",
                "a list of strings",
            ),
            (
                r#"{"edge": {"relation": "proves"}}"#,
                "edge.relation",
                "supports, refutes, neutral, cites",
            ),
            (
                r#"{"edge": {"nli_label": "cites"}}"#,
                "edge.nli_label",
                "supports, refutes, neutral",
            ),
            (
                r#"{"edge": {"nli_confidence": "0.9"}}"#,
                "edge.nli_confidence",
                "must be a number",
            ),
            (
                r#"{"edge": {"source": "abc123"}}"#,
                "edge.source",
                "begins with page:",
            ),
            (
                r#"{"edge": {"target": {"edge": "e"}}}"#,
                "edge.target",
                "begins with page:",
            ),
        ] {
            let error = Material::parse(line).expect_err(line);
            assert_eq!(error.field, field, "{line}");
            assert!(error.description.contains(part), "{line}: {}", error.description);
        }
    }
}
