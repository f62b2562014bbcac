//! Which namespaces each request names, and whether it acts for a user: each service says so of its own messages, in one
//! place.

/// The namespaces that a message names. See [`Reaches`](super::Reaches).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces<'a> {
    /// This one.
    One(&'a str),
    /// This one; if empty, all.
    OneOrAll(&'a str),
    /// Each of its items names one.
    Each,
    /// All of them.
    All,
    /// None: it concerns only the caller's own, or the handler narrows it.
    Own,
}

/// What the messages of a service ask for: implemented by a type of the service's own, for each of its messages `T`. See
/// [`addresses!`](crate::addresses).
pub trait Addresses<T> {
    /// Which namespaces it names.
    fn named(message: &T) -> Namespaces<'_>;

    /// The namespace in which it acts for a user, if it does.
    fn for_a_user(_message: &T) -> Option<&str> {
        None
    }
}

/// Implements `Addresses` of `auth` for a type and each of the messages.
#[macro_export]
macro_rules! addresses {
    ($permissions:ty; $( $message:ty => |$it:ident| $named:expr $(, for_user $for_user:expr)? ; )+) => { $(
        impl $crate::auth::Addresses<$message> for $permissions {
            fn named($it: &$message) -> $crate::auth::Namespaces<'_> {
                $named
            }

            $(
                fn for_a_user($it: &$message) -> Option<&str> {
                    $for_user
                }
            )?
        }
    )+ };
}
