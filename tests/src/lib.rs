//! Tests that need more than one crate: whole graphs with real speech, and suites that every implementation of a part must
//! pass.
//!
//! The tests themselves are in `tests/tests`; speech and vectors, with their origin, in `tests/data`. Tests that need
//! weights look into the model cache and print `skipped: REASON` if they are not there. This library holds nothing that a
//! product may use.
