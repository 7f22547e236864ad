# Common development tasks; `just` without arguments lists them.

default:
    @just --list

# Open the console with a service in the same process.
run *ARGUMENTS:
    cargo run -- {{ARGUMENTS}}

# Run the tests whose name contains FILTER, or all.
test FILTER="":
    cargo test --workspace -- {{FILTER}}

# Run the tests that start no process; needs cargo-nextest.
fast:
    cargo nextest run --workspace --profile fast

# Format everything.
format:
    cargo fmt --all

# Write the table of the console's keys into its documentation.
keys:
    BELLWETHER_UPDATE_KEYS=1 cargo test key_table

# Write the page of all settings from the annotated file.
settings:
    BELLWETHER_UPDATE_SETTINGS=1 cargo test --test e2e settings_page

# Update the snapshots of all console screens; review the differences before you commit them.
snapshots:
    INSTA_UPDATE=always cargo test --test console snapshots

# Draw the screens of the demo, or of the service at ADDRESS, in three sizes, and a recording of 20 s, as SVG into docs/console/pictures. The recording acknowledges an event.
pictures ADDRESS="" KEY_FILE="":
    bash docs/console/pictures/draw {{ADDRESS}} {{KEY_FILE}}

# Run the console's tour with the real program and write its screens into the document.
tour:
    BELLWETHER_UPDATE_TOUR=1 cargo test --test e2e tour

# Run all checks that a change must pass.
check:
    bash .ci/run

# Print every published figure, or those whose name contains a word, next to its goal and its reference.
bench *ARGUMENTS:
    cargo bench --package bellwether-tests --bench figures -- {{ARGUMENTS}}

# Print how the service performs as the number of open events grows to 1,000,000, or to each of NUMBERS.
growth *NUMBERS:
    cargo bench --package bellwether-tests --bench growth -- {{NUMBERS}}

# Simulate a week with 50 million events, or EVENTS, and print the growth of memory, store and log.
week EVENTS="50000000":
    cargo bench --package bellwether-backend --bench week -- {{EVENTS}}

# Send for MINUTES at 80 % of the maximum rate, and print the growth of memory, store and log.
soak MINUTES="30":
    cargo bench --package bellwether-tests --bench growth -- minutes {{MINUTES}}

# Print every published figure of the console next to its goal and an empty ratatui program.
bench-console *ARGUMENTS:
    cargo bench --package bellwether-tests --bench console -- {{ARGUMENTS}}

# Fuzz TARGET (a file of tests/fuzz/targets) for SECONDS; needs cargo-fuzz and a nightly toolchain.
fuzz TARGET SECONDS="60":
    cargo +nightly fuzz run --fuzz-dir tests/fuzz {{TARGET}} -- -max_total_time={{SECONDS}} -timeout=10 -rss_limit_mb=2048

# Walk a million steps, including clock changes, with each of ten seeds; about ten minutes per seed.
million:
    BELLWETHER_TEST_LENGTH=million cargo test --release --package bellwether-backend --lib -- --nocapture clock_walk

# Kill the service under load ROUNDS times.
crash ROUNDS="100":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e crash

# Kill the leader of the nodes over one PostgreSQL database under load, ROUNDS times; then kill and suspend each node in turn.
nodes ROUNDS="20":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e -- --nocapture nodes::killing nodes::owners::node_loss

# Cause 15 kinds of fault, ROUNDS times each, in three nodes over one PostgreSQL database with work of every kind in progress.
rounds ROUNDS="20":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e -- --nocapture nodes::rounds

# Run every journey, or those whose name contains FILTER, on a store in a PostgreSQL database.
postgres FILTER="":
    BELLWETHER_TEST_STORE=database cargo test --package bellwether-tests --test e2e -- {{FILTER}}

# Cut connections to PostgreSQL at random bytes during a dump in ROUNDS rounds, and kill the server in every second one.
cuts ROUNDS="20":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e postgres::broken -- --nocapture

# Suspend nodes for 5, 15 and 60 s, and test a destination's rate limit for minutes.
stops:
    BELLWETHER_TEST_STOPS=1 cargo test --package bellwether-tests --test e2e -- --nocapture nodes::stopped nodes::rates

# Use the console during a storm of EVENTS with 13 destinations, 8 of which are failing.
storm EVENTS="30000":
    BELLWETHER_TEST_STORM={{EVENTS}} cargo test --package bellwether-tests --test e2e -- --nocapture storm

# Render TEMPLATES random templates from the grammar, optimized, and check the CPU time of each.
templates TEMPLATES="1000000":
    BELLWETHER_TEST_TEMPLATES={{TEMPLATES}} cargo test --config profile.dev.opt-level=1 --target-dir target/fuzzed --package bellwether-backend-model --lib -- --nocapture generated_templates

# Edit a rule EDITS times while three nodes decide.
edits EDITS="1000":
    BELLWETHER_TEST_EDITS={{EDITS}} cargo test --package bellwether-tests --test e2e nodes::edits -- --nocapture

# Compare the receivers of CONFIGURATIONS generated Alertmanager configurations with those of `amtool`.
routes CONFIGURATIONS="100":
    BELLWETHER_TEST_ROUTES={{CONFIGURATIONS}} cargo test --package bellwether-tests --test e2e import -- --nocapture

# Kill or cut off the primary of three servers managed by Patroni, in turns; needs patroni and etcd.
failovers ROUNDS="5":
    BELLWETHER_TEST_FAILOVERS={{ROUNDS}} cargo test --package bellwether-tests --test e2e failover -- --nocapture

# Compare a random walk of OPERATIONS with the model of the contract; a SEED repeats a walk.
model OPERATIONS="100000" SEED="":
    BELLWETHER_MODEL_OPERATIONS={{OPERATIONS}} BELLWETHER_MODEL_SEED={{SEED}} cargo test --package bellwether-tests --test e2e model -- --nocapture
