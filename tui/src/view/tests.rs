//! Screens on a test backend.
