//! Graph files.

/// A value of a graph file with its place.
pub struct Tree;
/// One finding.
pub struct Diagnostic;
