//! Simulates an hour of a whole installation. Despite misbehaving receivers, edits and crashes, the
//! results are exactly those of a small model of the specified behaviour.

mod check;
mod model;
mod outside;
mod scenario;
mod walk;

use scenario::Scenario;
pub(super) use scenario::event_of;

use super::ground::Ground;
use crate::testing::walks::walk_length;

/// Number of sites that events come from. The rules for the last sites use misbehaving
/// destinations.
const SITES: usize = 45;

/// Simulates an hour. Notifications released at the same time are sent one by one, as in the model,
/// or gathered into one message if there are at least `together_from`.
async fn hours(ground: impl AsyncFn() -> Option<Ground>, together_from: usize) {
    let first = walk_length("BELLWETHER_SIMULATION_SEED");
    for seed in first..first + walk_length("BELLWETHER_SIMULATIONS") {
        let Some(ground) = ground().await else { return };
        eprintln!("BELLWETHER_SIMULATION_SEED={seed}");
        let mut scenario = Scenario::new(ground, seed, together_from).await;
        scenario.pass_an_hour().await;
        scenario.end().await;
        scenario.check().await;
    }
}

/// Generates a test of an hour for each kind of storage, with and without gathering.
macro_rules! hours {
    ($($name:ident: $ground:expr, $together_from:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            hours($ground, $together_from).await;
        }
    )+};
}

hours! {
    an_hour_in_memory_ends_as_the_model_says:
        async || Some(Ground::memory()), 0;
    an_hour_on_a_disk_that_loses_power_ends_as_the_model_says:
        async || Some(Ground::disk()), 0;
    an_hour_in_a_database_that_is_left_amid_commits_ends_as_the_model_says:
        Ground::database, 0;
    an_hour_of_released_messages_grouped_ends_as_the_model_says:
        async || Some(Ground::disk()), 2;
}
