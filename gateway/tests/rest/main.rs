//! The gateway from outside: REST requests over real sockets, in front of a fake backend.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed check panics")]

mod backend;
mod binding;
mod limits;
mod openapi;
mod pages;
mod problems;
mod remote;
mod routing;
mod senders;
mod serving;
mod world;
