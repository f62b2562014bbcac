//! What the caller of one request may do: put into the request's extensions by the layer, checked by handlers.
//!
//! A handler begins with [`open`], which checks the namespace that the message names, or, for a message with items,
//! calls [`Access::admit`] for each. A long-running one calls [`Access::as_of_now`] again before each part that it
//! writes. A request that passed no layer may do nothing.

use std::sync::Arc;

use emend_base::error::Error;
use emend_core::{Caller, Namespace};
use tonic::Request;

use super::{
    addressed::{Addresses, Namespaces},
    authorization::Recheck,
    principal::{Principal, Reach},
    role::Role,
};

/// What the caller of a request may do.
#[derive(Debug, Clone)]
pub struct Access(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Authentication is off.
    Open,
    /// A known caller, the role that the method requires, and how to check again; `None` if its rights can't change.
    Known(Arc<Principal>, Role, Option<Recheck>),
    /// No layer identified the caller.
    Unknown,
}

/// A request whose namespaces were checked.
#[derive(Debug)]
pub struct Call<T> {
    /// What the caller may do.
    pub access: Access,
    /// The request message.
    pub message: T,
}

/// Unwraps a request if its caller may do what it asks for in the namespace that it names.
pub fn open<A: Addresses<T>, T>(request: Request<T>) -> Result<Call<T>, Error> {
    let access = Access::of(&request);
    let message = request.into_inner();
    access.admit::<A, T>(&message)?;
    Ok(Call { access, message })
}

impl Access {
    /// Everything, for everyone: authentication is off.
    pub fn open() -> Self {
        Self(Kind::Open)
    }

    /// What a known caller may do through a method that requires `role`; never re-checked.
    pub fn known(principal: Arc<Principal>, role: Role) -> Self {
        Self(Kind::Known(principal, role, None))
    }

    /// The same, for as long as it holds.
    pub(super) fn rechecked(principal: Arc<Principal>, role: Role, recheck: Recheck) -> Self {
        Self(Kind::Known(principal, role, Some(recheck)))
    }

    /// What the same caller may do now. Fails if it may no longer call the method: its credentials have expired, or the
    /// files say otherwise than when the call began.
    pub fn as_of_now(&self) -> Result<Self, Error> {
        match &self.0 {
            Kind::Known(_, _, Some(recheck)) => recheck.access(),
            _ => Ok(self.clone()),
        }
    }

    /// Whether the caller's rights have changed since the call began; if so, a supervised stream was ended for that
    /// reason.
    pub fn has_changed(&self) -> bool {
        matches!(&self.0, Kind::Known(_, _, Some(recheck)) if recheck.has_changed())
    }

    /// A request with these rights, for calling handlers within this process.
    pub fn request<T>(self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(self);
        request
    }

    /// The rights of a request; none if no layer identified the caller.
    pub fn of<T>(request: &Request<T>) -> Self {
        request
            .extensions()
            .get::<Self>()
            .cloned()
            .unwrap_or(Self(Kind::Unknown))
    }

    /// Refuses a message, or an item of one, that names a foreign namespace or acts for a user when the caller may not.
    ///
    /// An invalid namespace name is let through: the handler reports what is wrong with it.
    pub fn admit<A: Addresses<T>, T>(&self, message: &T) -> Result<(), Error> {
        match A::named(message) {
            Namespaces::OneOrAll("") | Namespaces::All => self.reaches_all()?,
            Namespaces::One(namespace) | Namespaces::OneOrAll(namespace) => self.reaches(namespace)?,
            Namespaces::Each | Namespaces::Own => {}
        }
        match A::for_a_user(message) {
            Some(namespace) => self.speaks_for_users(namespace),
            None => Ok(()),
        }
    }

    /// Narrows a list of namespaces, where an empty one means all, to what the caller may reach. An empty result means
    /// all.
    pub fn narrow(&self, asked: Vec<Namespace>) -> Result<Vec<Namespace>, Error> {
        match self.reach() {
            Reach::All => Ok(asked),
            Reach::Only(own) if own.is_empty() => Err(denied("in any namespace")),
            Reach::Only(own) if asked.is_empty() => Ok(own.to_vec()),
            reach @ Reach::Only(_) => {
                let foreign = asked.iter().find(|namespace| !reach.covers(namespace.as_str()));
                match foreign.map(ToString::to_string) {
                    None => Ok(asked),
                    Some(foreign) => Err(denied(&format!("in the namespace {foreign}"))),
                }
            }
        }
    }

    /// Fails unless the caller may do this on a user's behalf in that namespace.
    pub fn speaks_for_users(&self, namespace: &str) -> Result<(), Error> {
        let may = match &self.0 {
            Kind::Open => true,
            Kind::Known(principal, role, _) => {
                principal.acts_for_users(*role, namespace) || Namespace::parse(namespace).is_err()
            }
            Kind::Unknown => false,
        };
        if may {
            Ok(())
        } else {
            Err(Error::PermissionDenied {
                reason: "NOT_FOR_USERS",
                message: "the caller may not act for users here: its grant needs act_for_users".to_owned(),
            })
        }
    }

    /// Whether it is known who calls: callers are authenticated, and this one is not anonymous.
    pub fn is_authenticated(&self) -> bool {
        matches!(&self.0, Kind::Known(principal, ..) if *principal.caller() != Caller::anonymous())
    }

    /// Whether the caller also holds `role` there, besides the role that the method requires.
    pub fn holds(&self, role: Role, namespace: &Namespace) -> bool {
        match &self.0 {
            Kind::Open => true,
            Kind::Known(principal, ..) => principal
                .reach(role)
                .is_some_and(|reach| reach.covers(namespace.as_str())),
            Kind::Unknown => false,
        }
    }

    fn reach(&self) -> Reach {
        match &self.0 {
            Kind::Open => Reach::All,
            Kind::Known(principal, role, _) => principal.reach(*role).cloned().unwrap_or_else(Reach::none),
            Kind::Unknown => Reach::none(),
        }
    }

    fn reaches(&self, namespace: &str) -> Result<(), Error> {
        if self.reach().covers(namespace) || Namespace::parse(namespace).is_err() {
            Ok(())
        } else {
            Err(denied(&format!("in the namespace {namespace}")))
        }
    }

    fn reaches_all(&self) -> Result<(), Error> {
        if self.reach() == Reach::All {
            Ok(())
        } else {
            Err(denied("in all namespaces"))
        }
    }
}

/// The same whether the namespace exists or not.
fn denied(place: &str) -> Error {
    Error::PermissionDenied {
        reason: "NAMESPACE_DENIED",
        message: format!("the caller may not do this {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::principal::Grant;

    fn operator_of(namespaces: &[&str], act_for_users: bool) -> Access {
        let grant = Grant {
            roles: vec![Role::Operator],
            reach: Reach::only(
                namespaces
                    .iter()
                    .map(|name| Namespace::parse(name).unwrap())
                    .collect(),
            ),
            act_for_users,
        };
        let principal = Principal::new(Caller::parse("ops").unwrap(), &[grant]);
        Access::known(Arc::new(principal), Role::Operator)
    }

    fn reason(result: Result<(), Error>) -> Option<&'static str> {
        result.err().map(|error| error.reason())
    }

    struct List(&'static str);
    struct Revert(&'static str);
    struct Messages;

    crate::addresses! {
        Messages;
        List => |it| Namespaces::OneOrAll(it.0);
        Revert => |it| Namespaces::One(it.0), for_user Some(it.0);
    }

    fn admitted(access: &Access, namespace: &'static str) -> Option<&'static str> {
        reason(access.admit::<Messages, _>(&List(namespace)))
    }

    #[test]
    fn a_foreign_namespace_is_refused_and_an_invalid_one_left_to_the_handler() {
        let access = operator_of(&["shop"], false);
        assert_eq!(admitted(&access, "shop"), None);
        assert_eq!(admitted(&access, "other"), Some("NAMESPACE_DENIED"));
        assert_eq!(admitted(&access, "No Name"), None);
        assert_eq!(admitted(&access, ""), Some("NAMESPACE_DENIED"), "all of them");
        let other = access.admit::<Messages, _>(&List("other")).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the caller may not do this in the namespace other"
        );
        assert_eq!(admitted(&Access::open(), ""), None);
    }

    #[test]
    fn a_request_that_bypassed_the_layer_has_no_rights() {
        let refused = open::<Messages, _>(Request::new(List("shop"))).err();
        assert_eq!(refused.map(|refused| refused.reason()), Some("NAMESPACE_DENIED"));
        let opened = open::<Messages, _>(Access::open().request(List("shop"))).ok();
        assert_eq!(opened.map(|call| call.message.0), Some("shop"));
    }

    #[test]
    fn only_callers_that_may_act_for_users_do() {
        let revert = |act_for_users| {
            reason(operator_of(&["shop"], act_for_users).admit::<Messages, _>(&Revert("shop")))
        };
        assert_eq!(revert(false), Some("NOT_FOR_USERS"));
        assert_eq!(revert(true), None);
    }

    #[test]
    fn an_empty_list_is_narrowed_and_a_foreign_one_refused() {
        let names =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| Namespace::parse(name).unwrap()).collect() };
        let access = operator_of(&["b", "a"], false);
        assert_eq!(access.narrow(vec![]).unwrap(), names(&["a", "b"]));
        assert_eq!(access.narrow(names(&["b"])).unwrap(), names(&["b"]));
        assert!(access.narrow(names(&["b", "c"])).is_err());
        assert_eq!(Access::open().narrow(vec![]).unwrap(), vec![]);
    }
}
