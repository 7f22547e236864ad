//! End-to-end test support for scenarios, tables and benchmarks.
//!
//! The program under test is always the real binary on real sockets and files; only its environment
//! is simulated: receivers of webhooks, mail servers, and terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed check panics")]

pub mod alertmanager;
pub mod cutter;
pub mod distance;
pub mod engine;
pub mod eventually;
pub mod grpc;
pub mod middleman;
pub mod modules;
mod own_threads;
pub mod page;
pub mod patroni;
pub mod postgres;
pub mod process;
pub mod programs;
pub mod providers;
pub mod proxy;
pub mod receiver;
pub mod rest;
pub mod small_disk;
pub mod smtp;
pub mod terminal;
pub mod tls;
pub mod tree;
pub mod upstream;
pub mod walks;
pub mod wire;
pub mod world;
