//! Lengths of the randomized tests: short by default, and full if `BELLWETHER_TEST_LENGTH=full` is
//! set, as in `.ci/run`. A variable with the name of a test overrides only its length.

/// Randomized tests with their default and full lengths.
const WALKS: [(&str, u64, u64); 10] = [
    // Clock steps in each direction before, during and after a heartbeat.
    ("BELLWETHER_CLOCK_STEPS", 1, 3),
    // Failed disk operations.
    ("BELLWETHER_DISK_ERRORS", 50, 150),
    // Flipped bits.
    ("BELLWETHER_FLIPS", 50, 100),
    // Store runs that end in a power failure.
    ("BELLWETHER_POWER_LIVES", 300, 2_000),
    // Acknowledgements concurrent with an escalation step.
    ("BELLWETHER_RACES", 100, 1_000),
    // Paginated searches concurrent with writers.
    ("BELLWETHER_SEARCH_WALKS", 30, 100),
    // Simulated hours, and the first seed.
    ("BELLWETHER_SIMULATIONS", 1, 1),
    ("BELLWETHER_SIMULATION_SEED", 1, 1),
    // Random alert sequences over pairs of senders, and the first seed.
    ("BELLWETHER_TEST_REPORTS", 5, 50),
    ("BELLWETHER_TEST_SEED", 1, 1),
];

/// Returns the length of a randomized test.
///
/// # Panics
/// Panics if the test is not listed or its variable is not a number.
pub fn walk_length(walk: &str) -> u64 {
    let listed = WALKS.iter().find(|(name, ..)| *name == walk);
    let (_, default, full) = listed.unwrap_or_else(|| panic!("{walk} is not listed"));
    let variable = |name: &str| std::env::var_os(name).and_then(|it| it.into_string().ok());
    match (variable(walk), variable("BELLWETHER_TEST_LENGTH")) {
        (Some(set), _) => set.parse().expect("a number"),
        (None, Some(length)) if length == "full" => *full,
        _ => *default,
    }
}
