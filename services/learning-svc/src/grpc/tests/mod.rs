//! Every RPC, in process.
