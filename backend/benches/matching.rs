//! Cost of finding the triggers of an event, with ten triggers and with ten thousand.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::{hint::black_box, time::Instant};

use bellwether_backend::{
    domain::{Clause, Literal, Occurrence, Query, Severity},
    matching::{TriggerSet, compile},
    message::sample,
};

const EVENTS: usize = 1_000;
const ROUNDS: usize = 20;
/// Maximum cost of an event with ten thousand triggers, as a multiple of its cost with ten.
const RATIO_GOAL: f64 = 3.0;

fn text(text: String) -> Literal {
    Literal::Text(text)
}

/// Returns a query: a mix of equals, in, prefixes and contains, each with distinct values.
fn trigger(number: usize) -> Query {
    let host = |number: usize| text(format!("host-{number:05}.example.com"));
    let severe = Clause::GreaterAndEquals("severity".into(), text("warning".into()));
    let about = match number % 4 {
        0 => Clause::Equals("dimensions.host".into(), host(number)),
        1 => Clause::In("host".into(), (number..number + 3).map(host).collect()),
        2 => Clause::StartsWith("name".into(), format!("service-{number:05}/")),
        _ => Clause::Contains("summary".into(), format!("volume {number:05} ")),
    };
    let lab = Clause::Equals("metadata.site".into(), text("lab".into()));
    let clause = Clause::And(vec![severe, about, Clause::Not(Box::new(lab))]);
    Query { clause }
}

fn event(number: usize, triggers: usize) -> Occurrence {
    // Spread over the values in the triggers, so that events match equally often with few and many
    // triggers.
    let number = number * 7 % triggers;
    let mut occurrence = sample::sample_occurrence(1_769_846_400_000);
    occurrence.name = format!("service-{number:05}/disk");
    occurrence.summary = format!("Disk nearly full: volume {number:05} has 3 % left of 400 GB");
    occurrence.severity = Severity::ALL[number % 5];
    let host = format!("Host-{number:05}.example.com");
    occurrence.dimensions.insert("host".into(), host);
    occurrence
}

/// Prints the cost of the triggers, and returns the nanoseconds per event, the best of several
/// rounds.
fn measure(triggers: usize) -> f64 {
    let queries = (0..triggers).map(|number| {
        let query = compile(&trigger(number)).expect("the triggers of this file are valid");
        (number, query)
    });
    let queries = queries.collect();
    let begun = Instant::now();
    let set = TriggerSet::build(queries);
    let built = begun.elapsed();
    let events: Vec<_> = (0..EVENTS).map(|number| event(number, triggers)).collect();
    let mut best = f64::INFINITY;
    let mut matched = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let found = events
            .iter()
            .map(|event| black_box(set.find_matching(event)).len());
        matched = found.sum();
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / 1_000.0);
    }
    println!(
        "{triggers:6} triggers: {best:8.0} ns an event, {matched} matches of {EVENTS} events, \
         built in {built:?}"
    );
    best
}

fn main() {
    let ratio = measure(10).recip() * measure(10_000);
    println!("ratio {ratio:.2}, goal at most {RATIO_GOAL}");
}
