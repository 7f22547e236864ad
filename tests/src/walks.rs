//! Lengths of long walks. Walks are short by default, and have their full length with
//! `BELLWETHER_TEST_LENGTH=full`, as in `.ci/run`. The variable with the name of a walk sets its
//! length. `BELLWETHER_TEST_LENGTH=million` is for tests that are started manually: `just million`.

/// Each walk with its default and its full length.
const WALKS: [(&str, u64, u64); 21] = [
    // Times of clock steps in each direction: before, during and after a beat.
    ("BELLWETHER_CLOCK_STEPS", 1, 3),
    // For walks with clock changes: the first store, the steps per walk, and the number of walks.
    ("BELLWETHER_CLOCK_LIFE", 0, 0),
    ("BELLWETHER_CLOCK_WALK", 1_000, 5_000),
    ("BELLWETHER_CLOCK_WALKS", 1, 1),
    // For walks of decisions: the steps per walk, and the number of walks.
    ("BELLWETHER_DECISION_STEPS", 300, 1_000),
    ("BELLWETHER_DECISION_WALKS", 2, 6),
    // Failed operations of a disk.
    ("BELLWETHER_DISK_ERRORS", 50, 150),
    // Positions at which a system call of each command fails.
    ("BELLWETHER_FAILED_CALLS", 2, 5),
    // Flipped bits.
    ("BELLWETHER_FLIPS", 50, 100),
    // Runs of a store that end in power failures.
    ("BELLWETHER_POWER_LIVES", 300, 1_000),
    // Half hours of simulated paging.
    ("BELLWETHER_PAGING_HALF_HOURS", 1, 2),
    // Acknowledgements concurrent with an escalation step.
    ("BELLWETHER_RACES", 100, 300),
    // Moments during a review at which a silence ends.
    ("BELLWETHER_REVIEW_MOMENTS", 60, 150),
    // Random schedules.
    ("BELLWETHER_SCHEDULES", 300, 3_000),
    // Walks through pages during writes.
    ("BELLWETHER_SEARCH_WALKS", 30, 100),
    // Events whose statistics are compared with the lists.
    ("BELLWETHER_STATISTICS", 2_000, 6_000),
    // Simulated hours, the events per step (1 to twice as many), and the first seed.
    ("BELLWETHER_SIMULATIONS", 1, 1),
    ("BELLWETHER_SIMULATED_EVENTS", 20, 30),
    ("BELLWETHER_SIMULATION_SEED", 1, 1),
    // Random alert sequences over pairs of senders, and the first seed.
    ("BELLWETHER_TEST_REPORTS", 5, 20),
    ("BELLWETHER_TEST_SEED", 1, 1),
];

const MILLION: [(&str, u64); 3] = [
    ("BELLWETHER_CLOCK_WALK", 1_000_000),
    ("BELLWETHER_CLOCK_WALKS", 10),
    ("BELLWETHER_DECISION_WALKS", 1_000),
];

/// Returns the length of a walk.
///
/// # Panics
/// Panics if the test is not listed or its variable is not a number.
pub fn walk_length(walk: &str) -> u64 {
    let listed = WALKS.iter().find(|(name, ..)| *name == walk);
    let (_, default, full) = listed.unwrap_or_else(|| panic!("{walk} is not listed"));
    let variable = |name: &str| std::env::var_os(name).and_then(|it| it.into_string().ok());
    let million = MILLION.iter().find(|(name, _)| *name == walk);
    match (
        variable(walk),
        variable("BELLWETHER_TEST_LENGTH").as_deref(),
    ) {
        (Some(set), _) => set.parse().expect("a number"),
        (None, Some("full")) => *full,
        (None, Some("million")) => million.map_or(*full, |(_, length)| *length),
        _ => *default,
    }
}
