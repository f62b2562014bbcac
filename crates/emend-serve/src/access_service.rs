//! Tells callers what they may do here, whatever their roles: `emend.access.v1`.

use std::sync::Arc;

use emend_base::Error;
use emend_core::{Invalid, Namespace};
use emend_proto::access::v1::{
    GetAccessRequest, GetAccessResponse,
    access_service_server::{AccessService, AccessServiceServer},
};
use tonic::{Request, Response, Status};

use crate::{
    auth::{Principal, Reach, Role, Rules},
    methods::Methods,
};

/// Answers for one server.
#[derive(Debug, Clone)]
pub(crate) struct Answering {
    /// The methods of the server's own services, sorted, each without the slash before it, with the role that it requires:
    /// none where callers are not authenticated.
    methods: Arc<[(String, Option<Role>)]>,
}

/// A server of it: of the methods of the services of these `names`, by these `rules` if callers are authenticated.
pub(crate) fn server(
    methods: &Methods,
    names: &[&'static str],
    rules: Option<&Rules>,
) -> AccessServiceServer<Answering> {
    AccessServiceServer::new(Answering {
        methods: own(methods, names, rules).into(),
    })
}

/// The methods that are told of, sorted.
fn own(methods: &Methods, names: &[&'static str], rules: Option<&Rules>) -> Vec<(String, Option<Role>)> {
    let is_own = |path: &str| {
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        service.is_some_and(|(service, _)| names.contains(&service))
    };
    let paths = methods.iter().map(|(path, _)| path).filter(|path| is_own(path));
    let mut own: Vec<_> = paths
        .filter_map(|path| {
            let role = match rules {
                // A method without a row is refused to everybody.
                Some(rules) => Some(rules.get(path)?.role),
                None => None,
            };
            Some((path.trim_start_matches('/').to_owned(), role))
        })
        .collect();
    own.sort_unstable();
    own
}

impl Answering {
    fn everything(&self) -> GetAccessResponse {
        let methods: Vec<_> = self.methods.iter().map(|(method, _)| method.clone()).collect();
        GetAccessResponse {
            all_namespaces: true,
            methods_for_users: methods.clone(),
            methods,
            ..GetAccessResponse::default()
        }
    }

    fn held(&self, principal: &Principal, namespace: &str) -> GetAccessResponse {
        let with = |allowed: &dyn Fn(Role) -> bool| {
            let methods = self.methods.iter();
            methods
                .filter(|(_, role)| role.is_some_and(allowed))
                .map(|(method, _)| method.clone())
                .collect()
        };
        let holds = |role| {
            principal
                .reach(role)
                .is_some_and(|reach| namespace.is_empty() || reach.covers(namespace))
        };
        let (all_namespaces, namespaces) = match principal.anywhere() {
            Reach::All => (true, Vec::new()),
            Reach::Only(names) => (false, names.iter().map(ToString::to_string).collect()),
        };
        GetAccessResponse {
            caller: principal.caller().to_string(),
            authenticated: true,
            all_namespaces,
            namespaces,
            methods: with(&holds),
            methods_for_users: with(&|role| principal.acts_for_users(role, namespace)),
        }
    }
}

#[tonic::async_trait]
impl AccessService for Answering {
    async fn get_access(
        &self,
        request: Request<GetAccessRequest>,
    ) -> Result<Response<GetAccessResponse>, Status> {
        let namespace = &request.get_ref().namespace;
        if !namespace.is_empty() {
            Namespace::parse(namespace).map_err(|Invalid(why)| Error::invalid("namespace", why))?;
        }
        let access = match request.extensions().get::<Arc<Principal>>() {
            Some(principal) => self.held(principal, namespace),
            None if self.methods.iter().all(|(_, role)| role.is_none()) => self.everything(),
            // The layer lets nobody through whom it does not know.
            None => {
                return Err(Status::from(Error::Unauthenticated {
                    reason: "CREDENTIALS_MISSING",
                    message: "the call needs a bearer token or a client certificate".to_owned(),
                }));
            }
        };
        Ok(Response::new(access))
    }
}

#[cfg(test)]
mod tests {
    use emend_core::Caller;

    use super::*;
    use crate::auth::{Grant, Reaches, rule};

    const READ: &str = "library.v1.LibraryService/List";

    fn answering() -> Answering {
        Answering {
            methods: Arc::new([
                (
                    "library.v1.LibraryService/Import".to_owned(),
                    Some(Role::Operator),
                ),
                (READ.to_owned(), Some(Role::Reviewer)),
            ]),
        }
    }

    async fn asked(
        answering: &Answering,
        namespace: &str,
        principal: Option<Principal>,
    ) -> Result<GetAccessResponse, Status> {
        let mut request = Request::new(GetAccessRequest {
            namespace: namespace.to_owned(),
        });
        if let Some(principal) = principal {
            request.extensions_mut().insert(Arc::new(principal));
        }
        Ok(answering.get_access(request).await?.into_inner())
    }

    fn reviewer() -> Principal {
        let grant = Grant {
            roles: vec![Role::Reviewer],
            reach: Reach::only(vec![Namespace::parse("shop").unwrap()]),
            act_for_users: false,
        };
        Principal::new(Caller::parse("rita").unwrap(), &[grant])
    }

    #[tokio::test]
    async fn a_caller_is_told_what_it_may_call_where() {
        let access = asked(&answering(), "shop", Some(reviewer())).await.unwrap();
        assert_eq!((&*access.caller, access.authenticated), ("rita", true));
        assert_eq!(
            (access.all_namespaces, access.namespaces),
            (false, vec!["shop".to_owned()])
        );
        assert_eq!(access.methods, [READ]);
        assert_eq!(access.methods_for_users, [""; 0]);
        assert_eq!(
            asked(&answering(), "other", Some(reviewer()))
                .await
                .unwrap()
                .methods,
            [""; 0]
        );
        assert_eq!(
            asked(&answering(), "", Some(reviewer())).await.unwrap().methods,
            [READ]
        );
    }

    #[tokio::test]
    async fn without_authentication_everything_is_allowed_and_with_it_nothing_to_strangers() {
        let refused = asked(&answering(), "", None).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unauthenticated);
        let open = Answering {
            methods: Arc::new([(READ.to_owned(), None)]),
        };
        let access = asked(&open, "", None).await.unwrap();
        assert_eq!(
            (access.authenticated, access.all_namespaces, access.methods),
            (false, true, vec![READ.to_owned()])
        );
    }

    #[tokio::test]
    async fn a_bad_namespace_is_named() {
        let status = asked(&answering(), "No Name", Some(reviewer()))
            .await
            .unwrap_err();
        let explained = emend_base::status::Explained::from(&status);
        assert_eq!(explained.field_violations[0].field, "namespace");
    }

    #[test]
    fn only_the_servers_own_methods_are_told() {
        let methods = Methods::of(crate::library::descriptors());
        let rules = [rule(
            "/library.v1.LibraryService/List",
            Role::Reviewer,
            Reaches::One,
        )];
        let told = |rules: Option<&[crate::auth::Rule]>| {
            let rules = rules.map(Rules::of);
            let names = ["library.v1.LibraryService"];
            own(&methods, &names, rules.as_ref())
        };
        assert_eq!(told(Some(&rules)), [(READ.to_owned(), Some(Role::Reviewer))]);
        let open = told(None);
        assert!(
            open.len() > 1 && open.iter().all(|(_, role)| role.is_none()),
            "{open:?}"
        );
    }
}
