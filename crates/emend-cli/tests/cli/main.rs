//! The `emend` command as a process, against services that it runs itself.

mod citations;
mod claims;
mod columns;
mod configuration;
mod demo;
mod domains;
mod evaluate;
mod evidence;
mod generator;
mod harness;
mod journey;
mod mcp;
mod near;
mod privacy;
mod profile;
mod prompts;
mod ratings;
mod replay;
mod search_ratings;
mod suffixes;
mod tls;
mod transfer;
mod up;
