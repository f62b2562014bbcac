//! The RPCs, over a served connection.

mod calls;
mod installation;
mod revoked_rights;
mod served;
