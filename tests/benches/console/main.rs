//! Every figure promised for the console, with its goal and an empty ratatui program as reference.
//!
//! `cargo bench --package bellwether-tests --bench console -- [ROW…] [--out FILE] [--against FILE]`
//! runs all rows, or those whose names contain a word. `--out` writes them to a file as JSON, and
//! `--against` prints the changes since such a file. The program under test is the real binary, on
//! a pseudo-terminal of 120 columns and 36 rows.

mod empty;
mod idle;
mod keys;
mod load;
mod many;
mod news;
mod pty;
mod quit;
#[path = "../figures/report.rs"]
mod report;
mod stage;
mod start;
mod times;

use std::io::Write;

use report::Report;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == empty::FLAG) {
        return empty::run();
    }
    // `cargo test --benches` also runs this program, which then makes no measurement.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let _inside = runtime.enter();
    let mut report = Report::new(&arguments);
    start::measure(&mut report);
    keys::measure(&mut report);
    quit::measure(&mut report);
    news::measure(&mut report);
    idle::measure(&mut report);
    many::measure(&mut report);
    std::io::stdout()
        .write_all(report.finish().as_bytes())
        .expect("standard output");
}
