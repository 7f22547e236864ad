//! Destinations between the wire and the domain: secrets go in and never come out.

mod inward;
mod outward;

pub use inward::{delivery_settings, destination_type};
