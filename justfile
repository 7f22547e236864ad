# What people do every day; `just` alone lists it.

default:
    @just --list

# Open the console on a service of its own.
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
    BELLWETHER_UPDATE_KEYS=1 cargo test --package bellwether-tui --lib key_table

# Write how every screen of the console looks, to be read and approved as a difference.
snapshots:
    INSTA_UPDATE=always cargo test --package bellwether-tui --test console snapshots

# Draw the screens of the service at ADDRESS at three sizes, and a recording of 20 s, as SVG into docs/console/pictures. The recording acknowledges an event there.
pictures ADDRESS="http://127.0.0.1:8481" KEY_FILE="":
    bash docs/console/pictures/draw {{ADDRESS}} {{KEY_FILE}}

# Walk the console's tour with the real program and write its screens into the document.
tour:
    BELLWETHER_UPDATE_TOUR=1 cargo test --package bellwether-tests --test e2e tour

# Everything that has to hold before a change lands.
check:
    bash .ci/run

# Print every promised figure beside its goal and its reference, or those that contain a word.
bench *ARGUMENTS:
    cargo bench --package bellwether-tests --bench figures -- {{ARGUMENTS}}

# Print how the service fares as open events grow in number, to 1,000,000 or to each of NUMBERS.
growth *NUMBERS:
    cargo bench --package bellwether-tests --bench growth -- {{NUMBERS}}

# Pass a simulated week of 50 million events, or of EVENTS, and print what grows in it.
week EVENTS="50000000":
    cargo bench --package bellwether-backend --bench week -- {{EVENTS}}

# Send for so many MINUTES at 80 % of the maximum rate, and print what grows meanwhile.
soak MINUTES="30":
    cargo bench --package bellwether-tests --bench growth -- minutes {{MINUTES}}

# Print every promised figure of the console beside its goal and an empty ratatui program.
bench-console *ARGUMENTS:
    cargo bench --package bellwether-tests --bench console -- {{ARGUMENTS}}

# Fuzz TARGET (a file of tests/fuzz/targets) for SECONDS; needs cargo-fuzz and a nightly toolchain.
fuzz TARGET SECONDS="60":
    cargo +nightly fuzz run --fuzz-dir tests/fuzz {{TARGET}} -- -max_total_time={{SECONDS}} -timeout=10 -rss_limit_mb=2048

# Walk a million steps with each of ten seeds in which the clock is set; about ten minutes a seed.
million:
    BELLWETHER_TEST_LENGTH=million cargo test --release --package bellwether-backend --lib -- --nocapture clock_walk

# Kill the service under load ROUNDS times.
crash ROUNDS="100":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e crash

# Kill ROUNDS nodes over one PostgreSQL under load, each time the one that leads; then kill and suspend each in turn.
nodes ROUNDS="20":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e -- --nocapture nodes::killing nodes::owners::node_loss

# Walk every journey on a store in a PostgreSQL database, or those whose name contains FILTER.
postgres FILTER="":
    BELLWETHER_TEST_STORE=database cargo test --package bellwether-tests --test e2e -- {{FILTER}}

# Cut connections to PostgreSQL at random bytes, beside a dump, and kill it in every second of ROUNDS.
cuts ROUNDS="20":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e postgres::broken -- --nocapture

# Have nodes stand still for 5, 15 and 60 s, and minutes of a destination with a rate pass.
stops:
    BELLWETHER_TEST_STOPS=1 cargo test --package bellwether-tests --test e2e -- --nocapture nodes::stopped nodes::rates

# Walk the console through a storm of EVENTS with 13 destinations, of which 8 fail.
storm EVENTS="30000":
    BELLWETHER_TEST_STORM={{EVENTS}} cargo test --package bellwether-tests --test e2e -- --nocapture storm

# Render so many templates made from the grammar by chance, optimized; each within its processor time.
templates TEMPLATES="1000000":
    BELLWETHER_TEST_TEMPLATES={{TEMPLATES}} cargo test --config profile.dev.opt-level=1 --target-dir target/fuzzed --package bellwether-backend-model --lib -- --nocapture generated_templates

# Edit a rule so many times while three nodes decide.
edits EDITS="1000":
    BELLWETHER_TEST_EDITS={{EDITS}} cargo test --package bellwether-tests --test e2e nodes::edits -- --nocapture

# Compare the receivers of so many generated configurations of Alertmanager with those of `amtool`.
routes CONFIGURATIONS="100":
    BELLWETHER_TEST_ROUTES={{CONFIGURATIONS}} cargo test --package bellwether-tests --test e2e import -- --nocapture

# Kill and cut off the first of three servers that Patroni keeps, in turns; needs patroni and etcd.
failovers ROUNDS="5":
    BELLWETHER_TEST_FAILOVERS={{ROUNDS}} cargo test --package bellwether-tests --test e2e failover -- --nocapture

# Walk at random against the model of the contract, OPERATIONS long; a SEED repeats a walk.
model OPERATIONS="100000" SEED="":
    BELLWETHER_MODEL_OPERATIONS={{OPERATIONS}} BELLWETHER_MODEL_SEED={{SEED}} cargo test --package bellwether-tests --test e2e model -- --nocapture
