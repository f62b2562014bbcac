//! Resources: what was learned, what is proposed, claims and prompts, each with an address. Long ones have pages: a document's
//! `next` is the address of the page after it.

mod address;
mod contents;

use emend_core::Kind;
use emend_proto::learning::v1::ListResourcesRequest;
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};

pub(super) use self::address::{Address, Shown};
use super::{
    Server,
    call::leave_out_hidden,
    refusals::error_data,
    tools::{GET_CLAIM, LIST, LIST_RESOURCES},
};
use crate::failure::Result;

const JSON: &str = "application/json";
/// How many targets of prompts one page of the list names.
const TARGETS: i32 = 100;

/// The templates: address, name, what it shows, and the method that reads it.
pub(super) const TEMPLATES: [(&str, &str, &str, &str); 4] = [
    (
        "emend://{namespace}/learned/{kind}{?page_token}",
        "learned",
        "What was learned of a kind, for everybody. Subscribe to it to be told what is learned, as it is learned.",
        LIST_RESOURCES,
    ),
    (
        "emend://{namespace}/pending{?page_token}",
        "pending",
        "What was proposed and is not decided: what gathers votes, and what waits for a person. Subscribers are told what comes \
         to wait for a person and what is decided, and not of votes that decide nothing.",
        LIST,
    ),
    (
        "emend://{namespace}/claims/{id}{?page_token}",
        "claim",
        "A claim as corrected, with its confidence and its edges. Subscribers are told what people decide about claims, edges \
         and domains, and not of evidence that backends add.",
        GET_CLAIM,
    ),
    (
        "emend://{namespace}/prompts/{target}",
        "prompt",
        "The current prompts of a target, by label, and the examples that people rated.",
        LIST_RESOURCES,
    ),
];

impl Shown {
    /// The method that reads it.
    const fn method(&self) -> &'static str {
        match self {
            Self::Learned(_) | Self::Prompt(_) => LIST_RESOURCES,
            Self::Pending => LIST,
            Self::Claim(_) => GET_CLAIM,
        }
    }
}

impl Server {
    /// The resources that the caller may read; claims, of which there may be very many, are read by their template.
    pub(super) async fn resources(
        &self,
        page: Option<PaginatedRequestParams>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page_token = page.and_then(|page| page.cursor).unwrap_or_default();
        let mut listed = Vec::new();
        if page_token.is_empty() {
            for shown in always_there() {
                if self.rights.may(&self.context, shown.method()).await {
                    listed.push(self.resource(shown));
                }
            }
        }
        let mut next_cursor = None;
        if self.rights.may(&self.context, LIST_RESOURCES).await {
            let (targets, next) = self.targets(page_token).await.map_err(error_data)?;
            listed.extend(
                targets
                    .into_iter()
                    .map(|target| self.resource(Shown::Prompt(target))),
            );
            next_cursor = Some(next).filter(|next| !next.is_empty());
        }
        let mut listed = ListResourcesResult::with_all_items(listed);
        listed.next_cursor = next_cursor;
        Ok(listed)
    }

    /// A page of the targets that have prompts, each once, and the token of the next page.
    async fn targets(&self, page_token: String) -> Result<(Vec<String>, String)> {
        let request = ListResourcesRequest {
            page_size: TARGETS,
            page_token,
            ..self.resources_of(Kind::Prompt)
        };
        let mut client = self.context.resources().await?;
        let page = client
            .list_resources(self.context.request(request))
            .await?
            .into_inner();
        let keys = page.resources.into_iter().filter_map(|resource| resource.key);
        let mut targets: Vec<String> = keys.map(|key| key.key).collect();
        targets.dedup();
        Ok((targets, page.next_page_token))
    }

    fn resource(&self, shown: Shown) -> Resource {
        let (name, description) = match &shown {
            Shown::Learned(kind) => (
                format!("learned/{}", kind.name()),
                kind.rules().summary.to_owned(),
            ),
            Shown::Pending => ("pending".to_owned(), TEMPLATES[1].2.to_owned()),
            Shown::Claim(id) => (format!("claims/{id}"), TEMPLATES[2].2.to_owned()),
            Shown::Prompt(target) => (format!("prompts/{target}"), TEMPLATES[3].2.to_owned()),
        };
        let address = Address::of(&self.context.namespace(), shown);
        Resource::new(address.to_string(), name)
            .with_description(description)
            .with_mime_type(JSON)
    }

    /// The templates of what the caller may read.
    pub(super) async fn resource_templates(&self) -> ListResourceTemplatesResult {
        let mut templates = Vec::new();
        for (uri, name, description, method) in TEMPLATES {
            if self.rights.may(&self.context, method).await {
                let template = ResourceTemplate::new(uri, name)
                    .with_description(description)
                    .with_mime_type(JSON);
                templates.push(template);
            }
        }
        ListResourceTemplatesResult::with_all_items(templates)
    }

    /// A document, as its address says.
    pub(super) async fn document(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let address = Address::parse(uri).map_err(error_data)?;
        let server = self.within(&address.namespace);
        let mut shown = Box::pin(server.contents(&address)).await.map_err(error_data)?;
        leave_out_hidden(&mut shown);
        let contents = ResourceContents::text(shown.to_string(), uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]))
    }
}

/// What every namespace shows. Profiles are their users' own.
fn always_there() -> impl Iterator<Item = Shown> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Profile);
    std::iter::once(Shown::Pending).chain(kinds.map(Shown::Learned))
}
