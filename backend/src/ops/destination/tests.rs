//! Destinations.
