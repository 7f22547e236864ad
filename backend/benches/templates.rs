//! Time until rendering is rejected, for the most expensive templates and the largest variables.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bellwether_backend::{
    domain::TemplateLanguage::{self, Jinja, Mustache},
    template::{AnyTemplate, Budget, Escape, Variables},
};
use serde_json::{Map, Value, json};

const ROUNDS: usize = 5;
/// Maximum time until a template that exceeds the step budget is rejected.
const GOAL: Duration = Duration::from_millis(50);

/// Returns variables with a million entries, a text of 60,000 bytes, and an object nested 256
/// levels deep, the maximum that a name of 512 bytes can reach.
fn variables() -> Variables {
    let deep = (0..256).fold(Value::from(1), |inner, _| {
        Value::Object(Map::from_iter([("n".to_owned(), inner)]))
    });
    Variables::new(json!({
        "m": vec![1; 1_000_000],
        "t": "x".repeat(60_000),
        "n": deep["n"],
    }))
}

/// Returns the milliseconds until a template is rejected, the best of several rounds; `None` if the
/// template renders.
fn measure(language: TemplateLanguage, source: &str, data: &Variables) -> Option<f64> {
    let template = AnyTemplate::parse(language, source).expect("the templates here are valid");
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let rendered = template.render(data, Escape::Json, &mut Budget::for_message());
        let took = begun.elapsed();
        black_box(&rendered).as_ref().err()?;
        best = best.min(took.as_secs_f64() * 1_000.0);
    }
    Some(best)
}

/// Returns the most expensive templates, each with its language and a description.
#[expect(clippy::too_many_lines, reason = "a table of templates")]
fn rows() -> Vec<(TemplateLanguage, &'static str, String)> {
    let name = "n.".repeat(255) + "nn";
    vec![
        (
            Mustache,
            "nested sections",
            "{{#m}}{{#m}}{{/m}}{{/m}}".to_owned(),
        ),
        (
            Mustache,
            "a long name",
            format!("{{{{#m}}}}{{{{{name}}}}}{{{{/m}}}}"),
        ),
        (Mustache, "a long text", "{{#m}}{{t}}{{/m}}".to_owned()),
        (Mustache, "all as JSON", "{{#m}}{{m}}{{/m}}".to_owned()),
        (
            Jinja,
            "nested loops",
            "{% for a in m %}{% for b in m %}{% endfor %}{% endfor %}".to_owned(),
        ),
        (
            Jinja,
            "a long name",
            "{% for a in m %}{{ n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n.n }}{% endfor %}"
                .to_owned(),
        ),
        (
            Jinja,
            "a long text",
            "{% for a in m %}{{ t }}{% endfor %}".to_owned(),
        ),
        (Jinja, "all as JSON", "{{ m|json }}".to_owned()),
        (Jinja, "sorted and summed", "{{ m|sort|sum }}".to_owned()),
        (
            Jinja,
            "a list that contains itself twice, again and again",
            format!(
                "{{% for x in [[1]] %}}{}{{{{ x }}}}{}",
                "{% for x in [[x, x]] %}".repeat(31),
                "{% endfor %}".repeat(32)
            ),
        ),
        (
            Jinja,
            "compared lists",
            "{% for a in m[:10000] %}{{ m[:1000] == m[:1000] }}{% endfor %}".to_owned(),
        ),
        (Jinja, "joined", "{{ m|map('string')|join(t) }}".to_owned()),
        (Jinja, "replaced", "{{ t|replace('x', t) }}".to_owned()),
        (
            Jinja,
            "a regular expression",
            "{% for a in m %}{{ t|regex_replace('(x|xx){30}(x|y){20}z', '') }}{% endfor %}"
                .to_owned(),
        ),
        (
            Jinja,
            "many regular expressions",
            "{% for a in m %}{{ t|regex_replace('x' ~ loop.index, '') }}{% endfor %}".to_owned(),
        ),
        (
            Jinja,
            "escaped three times",
            "{% for a in m %}{{ t|markdown|telegram|slack }}{% endfor %}".to_owned(),
        ),
        (
            Jinja,
            "dates",
            "{% for a in m %}{{ 1700000000000|date('%c', 'Europe/Berlin') }}{% endfor %}"
                .to_owned(),
        ),
        (
            Jinja,
            "a text that doubles",
            "{% set x = 'x' %}{% for a in m %}{% set x = x ~ x %}{% endfor %}".to_owned(),
        ),
    ]
}

fn main() {
    let data = variables();
    // Warm up each language first, so that its one-time setup is not measured.
    let begun = Instant::now();
    let length = AnyTemplate::parse(Jinja, "{{ m|length }}").expect("a template");
    let read = length.render(&data, Escape::None, &mut Budget::for_message());
    println!(
        "a million entries made ready for Jinja: {:.0} ms ({read:?})",
        begun.elapsed().as_secs_f64() * 1_000.0
    );
    for (language, what, source) in rows() {
        match measure(language, &source, &data) {
            None => println!("{language:?}, {what}: not refused"),
            Some(took) => {
                let goal = if took <= GOAL.as_secs_f64() * 1_000.0 {
                    ""
                } else {
                    ", MISSED"
                };
                println!("{language:?}, {what}: refused after {took:.1} ms (goal {GOAL:?}{goal})");
            }
        }
    }
}
