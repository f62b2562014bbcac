//! The RPCs, over a served connection.

mod calls;
mod leaving;
mod served;
