//! The product from outside, end to end.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod access;
mod backup;
mod canary;
mod command;
mod conditional;
mod console;
mod crash;
mod deliveries;
mod destinations;
mod dialects;
mod disk;
mod events;
mod explain;
mod foreign;
mod grpc;
mod idempotency;
mod intake;
mod journey;
mod listing;
mod lives;
mod looks;
mod mail;
mod manual;
mod model;
mod overload;
mod pages;
mod plain;
mod rates;
mod reference;
mod resources;
mod samples;
mod settled;
mod tidy;
mod tls;
mod tour;
mod upgrade;
mod weather;
mod web;
