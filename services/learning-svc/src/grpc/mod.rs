//! What handlers of all capabilities share: parsers and renderers. Each handler parses a request, calls one use case and
//! maps the result; all violations of a request are reported at once, and then nothing is written.

pub(crate) mod candidates;
pub(crate) mod labels;
pub(crate) mod parse;
pub(crate) mod render;

#[cfg(test)]
mod tests;
