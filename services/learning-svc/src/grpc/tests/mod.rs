//! The RPCs, over a served connection.

mod calls;
mod installation;
mod leaving;
mod served;
