//! The product from outside, end to end.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod access;
mod audit;
mod backup;
mod calendars;
mod canary;
mod command;
mod conditional;
mod console;
mod crash;
mod deliveries;
mod destinations;
mod dialects;
mod digests;
mod disk;
mod events;
mod explain;
mod flapping;
mod foreign;
mod front;
mod generated;
mod groups;
mod grpc;
mod idempotency;
mod inhibitions;
mod intake;
mod journey;
mod keys;
mod limits;
mod links;
mod listing;
mod lives;
mod looks;
mod mail;
mod manual;
mod mappings;
mod metrics;
mod model;
mod nodes;
mod oidc;
mod overload;
mod own_events;
mod packaging;
mod pages;
mod pausing;
mod plain;
mod postgres;
mod presets;
mod protocol;
mod rates;
mod reference;
mod resources;
mod roles;
mod running;
mod samples;
mod scopes;
mod script;
mod secrets;
mod settled;
mod shadow;
mod silences;
mod start;
mod statistics;
mod tidy;
mod tls;
mod tour;
mod traces;
mod upgrade;
mod views;
mod weather;
mod web;
