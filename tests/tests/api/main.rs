//! The routes over HTTP, over real sockets: speech, transcripts, chat and voices of graphs whose nodes are made here.
//!
//! Nothing here measures time: what is to happen is waited for long.

mod chat;
mod document;
mod nodes;
mod socket;
mod speech;
mod transcribe;
mod voices;
mod world;
