//! Short programs that show one thing each. This library is empty; the programs stand beside it and are run with
//! `cargo run -p omni-flow-examples --example NAME`.
