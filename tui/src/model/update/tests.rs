//! Tables and properties of `update`.
