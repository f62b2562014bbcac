//! `emend resources`: shows what was learned, and sets it by hand.

use clap::Subcommand;
use emend_core::{Invalid, Learned, Synonym, kinds};
use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceValue},
    learning::v1::{
        DeleteResourceRequest, GetResourceRequest, ListResourcesRequest, PutResourceRequest,
        PutResourceResponse,
    },
};
use serde_json::json;

use super::Decision;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Cell, Column, Output, Table},
    view,
    words::{self, Kind, Relation},
};

/// List, get, set or delete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend resources list --kind entity_alias --prefix j
  emend resources get invocation_phrase \"set up a CSA\"
  emend resources set entity_alias \"J. Smith\" person:jane-smith --by dana --reason \"the only one\"
  emend resources set prohibition \"wind down the fund\" delete_fund
  emend resources delete invocation_phrase \"set up a CSA\" --reason \"the verb is retired\"

What a person sets is pinned: votes do not replace it.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List resources in key order
    List(ListArgs),
    /// Get one resource
    Get {
        /// The resource's key.
        #[command(flatten)]
        key: Key,
        /// Answer from a state no older than this revision
        #[arg(long, value_name = "REVISION", default_value_t = 0)]
        min_revision: i64,
    },
    /// Set a value, as a person's decision
    Set(SetArgs),
    /// Delete a value
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only resources of this kind; may be given several times
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// Only keys that begin with this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// List this user's own resources instead of everybody's
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// Answer from a state no older than this revision
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    min_revision: i64,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: usize,
}

/// The key of a resource.
#[derive(Debug, clap::Args)]
struct Key {
    /// The kind of resource
    #[arg(value_enum)]
    kind: Kind,
    /// The phrase, alias, term or pattern of domains, in any form
    phrase: String,
    /// The forbidden choice of a prohibition, or the term that a synonym stands for
    #[arg(long, value_name = "CHOICE", default_value = "", hide_default_value = true)]
    qualifier: String,
    /// The user whose own resource it is
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The kind of resource
    #[arg(value_enum)]
    kind: Kind,
    /// The phrase, alias, term or pattern of domains
    phrase: String,
    /// The verb, the entity's id, the choice never to offer, the term that it stands for, or the decision about a domain:
    /// block, unblock, unblock:LEVEL or a level, or a tuning as one line
    choice: String,
    /// How a synonym is related to the term that it stands for [default: equivalent]
    #[arg(long, value_enum, value_name = "RELATION")]
    relation: Option<Relation>,
    /// Set it for this user only
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

#[derive(Debug, clap::Args)]
struct DeleteArgs {
    /// The resource's key.
    #[command(flatten)]
    key: Key,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

/// The qualifier of a key that has none on the command line: the first one, where it is one of a list.
pub(super) fn default_qualifier(kind: emend_core::Kind) -> &'static str {
    match kind.rules().qualifier.map(|qualifier| qualifier.form) {
        Some(kinds::Form::OneOf(names)) => names.first().copied().unwrap_or_default(),
        _ => "",
    }
}

impl Key {
    fn message(self, namespace: String) -> ResourceKey {
        let qualifier = if self.qualifier.is_empty() {
            default_qualifier(self.kind.0).to_owned()
        } else {
            self.qualifier
        };
        ResourceKey {
            namespace,
            kind: self.kind.number(),
            key: self.phrase,
            qualifier,
            user_id: self.user,
        }
    }
}

/// The request that sets a value by hand. The qualifier, where the kind has one, is sent as the value has it.
pub fn put_request(namespace: String, phrase: String, learned: &Learned) -> PutResourceRequest {
    PutResourceRequest {
        key: Some(ResourceKey {
            namespace,
            kind: learned.kind().number(),
            key: phrase,
            qualifier: learned.qualifier().map_or_else(
                || default_qualifier(learned.kind()).to_owned(),
                |field| field.text.into_owned(),
            ),
            user_id: String::new(),
        }),
        value: Some(ResourceValue {
            value: Some(emend_wire::kinds::value(learned)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The value that the arguments describe.
fn learned(kind: Kind, choice: String, relation: Option<Relation>) -> Result<Learned> {
    let learned =
        Learned::of(kind.0, choice).map_err(|Invalid(why)| Failure::usage(format!("CHOICE: {why}")))?;
    match (learned, relation) {
        (learned, None) => Ok(learned),
        (Learned::Synonym(synonym), Some(relation)) => Ok(Learned::Synonym(Synonym {
            relation: relation.into(),
            ..synonym
        })),
        (_, Some(_)) => Err(Failure::usage("--relation is for synonyms only")),
    }
}

/// Lists, gets, sets or deletes resources.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List(args) => {
            let request = ListResourcesRequest {
                namespace: context.namespace(),
                kinds: words::kind_numbers(&args.kind),
                key_prefix: args.prefix,
                user_id: args.user.clone(),
                min_revision: args.min_revision,
                ..ListResourcesRequest::default()
            };
            let (resources, more) = context.list(&request, args.limit).await?;
            let what = if args.user.is_empty() {
                "resources for everybody (of one user's own: --user ID)".to_owned()
            } else {
                format!("resources of the user {:?}", args.user)
            };
            let is_filtered = !request.kinds.is_empty() || !request.key_prefix.is_empty();
            let none = context.none_found(&what, is_filtered);
            output.list(&resources, more, view::message, table, &none)
        }
        Action::Get { key, min_revision } => {
            let request = GetResourceRequest {
                key: Some(key.message(context.namespace())),
                min_revision,
            };
            let response = context
                .resources()
                .await?
                .get_resource(context.request(request))
                .await?;
            let resource = required(response.into_inner().resource)?;
            let width = output.width();
            output.result(&view::message(&resource), || {
                table(std::slice::from_ref(&resource)).render(width)
            })
        }
        Action::Set(args) => {
            let learned = learned(args.kind, args.choice, args.relation)?;
            let mut request = put_request(context.namespace(), args.phrase, &learned);
            if let Some(key) = &mut request.key {
                key.user_id = args.user;
            }
            request.etag = args.etag;
            request.reason = args.decision.reason;
            request.on_behalf_of = args.decision.by;
            put(request, context, output).await
        }
        Action::Delete(args) => {
            let request = DeleteResourceRequest {
                key: Some(args.key.message(context.namespace())),
                etag: args.etag,
                reason: args.decision.reason,
                on_behalf_of: args.decision.by,
            };
            delete(request, context, output).await
        }
    }
}

/// Sets a value, and prints it.
pub(super) async fn put(request: PutResourceRequest, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.resources().await?;
    let response = client.put_resource(context.request(request)).await?.into_inner();
    was_put(response, output)
}

/// Prints in which revision a value was set.
pub(super) fn was_put(response: PutResourceResponse, output: &mut Output<'_>) -> Result {
    let resource = required(response.resource)?;
    let json = json!({"resource": view::message(&resource), "revision": response.revision});
    output.result(&json, || match response.revision {
        0 => format!("{} had this value already", described(&resource)),
        revision => format!("{} (revision {revision})", described(&resource)),
    })
}

/// Deletes a value, and prints in which revision.
pub(super) async fn delete(
    request: DeleteResourceRequest,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let mut client = context.resources().await?;
    let response = client
        .delete_resource(context.request(request))
        .await?
        .into_inner();
    output.result(&json!({"revision": response.revision}), || {
        format!("Deleted (revision {})", response.revision)
    })
}

fn required(resource: Option<Resource>) -> Result<Resource> {
    resource.ok_or_else(|| Failure::failed("learning-svc answered without the resource"))
}

/// A resource in short: `set up a CSA → create_isda`.
pub fn described(resource: &Resource) -> String {
    view::value_pair(resource.value.as_ref())
}

fn table(resources: &[Resource]) -> Table {
    Table::new([
        ("KIND", Column::Fixed),
        ("KEY", Column::Text),
        ("CHOICE", Column::Text),
        ("USER", Column::Text),
        ("REVISION", Column::Number),
        ("COMMITTED", Column::Time),
    ])
    .with_rows(resources, |resource| {
        let key = resource.key.clone().unwrap_or_default();
        [
            words::kind_name(key.kind).into(),
            Cell::whole(key.key),
            Cell::whole(view::value_text(resource.value.as_ref())),
            key.user_id.into(),
            resource.revision.to_string().into(),
            view::short_time(resource.committed_at.as_ref()).into(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use emend_core::{Kind, Learned};
    use emend_proto::common::v1::{ResourceKey, ResourceValue};

    use super::*;

    #[test]
    fn a_list_fits_a_terminal_of_80_columns() {
        let resource = |key: &str, user_id: &str, verb: &str| Resource {
            key: Some(ResourceKey {
                kind: Kind::InvocationPhrase.number(),
                key: key.to_owned(),
                user_id: user_id.to_owned(),
                ..ResourceKey::default()
            }),
            value: Some(ResourceValue {
                value: Learned::of(Kind::InvocationPhrase, verb.to_owned())
                    .ok()
                    .map(|learned| emend_wire::kinds::value(&learned)),
                ..ResourceValue::default()
            }),
            revision: 1_234,
            committed_at: Some(prost_types::Timestamp::default()),
            ..Resource::default()
        };
        let shown = [
            resource(
                "set up a credit support annex for a new counterparty",
                "",
                "create_isda",
            ),
            resource("book", "mia", "book_trade"),
        ];
        let text = table(&shown).render(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in ["create_isda", "book_trade", "mia", "1234", "counterparty"] {
            assert!(text.contains(part), "{part} is cut: {text}");
        }
    }
}
