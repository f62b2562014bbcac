//! The `emend` command as a process, against services that it runs itself.

<<<<<<< HEAD
mod claims;
=======
mod citations;
>>>>>>> evicite
mod configuration;
mod demo;
mod domains;
mod harness;
mod journey;
mod mcp;
mod privacy;
mod replay;
mod suffixes;
mod tls;
mod transfer;
mod up;
