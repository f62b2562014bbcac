//! What the caller may do, as each service says it of its own methods.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use emend_proto::access::v1::{GetAccessRequest, GetAccessResponse};
use tokio::{sync::Mutex, time::Instant};
use tonic::Code;

use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// For how long what a service says of a caller is believed.
const BELIEVED: Duration = Duration::from_secs(10);
/// For how long a service that can't be reached is not asked again.
const AWAY: Duration = Duration::from_secs(1);

/// The caller's rights, however long its session lives: what a service said is asked for again once it is old.
#[derive(Debug, Default)]
pub(super) struct Rights {
    feedback: Mutex<Option<Said>>,
    learning: Mutex<Option<Said>>,
}

/// What a service said last, and when.
#[derive(Debug)]
struct Said {
    /// Why it could not be asked, otherwise.
    access: Result<Arc<GetAccessResponse>, String>,
    at: Instant,
}

impl Said {
    fn still_holds(&self) -> bool {
        let holds = if self.access.is_ok() { BELIEVED } else { AWAY };
        self.at.elapsed() < holds
    }
}

impl Rights {
    /// Says what is wrong with the token or the namespace before an assistant begins. A service that can't be reached now
    /// may be there later.
    pub(super) async fn checked(&self, context: &Context) -> Result {
        let (feedback, learning) = tokio::join!(self.feedback(context), self.learning(context));
        let mut some = Vec::new();
        let mut all_know = true;
        for access in [feedback, learning] {
            match access {
                Ok(access) => some.push(access),
                Err(failure) if is_away(&failure) => all_know = false,
                Err(failure) => return Err(failure),
            }
        }
        if !all_know {
            return Ok(());
        }
        if some.iter().any(|access| !access.methods.is_empty()) {
            return Ok(());
        }
        // Both services have the same grants.
        let reached: BTreeSet<&str> = some
            .iter()
            .flat_map(|access| &access.namespaces)
            .map(String::as_str)
            .collect();
        let reached: Vec<&str> = reached.into_iter().collect();
        let caller = some.first().map_or("", |access| access.caller.as_str());
        Err(Failure::usage(format!(
            "the caller {caller:?} has no grant in the namespace {:?}: its grants reach {}",
            context.namespace(),
            if reached.is_empty() {
                "no namespace".to_owned()
            } else {
                reached.join(", ")
            }
        )))
    }

    /// Who calls, as the services know it; `None` if neither can say now.
    pub(super) async fn known(&self, context: &Context) -> Option<Arc<GetAccessResponse>> {
        let (feedback, learning) = tokio::join!(self.feedback(context), self.learning(context));
        feedback.or(learning).ok()
    }

    /// Why a service can't be reached, if one can't; whatever they say of the caller.
    pub(super) async fn out_of_reach(&self, context: &Context) -> Option<Failure> {
        let (feedback, learning) = tokio::join!(self.feedback(context), self.learning(context));
        [feedback, learning].into_iter().find_map(|said| {
            said.err()
                .filter(|failure| !matches!(failure, Failure::Refused(_)) || is_away(failure))
        })
    }

    /// Whether the caller may call a method. What is not known is left to the service to decide.
    pub(super) async fn may(&self, context: &Context, method: &str) -> bool {
        let access = self.of(context, method).await;
        access.is_none_or(|access| has(&access.methods, method))
    }

    /// Whether the caller may call a method for a user. What is not known is left to the service to decide.
    pub(super) async fn may_for_users(&self, context: &Context, method: &str) -> bool {
        let access = self.of(context, method).await;
        access.is_none_or(|access| has(&access.methods_for_users, method))
    }

    /// The caller's name; empty where callers are not authenticated, and where it is not known.
    pub(super) async fn caller(&self, context: &Context, method: &str) -> String {
        let access = self.of(context, method).await;
        access.map_or_else(String::new, |access| access.caller.clone())
    }

    /// The namespaces that are known: the one that is served, and those that the caller's grants name.
    pub(super) async fn namespaces(&self, context: &Context, method: &str) -> Vec<String> {
        let access = self.of(context, method).await;
        let mut all = access.map_or_else(Vec::new, |access| access.namespaces.clone());
        all.push(context.namespace());
        all.sort();
        all.dedup();
        all
    }

    async fn of(&self, context: &Context, method: &str) -> Option<Arc<GetAccessResponse>> {
        if method.starts_with("emend.feedback.") {
            self.feedback(context).await.ok()
        } else {
            self.learning(context).await.ok()
        }
    }

    async fn feedback(&self, context: &Context) -> Result<Arc<GetAccessResponse>> {
        let asked = async {
            let mut client = context.feedback_access().await?;
            Ok(client.get_access(request(context)).await?.into_inner())
        };
        said(&self.feedback, asked).await
    }

    async fn learning(&self, context: &Context) -> Result<Arc<GetAccessResponse>> {
        let asked = async {
            let mut client = context.learning_access().await?;
            Ok(client.get_access(request(context)).await?.into_inner())
        };
        said(&self.learning, asked).await
    }
}

/// What a service said, asked for by one at a time. That it refused is not remembered.
async fn said(
    last: &Mutex<Option<Said>>,
    asked: impl Future<Output = Result<GetAccessResponse>>,
) -> Result<Arc<GetAccessResponse>> {
    let mut last = last.lock().await;
    if let Some(said) = last.as_ref().filter(|said| said.still_holds()) {
        return said.access.clone().map_err(Failure::Unavailable);
    }
    *last = None;
    let answer = asked.await.map(Arc::new);
    let access = match &answer {
        Ok(access) => Ok(Arc::clone(access)),
        Err(failure) if is_away(failure) => Err(failure.to_string()),
        Err(_) => return answer,
    };
    let at = Instant::now();
    *last = Some(Said { access, at });
    answer
}

/// Whether a service can't say it now.
fn is_away(failure: &Failure) -> bool {
    match failure {
        Failure::Unreachable { .. } | Failure::Unavailable(_) => true,
        Failure::Refused(refused) => matches!(
            refused.code,
            Code::Unavailable | Code::DeadlineExceeded | Code::Unimplemented
        ),
        _ => false,
    }
}

fn request(context: &Context) -> tonic::Request<GetAccessRequest> {
    context.request(GetAccessRequest {
        namespace: context.namespace(),
    })
}

/// Whether a sorted list has the method.
fn has(methods: &[String], method: &str) -> bool {
    methods
        .binary_search_by(|known| known.as_str().cmp(method))
        .is_ok()
}
