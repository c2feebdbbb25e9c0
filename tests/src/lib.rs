//! What more than one crate is tested with. This library holds nothing that a product may use.
//!
//! [`fuzz`] has one body per parser of bytes from outside. `tests/tests/short_fuzz` runs each for a few seconds on damaged
//! vectors, with the stable toolchain; `fuzz/` runs the same bodies for long, with coverage. Speech and vectors for all
//! crates lie, with their origin, in `tests/data`.
#![warn(missing_docs)]

#[cfg(feature = "models")]
pub mod fuzz;
