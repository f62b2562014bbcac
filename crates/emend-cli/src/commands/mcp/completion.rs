//! Completion: what an argument of a prompt or of a resource's address may be, of what there is.

use emend_core::Kind;
use emend_proto::learning::v1::ListResourcesRequest;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};
use serde_json::json;
use tonic::Code;

use super::{
    Server,
    call::leave_out_hidden,
    prompts,
    refusals::error_data,
    resources::TEMPLATES,
    tools::{LIST_RESOURCES, RESOLVE},
};
use crate::failure::Result;

/// How many resources are looked at for keys.
const LOOKED_AT: i32 = 1_000;

impl Server {
    /// At most 100 values of an argument that begin with what was typed.
    pub(super) async fn completed(
        &self,
        request: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let (name, typed) = (&*request.argument.name, &*request.argument.value);
        let is_known = match &request.r#ref {
            Reference::Prompt(prompt) => prompts::has_argument(&prompt.name, name),
            Reference::Resource(resource) => is_in_template(&resource.uri, name),
            _ => false,
        };
        if !is_known {
            let why = "no prompt or resource template of this name has such an argument";
            return Err(ErrorData::invalid_params(why, None));
        }
        let named = request.context.as_ref();
        let namespace = named.and_then(|context| context.get_argument("namespace"));
        let server = namespace.map_or_else(|| self.clone(), |namespace| self.within(namespace));
        let mut begin = server.values(name, typed).await.map_err(error_data)?;
        let has_more = begin.len() > CompletionInfo::MAX_VALUES;
        begin.truncate(CompletionInfo::MAX_VALUES);
        let mut shown = json!(begin);
        leave_out_hidden(&mut shown);
        let shown = shown.as_array().into_iter().flatten();
        let shown = shown.filter_map(|value| value.as_str().map(str::to_owned));
        let completion = CompletionInfo::with_pagination(shown.collect(), None, has_more)
            .map_err(|why| ErrorData::internal_error(why, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn values(&self, name: &str, typed: &str) -> Result<Vec<String>> {
        let mut words = match name {
            "namespace" => self.rights.namespaces(&self.context, RESOLVE).await,
            "kind" => Kind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
            "resolve_type" => ["entity", "verb"].map(str::to_owned).to_vec(),
            "target" => return self.keys(&[Kind::Prompt, Kind::FewShotSet], typed).await,
            "domain" => return self.keys(&[Kind::DomainRule], typed).await,
            "id" => return self.keys(&[Kind::ClaimState], typed).await,
            "phrase" => {
                return self
                    .keys(&[Kind::InvocationPhrase, Kind::EntityAlias], typed)
                    .await;
            }
            _ => Vec::new(),
        };
        words.retain(|word| word.starts_with(typed));
        Ok(words)
    }

    /// Keys of what was learned that begin so once they are written as keys are, each once; none where the caller may not list them.
    async fn keys(&self, kinds: &[Kind], typed: &str) -> Result<Vec<String>> {
        if !self.rights.may(&self.context, LIST_RESOURCES).await {
            return Ok(Vec::new());
        }
        let request = ListResourcesRequest {
            namespace: self.context.namespace(),
            kinds: kinds.iter().map(|kind| kind.number()).collect(),
            key_prefix: typed.to_owned(),
            page_size: LOOKED_AT,
            min_revision: self.newest(),
            ..ListResourcesRequest::default()
        };
        let mut client = self.context.resources().await?;
        let page = match client.list_resources(self.context.request(request)).await {
            Ok(page) => page.into_inner(),
            // What can't begin a key completes to nothing.
            Err(status) if status.code() == Code::InvalidArgument => return Ok(Vec::new()),
            Err(status) => return Err(status.into()),
        };
        let keys = page.resources.into_iter().filter_map(|resource| resource.key);
        let mut keys: Vec<String> = keys.map(|key| key.key).collect();
        keys.sort();
        keys.dedup();
        Ok(keys)
    }
}

/// Whether an argument stands in the template with this address.
fn is_in_template(uri: &str, name: &str) -> bool {
    let mut templates = TEMPLATES.iter().map(|(template, ..)| *template);
    let written = |part: &str| {
        part.split_once("{?")
            .map_or(part.to_owned(), |(address, _)| address.to_owned())
    };
    templates.any(|template| written(template) == written(uri) && template.contains(&format!("{{{name}}}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_known_by_the_template_that_it_stands_in() {
        for (uri, name, expected) in [
            ("emend://{namespace}/learned/{kind}{?page_token}", "kind", true),
            ("emend://{namespace}/learned/{kind}", "namespace", true),
            ("emend://{namespace}/learned/{kind}", "id", false),
            ("emend://{namespace}/claims/{id}", "id", true),
            ("emend://{namespace}/others/{id}", "id", false),
        ] {
            assert_eq!(is_in_template(uri, name), expected, "{uri} {name}");
        }
    }
}
