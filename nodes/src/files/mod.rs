//! Audio files as sources and sinks.

pub mod input;
pub mod output;
pub mod sink;

use std::path::{Path, PathBuf};

/// A path of an option: relative ones start at the graph file's folder; `-` stays what it is.
pub(crate) fn located(folder: &Path, path: &str) -> PathBuf {
    if path == "-" { PathBuf::from(path) } else { folder.join(path) }
}
