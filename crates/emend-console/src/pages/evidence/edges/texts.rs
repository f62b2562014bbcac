//! What an edge joins, in words: the premise and the hypothesis.

use std::time::Duration;

use emend_proto::learning::v1::{
    Edge, ExportMaterialsRequest, NodeRef, export_materials_response::Line, node_ref::Node,
};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::Status;

use super::is_missing;
use crate::{page::Visitor, pages::evidence::claims};

/// How long the materials of a task are read in search of a text.
const PATIENCE: Duration = Duration::from_secs(2);

/// The two texts; empty where one is not known.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// What its source says.
    pub premise: String,
    /// What its target says.
    pub hypothesis: String,
}

impl Texts {
    /// Reads both.
    pub(super) async fn read(visitor: &Visitor, edge: &Edge) -> Result<Self, Status> {
        Ok(Self {
            premise: text_of(visitor, edge, edge.source.as_ref()).await?,
            hypothesis: text_of(visitor, edge, edge.target.as_ref()).await?,
        })
    }
}

async fn text_of(visitor: &Visitor, edge: &Edge, node: Option<&NodeRef>) -> Result<String, Status> {
    let read = match node.and_then(|node| node.node.as_ref()) {
        Some(Node::ClaimId(id)) => claims::read(visitor, id).await.map(|claim| claim.text),
        Some(node) => match timeout(PATIENCE, exported(visitor, &edge.task_id, node)).await {
            Ok(read) => read,
            Err(_) => Ok(String::new()),
        },
        None => Ok(String::new()),
    };
    match read {
        Err(status) if is_missing(&status) => Ok(String::new()),
        read => read,
    }
}

/// The text of a fragment, or the title of a page: only the materials of the edge's task tell it.
async fn exported(visitor: &Visitor, task: &str, node: &Node) -> Result<String, Status> {
    if task.is_empty() || !visitor.may("learning.v1.EvidenceService/ExportMaterials") {
        return Ok(String::new());
    }
    let request = visitor.services.call(ExportMaterialsRequest {
        namespace: visitor.namespace.clone(),
        task_id: task.to_owned(),
        ..ExportMaterialsRequest::default()
    });
    let answer = visitor.services.evidence().export_materials(request).await?;
    let mut lines = answer.into_inner();
    while let Some(line) = lines.next().await {
        match (line?.line, node) {
            (Some(Line::Page(exported)), Node::PageId(id)) => {
                let page = exported.page.unwrap_or_default();
                if page.page_id == *id {
                    return Ok(page.title);
                }
            }
            (Some(Line::Fragment(fragment)), Node::FragmentId(id)) if fragment.fragment_id == *id => {
                return Ok(fragment.text);
            }
            // Pages come first, then fragments: behind them is nothing that is sought.
            (Some(Line::Claim(_) | Line::Edge(_)) | None, _) => break,
            _ => {}
        }
    }
    Ok(String::new())
}
