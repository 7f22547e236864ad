# What people do every day; `just` alone lists it.

default:
    @just --list

# Open the console on a service of its own.
run *ARGUMENTS:
    cargo run --release -- {{ARGUMENTS}}

# Run the tests whose name contains FILTER, or all.
test FILTER="":
    cargo test --workspace -- {{FILTER}}

# Format everything.
format:
    cargo fmt --all

# Write the table of the console's keys into its documentation.
keys:
    BELLWETHER_UPDATE_KEYS=1 cargo test --package bellwether-tui --lib table_of_keys

# Everything that has to hold before a change lands.
check:
    bash .ci/run

# Print the benchmarks beside their references.
bench NAME="intake":
    cargo bench --package bellwether-tests --bench {{NAME}}

# Kill the service under load ROUNDS times.
crash ROUNDS="100":
    BELLWETHER_TEST_KILLS={{ROUNDS}} cargo test --package bellwether-tests --test e2e crash
