//! Every RPC, through a served connection.

mod calls;
mod served;
mod validation;
