//! The Realtime client: one test body over a socket and in process, and servers that do what they should not.

mod breaks;
mod fake;
mod odd;
mod place;
mod talk;
mod tls;
#[path = "../realtime/toy.rs"]
mod toy;
