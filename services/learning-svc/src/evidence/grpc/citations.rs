//! The request to rank citations, and its answer.

use std::collections::HashMap;

use emend_core::{
    Invalid, Violations,
    evidence::{EvidenceId, RelatedPaper, Weight, parse_best},
    violation::bounded_prose,
};
use emend_proto::learning::v1 as pb;

use super::{
    parse::{MAX_TEXT_CHARS, page_of_paper},
    small,
};
use crate::{
    evidence::citations::{Citations, MAX_RELATED, RankedCitations, Related},
    grpc::parse::namespace,
};

/// Other ids of a paper at most.
const MAX_OTHER_IDS: usize = 8;

/// Parses the request: every violation at once.
pub(crate) fn parse(request: &pb::RankCitationsRequest) -> Result<Citations, Violations> {
    let mut violations = Violations::new();
    let namespace = namespace(&mut violations, &request.namespace);
    let page = violations.check("page_id", EvidenceId::parse(&request.page_id));
    let task = violations.check("task_id", EvidenceId::parse_optional(&request.task_id));
    let keep = u32::try_from(request.keep)
        .map_err(|_| Invalid::new(format!("must not be negative, is {}", request.keep)));
    let best = violations.check("keep", keep.and_then(parse_best));
    let count = request.related.len();
    if !(1..=MAX_RELATED).contains(&count) {
        violations.add(
            "related",
            format!("must have 1 to {MAX_RELATED} papers, has {count}"),
        );
        return Err(violations);
    }
    let mut related: Vec<Related> = Vec::with_capacity(count);
    let mut first_with: HashMap<EvidenceId, usize> = HashMap::new();
    for (index, message) in request.related.iter().enumerate() {
        let Some(one) = violations.part(&format!("related[{index}]"), one(message)) else {
            continue;
        };
        let field = || format!("related[{index}].page.page_id");
        if page.as_ref() == Some(&one.page.id) {
            violations.add(field(), "must not be the paper itself");
        }
        match first_with.get(&one.page.id) {
            Some(first)
                if !one
                    .page
                    .works
                    .iter()
                    .any(|id| related[*first].page.works.contains(id)) =>
            {
                violations.add(field(), "is there twice, with no DOI, PMID or arXiv id in common");
            }
            Some(_) => {}
            None => {
                first_with.insert(one.page.id.clone(), related.len());
            }
        }
        related.push(one);
    }
    let parsed = (|| {
        Some(Citations {
            namespace: namespace?,
            page: page?,
            related,
            best: best?,
            task: task?,
        })
    })();
    violations.finish(parsed)
}

fn one(message: &pb::RelatedPaper) -> Result<Related, Violations> {
    let mut violations = Violations::new();
    let page = if let Some(page) = &message.page {
        violations.part("page", page_of_paper(page))
    } else {
        violations.add("page", "is required");
        None
    };
    let text = violations.check("abstract", bounded_prose(&message.r#abstract, 0, MAX_TEXT_CHARS));
    let similarity = violations.check("similarity", Weight::parse(message.similarity));
    let relevance = violations.check("relevance", Weight::parse(message.relevance));
    let count = message.other_page_ids.len();
    if count > MAX_OTHER_IDS {
        violations.add(
            "other_page_ids",
            format!("must have at most {MAX_OTHER_IDS} entries, has {count}"),
        );
    }
    let mut other_ids = Vec::new();
    for (index, id) in message.other_page_ids.iter().take(MAX_OTHER_IDS).enumerate() {
        let field = format!("other_page_ids[{index}]");
        other_ids.extend(violations.check(&field, EvidenceId::parse(id)));
    }
    let parsed = (|| {
        let (page, summary) = (page?, text?);
        let paper = RelatedPaper {
            ids: page.works.clone(),
            has_abstract: !summary.is_empty(),
            is_influential: message.is_influential,
            similarity: similarity?,
            relevance: relevance?,
        };
        Some(Related {
            page,
            other_ids,
            summary,
            paper,
            cites_the_paper: message.cites_the_paper,
        })
    })();
    violations.finish(parsed)
}

/// Renders what became of the papers.
pub(crate) fn render(ranked: RankedCitations) -> pb::RankCitationsResponse {
    pb::RankCitationsResponse {
        ranked: ranked
            .best
            .into_iter()
            .map(|paper| pb::RankedPaper {
                page_id: paper.page.to_string(),
                score: paper.score,
                edge_id: paper.edge.to_string(),
                fragment_id: paper.fragment.to_string(),
                given_page_id: paper.given.to_string(),
            })
            .collect(),
        to_be_fetched: ranked.to_fetch.iter().map(ToString::to_string).collect(),
        merged: small(ranked.merged),
    }
}
