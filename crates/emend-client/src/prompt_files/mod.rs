//! Prompts as files, one for each target: what `emend outputs prompts pull` and `push` exchange and what a node mirrors into a
//! directory.
//!
//! A file is named after its target ([`file_name`]) and holds the text byte for byte, below a header where the prompt has
//! variables or settings ([`PromptFile`]). It is replaced as a whole ([`replace`]).

mod directory;
mod foreign;
mod format;
mod names;

pub use self::{
    directory::{Mirrored, foreign, mirrored, names_in, replace, synchronise},
    format::{FileError, Header, PromptFile},
    names::{file_name, is_file_name, target_of},
};
