//! Every RPC, over a served connection.

mod calls;
mod leaving;
mod served;
mod validation;
