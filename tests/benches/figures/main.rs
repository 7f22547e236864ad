//! Every figure promised for the service, with its goal and a reference from the same run.
//!
//! `cargo bench --package bellwether-tests --bench figures -- [ROW…] [--out FILE] [--against FILE]`
//! runs all rows, or those whose names contain a word. `--out` writes them to a file as JSON, and
//! `--against` prints the changes since such a file.

mod delivery;
mod gateway;
mod hanging;
mod hostile;
mod intake;
mod latency;
mod load;
mod matching;
mod noise;
mod peer;
mod postgres;
mod process;
mod report;
mod scans;
mod sink;
mod templates;

use std::io::Write;

use report::Report;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` also runs this program, which then makes no measurement.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let report = tokio::runtime::Runtime::new()
        .expect("threads")
        .block_on(measure(Report::new(&arguments)));
    std::io::stdout()
        .write_all(report.finish().as_bytes())
        .expect("standard output");
}

async fn measure(mut report: Report) -> Report {
    intake::measure(&mut report).await;
    gateway::measure(&mut report).await;
    matching::measure(&mut report).await;
    delivery::measure(&mut report).await;
    noise::measure(&mut report).await;
    scans::measure(&mut report).await;
    hostile::measure(&mut report).await;
    templates::measure(&mut report).await;
    postgres::measure(&mut report).await;
    latency::measure(&mut report).await;
    process::measure_starts(&mut report);
    report
}
