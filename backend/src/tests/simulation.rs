//! Simulates an hour of a whole installation: the results are exactly those of a small model of the
//! contract, despite misbehaving receivers, edits and crashes.

mod check;
mod model;
mod outside;
mod scenario;
mod walk;

use scenario::Scenario;
pub(super) use scenario::event_of;

use super::ground::Ground;
use crate::testing::walks::walk_length;

/// Number of sites that events come from; the last ones belong to misbehaving destinations.
const SITES: usize = 45;

/// Simulates an hour. Held notifications are reported one by one, as the model counts them, or
/// gathered from `together_from` on.
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

/// Generates tests for an hour on each storage, with and without gathering.
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
