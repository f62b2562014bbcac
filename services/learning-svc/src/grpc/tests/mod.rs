//! The RPCs, over a served connection.

mod calls;
mod revoked_rights;
mod served;
