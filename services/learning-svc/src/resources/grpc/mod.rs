//! The resource service: the read model answers reads, use cases handle writes.

use emend_base::Error;
use emend_core::{
    Caller, DomainRuleValue, Key, Kind, Learned, OperationId, ResourceKey, Revision, Violations,
    digest::value_checksum,
};
use emend_proto::{
    common::v1 as common,
    learning::v1::{self as pb, resource_service_server::ResourceService},
};
use emend_serve::{
    auth::{Access, Call},
    caller::caller_of,
    fair_semaphore::ClientKey,
    server::deadline::deadline_of,
};
use emend_wire::{page::QueryHash, parse as wire, render as wire_render, value};
use learning_store::log::RevisionFilter;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    etag,
    grpc::{labels, parse},
    log::{
        Log,
        grpc::{Place, page as revision_page},
        revert::{Revert, RevertOperation, RevertedOperation},
    },
    lookups::NearModels,
    resources::{
        Resources,
        import::Imports,
        queue::WriteQueue,
        write::{Delete, Put, PutResource},
    },
    roles::open,
    stream::Stream,
};

pub(crate) mod import;
pub(crate) mod read;

/// Serves the read model and the use cases.
#[derive(Clone)]
pub struct ResourceHandler {
    log: Log,
    writes: WriteQueue,
    stream: Stream,
    near: NearModels,
    imports: Imports,
    slots: import::Slots,
}

impl ResourceHandler {
    /// Reads from `stream`, answers near with the models of `near`, and writes with `resources`, whose lifecycle owns what commits, and with `imports`, each of whose rows
    /// take at most `import_bytes` of memory.
    pub fn new(
        resources: &Resources,
        imports: Imports,
        log: Log,
        stream: Stream,
        near: NearModels,
        import_bytes: usize,
    ) -> Self {
        Self {
            writes: WriteQueue::start(resources),
            log,
            stream,
            near,
            imports,
            slots: import::Slots::new(import_bytes),
        }
    }
}

#[tonic::async_trait]
impl ResourceService for ResourceHandler {
    async fn get_resource(
        &self,
        request: Request<pb::GetResourceRequest>,
    ) -> Result<Response<pb::GetResourceResponse>, Status> {
        let deadline = deadline_of(&request);
        let response = read::get_resource(&self.stream, open(request)?.message, deadline).await?;
        Ok(Response::new(response))
    }

    async fn list_resources(
        &self,
        request: Request<pb::ListResourcesRequest>,
    ) -> Result<Response<pb::ListResourcesResponse>, Status> {
        let deadline = deadline_of(&request);
        let response = read::list_resources(&self.stream, open(request)?.message, deadline).await?;
        Ok(Response::new(response))
    }

    async fn resolve(
        &self,
        request: Request<pb::ResolveRequest>,
    ) -> Result<Response<pb::ResolveResponse>, Status> {
        let deadline = deadline_of(&request);
        let response = read::resolve(&self.stream, &self.near, open(request)?.message, deadline).await?;
        Ok(Response::new(response))
    }

    async fn put_resource(
        &self,
        request: Request<pb::PutResourceRequest>,
    ) -> Result<Response<pb::PutResourceResponse>, Status> {
        let (caller, client) = (caller_of(&request), ClientKey::of_request(&request));
        let put = put(&caller, &open(request)?.message).map_err(Error::from)?;
        let key = put.key.clone();
        let mut warnings = warnings(&put.value.learned);
        if key.kind == Kind::Prompt
            && let Ok(state) = self.stream.state()
        {
            warnings.extend(labels::warning(&state, &key));
        }
        let done = self.writes.put(client, put).await?;
        Ok(Response::new(pb::PutResourceResponse {
            resource: Some(resource(&key, &done)),
            revision: done.revision.0,
            warnings,
        }))
    }

    async fn delete_resource(
        &self,
        request: Request<pb::DeleteResourceRequest>,
    ) -> Result<Response<pb::DeleteResourceResponse>, Status> {
        let (caller, client) = (caller_of(&request), ClientKey::of_request(&request));
        let delete = delete(&caller, &open(request)?.message).map_err(Error::from)?;
        let revision = self.writes.delete(client, delete).await?;
        Ok(Response::new(pb::DeleteResourceResponse { revision: revision.0 }))
    }

    async fn import_resources(
        &self,
        request: Request<Streaming<pb::ImportResourcesRequest>>,
    ) -> Result<Response<pb::ImportResourcesResponse>, Status> {
        let caller = caller_of(&request);
        let access = Access::of(&request);
        let who = (&caller, &access);
        let response = import::run(&self.imports, &self.slots, who, request.into_inner()).await?;
        Ok(Response::new(response))
    }

    async fn list_revisions(
        &self,
        request: Request<pb::ListRevisionsRequest>,
    ) -> Result<Response<pb::ListRevisionsResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let query = query(&request);
        let (filter, place, limit) = list(&request, query).map_err(Error::from)?;
        let (mut records, mut more) = self.log.list(&filter, place.before, limit).await?;
        if request.revision > 0 {
            records.retain(|record| record.revision.0 == request.revision);
            more = false;
        }
        Ok(Response::new(revision_page(query, place, records, more)))
    }

    async fn revert_revision(
        &self,
        request: Request<pb::RevertRevisionRequest>,
    ) -> Result<Response<pb::RevertRevisionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let answer = match revert(&caller, &message).map_err(Error::from)? {
            Reverting::Revision(revert) => pb::RevertRevisionResponse {
                revision: self.log.revert(&revert, &access).await?.0,
                ..pb::RevertRevisionResponse::default()
            },
            Reverting::Preview(revert) => pb::RevertRevisionResponse {
                reverted_count: wire_render::saturated(self.log.preview(&revert, &access).await?),
                ..pb::RevertRevisionResponse::default()
            },
            Reverting::Operation(revert) => {
                reverted_operation(self.log.revert_operation(&revert, &access).await?)
            }
        };
        Ok(Response::new(answer))
    }
}

fn resource(key: &ResourceKey, done: &PutResource) -> common::Resource {
    let value = &done.value;
    common::Resource {
        key: Some(wire_render::resource_key(key)),
        revision: done.resource_revision.0,
        value: Some(wire_render::value_of(key, value)),
        value_checksum: value_checksum(&value::encode(value)),
        committed_at: Some(wire_render::timestamp_from_micros(done.committed_at)),
        etag: etag::of_revision(done.resource_revision.0),
    }
}

/// What of a value may not be meant.
fn warnings(learned: &Learned) -> Vec<String> {
    let Learned::Prompt(prompt) = learned else {
        return Vec::new();
    };
    let undeclared = prompt.undeclared().into_iter();
    undeclared
        .map(|name| format!("{{{{{name}}}}} is no variable of the prompt: it is sent as it stands"))
        .collect()
}

pub(crate) fn put(caller: &Caller, request: &pb::PutResourceRequest) -> Result<Put, Violations> {
    let mut violations = Violations::new();
    let key = wire::resource_key(request.key.as_ref());
    let as_sent = request.key.as_ref().map_or("", |key| key.key.as_str());
    let value = wire::resource_value(request.value.as_ref(), key.as_ref().ok(), as_sent);
    let value = violations.part("value", value);
    let key = violations.part("key", key);
    if let Some(key) = &key {
        if let Err((field, invalid)) = key.check_new() {
            violations.add(format!("key.{field}"), invalid.0);
        }
        violations.check("key.qualifier", key.check_by_hand());
    }
    if let Some(Learned::DomainRule(DomainRuleValue { cause: Some(_), .. })) =
        value.as_ref().map(|value| &value.learned)
    {
        violations.add(
            "value.domain_rule.cause",
            "must be empty: only the system gives causes",
        );
    }
    let etag = parse::etag(&mut violations, "etag", &request.etag);
    let reason = parse::reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        Some(Put {
            key: key?,
            value: value?,
            etag: etag?,
            reason: reason?,
            actor: actor?,
        })
    })();
    violations.finish(parsed)
}

pub(crate) fn delete(caller: &Caller, request: &pb::DeleteResourceRequest) -> Result<Delete, Violations> {
    let mut violations = Violations::new();
    let key = violations.part("key", wire::resource_key(request.key.as_ref()));
    if let Some(key) = &key {
        violations.check("key.qualifier", key.check_by_hand());
    }
    let etag = parse::etag(&mut violations, "etag", &request.etag);
    let reason = parse::reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        Some(Delete {
            key: key?,
            etag: etag?,
            reason: reason?,
            actor: actor?,
        })
    })();
    violations.finish(parsed)
}

/// What is to be reverted.
#[derive(Debug, Clone)]
pub(crate) enum Reverting {
    Revision(Revert),
    Preview(Revert),
    Operation(RevertOperation),
}

pub(crate) fn revert(caller: &Caller, request: &pb::RevertRevisionRequest) -> Result<Reverting, Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let operation = match request.operation_id.as_str() {
        "" => Some(None),
        id => violations.check("operation_id", OperationId::parse(id)).map(Some),
    };
    match (request.operation_id.is_empty(), request.revision) {
        (true, ..1) => violations.add("revision", format!("must be 1 or more, is {}", request.revision)),
        (false, revision) if revision != 0 => violations.add("revision", "must be 0 with operation_id"),
        _ => {}
    }
    let reason = parse::required_reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        let (namespace, reason, actor) = (namespace?, reason?, actor?);
        Some(match operation? {
            None => {
                let revert = Revert {
                    namespace,
                    revision: Revision(request.revision),
                    reason,
                    actor,
                };
                if request.preview {
                    Reverting::Preview(revert)
                } else {
                    Reverting::Revision(revert)
                }
            }
            Some(operation) => Reverting::Operation(RevertOperation {
                namespace,
                operation,
                preview: request.preview,
                reason,
                actor,
            }),
        })
    })();
    violations.finish(parsed)
}

fn reverted_operation(reverted: RevertedOperation) -> pb::RevertRevisionResponse {
    let left = reverted.left.into_iter().map(|left| pb::RevertLeft {
        key: Some(wire_render::resource_key(&left.key)),
        revision: left.revision.0,
        description: left.why,
    });
    let count = wire_render::saturated;
    pb::RevertRevisionResponse {
        revision: reverted.last.0,
        operation_id: reverted.operation.to_string(),
        first_revision: reverted.first.0,
        reverted_count: count(reverted.reverted),
        already_count: count(reverted.already),
        left_count: count(reverted.left_count),
        left: left.collect(),
    }
}

pub(crate) fn query(request: &pb::ListRevisionsRequest) -> QueryHash {
    let without_page = pb::ListRevisionsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListRevisions", &without_page)
}

pub(crate) fn list(
    request: &pb::ListRevisionsRequest,
    query: QueryHash,
) -> Result<(RevisionFilter, Place, u32), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let kind = violations.check("kind", wire::optional_kind(request.kind));
    let key = match request.key.as_str() {
        "" => Some(Vec::new()),
        key => {
            let kinds = kind.flatten().map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
            violations.check("key", Key::of_any(&kinds, key))
        }
    };
    let operation = match request.operation_id.as_str() {
        "" => Some(None),
        id => violations.check("operation_id", OperationId::parse(id)).map(Some),
    };
    let limit = violations.check("page_size", wire::page_size(request.page_size, 50, 500));
    let place = violations.check("page_token", Place::parse(query, &request.page_token));
    let revision = violations.check("revision", wire::revision(request.revision));
    let parsed = (|| {
        let filter = RevisionFilter {
            namespace: namespace?,
            kind: kind?,
            keys: key?,
            operation: operation?,
        };
        let (mut place, mut limit) = (place?, limit?);
        let revision = revision?;
        if revision.0 > 0 {
            place.before = place.before.or(Some(Revision(revision.0.saturating_add(1))));
            limit = 1;
        }
        Some((filter, place, limit))
    })();
    violations.finish(parsed)
}
