//! The Realtime protocol over a graph: without a socket in virtual time, and over real sockets.

mod door;
mod facts;
mod host;
mod page;
mod reaper;
mod toy;
