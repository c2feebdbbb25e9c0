//! The Realtime contract over real sockets, against the shipped scripted graph: what a client can see.
//!
//! Nothing here measures time: what is to happen is waited for long, what is not to happen only shortly.

mod chaos;
mod clients;
mod input;
mod interruption;
mod native;
mod opening;
mod playback;
mod response;
mod resume;
mod turn;
mod world;
