//! Parses requests about evidence: every violation at once.

use std::collections::{BTreeSet, HashSet};

use emend_core::{
    Invalid, Violations,
    evidence::{
        self, ClaimStatus, EdgeRelation, EvidenceId, NodeRef, NodeType, TrustLevel, Weight, WorkId,
        leads_elsewhere,
    },
    violation::{bounded_prose, bounded_text},
};
use emend_proto::learning::v1::{self as pb, node_ref::Node};
use emend_wire::{
    page::{self, QueryHash},
    parse as wire,
};
use learning_store::evidence::{
    ClaimFilter, EdgeFilter, EdgePosition,
    graph::{ClaimUpsert, EdgeUpsert, Fragment, MAX_UPSERT, Page, Upsert},
};

use crate::grpc::parse;

/// Characters of the text of a fragment or claim at most.
pub(super) const MAX_TEXT_CHARS: usize = 32_768;
/// Characters of a title at most.
const MAX_TITLE_CHARS: usize = 1_024;
/// Characters of a URL at most.
const MAX_URL_CHARS: usize = 2_048;
/// Dangerous patterns of a claim at most.
const MAX_PATTERNS: usize = 16;
/// Characters of the name of a dangerous pattern at most.
const MAX_PATTERN_CHARS: usize = 64;
/// Elements of a filter at most; more than there are distinct values.
const MAX_FILTER: usize = 16;

pub(crate) fn upsert(request: &pb::UpsertEvidenceRequest) -> Result<Upsert, Violations> {
    let pb::UpsertEvidenceRequest {
        namespace,
        pages,
        fragments,
        claims,
        edges,
        replace: _,
    } = request;
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, namespace);
    let count = pages.len() + fragments.len() + claims.len() + edges.len();
    if !(1..=MAX_UPSERT).contains(&count) {
        violations.add(
            "",
            format!("must have 1 to {MAX_UPSERT} pages, fragments, claims and edges together, has {count}"),
        );
        return Err(violations);
    }
    let pages = each(&mut violations, ("pages", "page_id"), pages, page, |page| {
        &page.id
    });
    let fragments = each(
        &mut violations,
        ("fragments", "fragment_id"),
        fragments,
        fragment,
        |fragment| &fragment.id,
    );
    let claims = each(&mut violations, ("claims", "claim_id"), claims, claim, |claim| {
        &claim.id
    });
    let edges = each(&mut violations, ("edges", "edge_id"), edges, edge, |edge| {
        &edge.id
    });
    let upsert = namespace.map(|namespace| Upsert {
        namespace,
        pages,
        fragments,
        claims,
        edges,
    });
    violations.finish(upsert)
}

/// Parses each element of a list, and refuses an id that is there twice.
fn each<M, T>(
    violations: &mut Violations,
    (field, id_field): (&str, &str),
    messages: &[M],
    parse: impl Fn(&M) -> Result<T, Violations>,
    id: impl Fn(&T) -> &EvidenceId,
) -> Vec<T> {
    let mut parsed: Vec<T> = Vec::with_capacity(messages.len());
    let mut ids: HashSet<EvidenceId> = HashSet::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        if let Some(one) = violations.part(&format!("{field}[{index}]"), parse(message)) {
            if !ids.insert(id(&one).clone()) {
                violations.add(format!("{field}[{index}].{id_field}"), "is there twice");
            }
            parsed.push(one);
        }
    }
    parsed
}

fn page(message: &pb::EvidencePage) -> Result<Page, Violations> {
    let page = page_of_paper(message)?;
    if page.host.is_empty() && page.url.is_empty() && message.domain.trim().is_empty() {
        let mut violations = Violations::new();
        violations.add("domain", "is required where url is empty");
        return Err(violations);
    }
    Ok(page)
}

/// A page that may have no domain: that of a paper of which nobody said who published it.
pub(super) fn page_of_paper(message: &pb::EvidencePage) -> Result<Page, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("page_id", EvidenceId::parse(&message.page_id));
    let url = violations.check("url", url(&message.url));
    let host = if message.domain.trim().is_empty() {
        let of_url = url.as_ref().map(|url| url.as_ref().map(|(_, host)| host.clone()));
        of_url.map(Option::unwrap_or_default)
    } else {
        violations.check(
            "domain",
            evidence::host(&message.domain).map(|host| host.to_string()),
        )
    };
    let title = violations.check("title", bounded_prose(&message.title, 0, MAX_TITLE_CHARS));
    let mut works = BTreeSet::new();
    for (field, raw, parse) in [
        (
            "doi",
            &message.doi,
            WorkId::doi as fn(&str) -> Result<WorkId, Invalid>,
        ),
        ("pmid", &message.pmid, WorkId::pmid),
        ("arxiv_id", &message.arxiv_id, WorkId::arxiv),
    ] {
        if !raw.trim().is_empty() {
            works.extend(violations.check(field, parse(raw)));
        }
    }
    let parsed = (|| {
        Some(Page {
            id: id?,
            host: if leads_elsewhere(host.as_ref()?) {
                String::new()
            } else {
                host?
            },
            url: url?.map(|(url, _)| url).unwrap_or_default(),
            title: title?,
            works: works.into_iter().collect(),
        })
    })();
    violations.finish(parsed)
}

/// An address and its host; none if it is empty.
fn url(raw: &str) -> Result<Option<(String, String)>, Invalid> {
    let text = bounded_text(raw, 0, MAX_URL_CHARS)?;
    if text.is_empty() {
        return Ok(None);
    }
    let bad = || Invalid::new("must be an http or https address with a domain name");
    let (scheme, rest) = text.split_once("://").ok_or_else(bad)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(bad());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let host = evidence::host(host).map_err(|_| bad())?.to_string();
    Ok(Some((text, host)))
}

fn fragment(message: &pb::EvidenceFragment) -> Result<Fragment, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("fragment_id", EvidenceId::parse(&message.fragment_id));
    let page = violations.check("page_id", EvidenceId::parse(&message.page_id));
    let text = violations.check("text", bounded_prose(&message.text, 0, MAX_TEXT_CHARS));
    let parsed = (|| {
        Some(Fragment {
            id: id?,
            page: page?,
            text: text?,
        })
    })();
    violations.finish(parsed)
}

fn claim(message: &pb::EvidenceClaim) -> Result<ClaimUpsert, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("claim_id", EvidenceId::parse(&message.claim_id));
    let task = violations.check("task_id", EvidenceId::parse_optional(&message.task_id));
    let text = violations.check("text", bounded_prose(&message.text, 0, MAX_TEXT_CHARS));
    let page = violations.check("page_id", EvidenceId::parse_optional(&message.page_id));
    let adopted = violations.check("adoption", adoption(message.adoption));
    let count = message.dangerous_patterns.len();
    if count > MAX_PATTERNS {
        violations.add(
            "dangerous_patterns",
            format!("must have at most {MAX_PATTERNS} entries, has {count}"),
        );
    }
    let mut patterns = BTreeSet::new();
    for (index, name) in message.dangerous_patterns.iter().take(MAX_PATTERNS).enumerate() {
        let name = bounded_text(name, 1, MAX_PATTERN_CHARS);
        patterns.extend(violations.check(&format!("dangerous_patterns[{index}]"), name));
    }
    let parsed = (|| {
        Some(ClaimUpsert {
            id: id?,
            task: task?,
            text: text?,
            page: page?,
            adopted: adopted?,
            patterns: patterns.into_iter().collect(),
        })
    })();
    violations.finish(parsed)
}

/// Whether it was adopted; none: not said.
fn adoption(number: i32) -> Result<Option<bool>, Invalid> {
    match pb::ClaimAdoption::try_from(number) {
        Ok(pb::ClaimAdoption::Unspecified) => Ok(None),
        Ok(pb::ClaimAdoption::Adopted) => Ok(Some(true)),
        Ok(pb::ClaimAdoption::NotAdopted) => Ok(Some(false)),
        Err(_) => Err(Invalid::new(format!("is not a known adoption: {number}"))),
    }
}

fn edge(message: &pb::EvidenceEdge) -> Result<EdgeUpsert, Violations> {
    let mut violations = Violations::new();
    let id = violations.check("edge_id", EvidenceId::parse(&message.edge_id));
    let relation = violations.check("relation", relation(message.relation));
    let source = violations.part("source", node(message.source.as_ref()));
    let target = violations.part("target", node(message.target.as_ref()));
    let task = violations.check("task_id", EvidenceId::parse_optional(&message.task_id));
    let label = match message.nli_label {
        0 => Some(None),
        number => violations.check("nli_label", label(number)).map(Some),
    };
    let confidence = match message.nli_confidence {
        None => Some(None),
        Some(confidence) => violations
            .check("nli_confidence", Weight::parse(confidence))
            .map(|weight| Some((confidence, weight))),
    };
    if relation == Some(EdgeRelation::Cites) {
        for (field, end) in [("source", &source), ("target", &target)] {
            if end.as_ref().is_some_and(|end| end.sort != NodeType::Page) {
                violations.add(field, "must be a page: CITES leads from a page to a page");
            }
        }
        if message.nli_label != 0 {
            violations.add("nli_label", "must be empty with CITES");
        }
    } else if relation.is_some() && target.as_ref().is_some_and(|end| end.sort != NodeType::Claim) {
        violations.add("target", "must be a claim, but for CITES");
    }
    if source.is_some() && source == target {
        violations.add("target", "must not be the source");
    }
    let parsed = (|| {
        Some(EdgeUpsert {
            id: id?,
            relation: relation?,
            source: source?,
            target: target?,
            task: task?,
            label: label?,
            confidence: confidence?,
        })
    })();
    violations.finish(parsed)
}

fn node(message: Option<&pb::NodeRef>) -> Result<NodeRef, Violations> {
    let mut violations = Violations::new();
    let Some(node) = message.and_then(|message| message.node.as_ref()) else {
        violations.add("", "is required: one of page_id, fragment_id, claim_id");
        return Err(violations);
    };
    let (sort, field, id) = match node {
        Node::PageId(id) => (NodeType::Page, "page_id", id),
        Node::FragmentId(id) => (NodeType::Fragment, "fragment_id", id),
        Node::ClaimId(id) => (NodeType::Claim, "claim_id", id),
    };
    let id = violations.check(field, EvidenceId::parse(id));
    violations.finish(id.map(|id| NodeRef { sort, id }))
}

/// A relation, which is required.
pub(crate) fn relation(number: i32) -> Result<EdgeRelation, Invalid> {
    match number {
        0 => Err(Invalid::new("is required")),
        number => EdgeRelation::from_number(number)
            .ok_or_else(|| Invalid::new(format!("is not a known relation: {number}"))),
    }
}

/// A relation that a model or a person says.
pub(crate) fn label(number: i32) -> Result<EdgeRelation, Invalid> {
    match relation(number)? {
        EdgeRelation::Cites => Err(Invalid::new("must be SUPPORTS, REFUTES or NEUTRAL, is CITES")),
        label => Ok(label),
    }
}

fn level(number: i32) -> Result<TrustLevel, Invalid> {
    TrustLevel::from_number(number).ok_or_else(|| Invalid::new(format!("is not a known level: {number}")))
}

/// Parses each element of a filter.
pub(crate) fn filter<T>(
    violations: &mut Violations,
    field: &str,
    numbers: &[i32],
    parse: impl Fn(i32) -> Result<T, Invalid>,
) -> Vec<T> {
    if numbers.len() > MAX_FILTER {
        let count = numbers.len();
        violations.add(
            field,
            format!("must have at most {MAX_FILTER} entries, has {count}"),
        );
    }
    let numbers = numbers.iter().take(MAX_FILTER).enumerate();
    let parsed =
        numbers.map(|(index, number)| violations.check(&format!("{field}[{index}]"), parse(*number)));
    parsed.flatten().collect()
}

/// What to list, after which position, and how much.
pub(crate) type Listed<F, P> = (F, P, u32);

pub(crate) fn list_claims(
    request: &pb::ListClaimsRequest,
    query: QueryHash,
) -> Result<Listed<ClaimFilter, i64>, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let status = match request.status {
        0 => Some(None),
        number => {
            let status = ClaimStatus::from_number(number);
            let status = status.ok_or_else(|| Invalid::new(format!("is not a known status: {number}")));
            violations.check("status", status).map(Some)
        }
    };
    let adopted = violations.check("adoption", adoption(request.adoption));
    let limit = violations.check("page_size", wire::page_size(request.page_size, 100, 1_000));
    let after = violations.check("page_token", page::number_position(query, &request.page_token));
    let parsed = (|| {
        let filter = ClaimFilter {
            namespace: namespace?,
            task: task?,
            status: status?,
            adopted: adopted?,
        };
        Some((filter, after?.unwrap_or_default(), limit?))
    })();
    violations.finish(parsed)
}

pub(crate) fn list_edges(
    request: &pb::ListEdgesRequest,
    query: QueryHash,
) -> Result<Listed<EdgeFilter, EdgePosition>, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let claim = violations.check("claim_id", EvidenceId::parse_optional(&request.claim_id));
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let edge = violations.check("edge_id", EvidenceId::parse_optional(&request.edge_id));
    let relations = filter(&mut violations, "relations", &request.relations, relation);
    let levels = filter(&mut violations, "levels", &request.levels, level);
    let limit = violations.check("page_size", wire::page_size(request.page_size, 100, 1_000));
    let after = violations.check("page_token", edge_position(query, &request.page_token));
    let parsed = (|| {
        let filter = EdgeFilter {
            namespace: namespace?,
            claim: claim?,
            relations,
            levels,
            reviewed: request.reviewed,
            corrected: request.corrected,
            task: task?,
            edge: edge?,
        };
        Some((filter, after?, limit?))
    })();
    violations.finish(parsed)
}

fn edge_position(query: QueryHash, token: &str) -> Result<EdgePosition, Invalid> {
    let position = pair_position(query, token)?;
    Ok(
        position.map_or_else(EdgePosition::default, |(first, edge)| EdgePosition {
            first,
            edge,
        }),
    )
}

pub(crate) fn edge_token(query: QueryHash, position: EdgePosition) -> String {
    pair_token(query, (position.first, position.edge))
}

/// The position in a token made by [`pair_token`].
pub(crate) fn pair_position(query: QueryHash, token: &str) -> Result<Option<(i64, i64)>, Invalid> {
    let Some(bytes) = page::position(query, token)? else {
        return Ok(None);
    };
    let bad = || Invalid::new("is not a page token of this list");
    let (first, second) = bytes.split_first_chunk::<8>().ok_or_else(bad)?;
    let second = second.try_into().map_err(|_| bad())?;
    Ok(Some((i64::from_le_bytes(*first), i64::from_le_bytes(second))))
}

/// The token of the page that begins after a pair of numbers.
pub(crate) fn pair_token(query: QueryHash, (first, second): (i64, i64)) -> String {
    let mut bytes = first.to_le_bytes().to_vec();
    bytes.extend_from_slice(&second.to_le_bytes());
    page::token(query, &bytes)
}
