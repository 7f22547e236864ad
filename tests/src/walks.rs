//! Lengths of the long walks: short by default, in full where `BELLWETHER_TEST_LENGTH=full` is set, as in
//! `.ci/run`. A variable with the name of a walk sets that walk alone.

/// Each walk with its default and its full length.
const WALKS: [(&str, u64, u64); 12] = [
    // Steps of the clock in each direction, before, in and after a beat.
    ("BELLWETHER_CLOCK_STEPS", 1, 3),
    // Walks of decisions, and the steps of each.
    ("BELLWETHER_DECISION_WALKS", 2, 100),
    ("BELLWETHER_DECISION_STEPS", 300, 1_000),
    // Failed operations of a disk.
    ("BELLWETHER_DISK_ERRORS", 50, 150),
    // Flipped bits.
    ("BELLWETHER_FLIPS", 50, 100),
    // Lives of a store that end with the power.
    ("BELLWETHER_POWER_LIVES", 300, 2_000),
    // Acknowledgements beside an escalation step.
    ("BELLWETHER_RACES", 100, 1_000),
    // Walks through pages beside writers.
    ("BELLWETHER_SEARCH_WALKS", 30, 100),
    // Simulated hours, and the seed of the first.
    ("BELLWETHER_SIMULATIONS", 1, 1),
    ("BELLWETHER_SIMULATION_SEED", 1, 1),
    // Walks of alerts over pairs of senders, and the seed of the first.
    ("BELLWETHER_TEST_REPORTS", 5, 50),
    ("BELLWETHER_TEST_SEED", 1, 1),
];

/// Returns the length of a walk.
///
/// # Panics
/// If the walk is not listed, or its variable is not a number.
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
