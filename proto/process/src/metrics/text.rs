//! Metrics in the Prometheus text format, which every scraper accepts.

use std::fmt::Write as _;

use prometheus_client::{encoding::text::encode_registry, registry::Registry};

/// Renders the metrics of a registry.
///
/// The library writes `OpenMetrics`, in which the metadata of a counter lacks the suffix `_total`
/// that its samples have.
///
/// # Panics
/// Never: it writes to memory.
pub fn render_registry(registry: &Registry) -> String {
    let mut metrics = String::new();
    encode_registry(&mut metrics, registry).expect("writing to memory does not fail");
    let mut text = String::with_capacity(metrics.len());
    let mut help = None;
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = parse_type_line(line) {
            let total = if kind == "counter" { "_total" } else { "" };
            let help = help.take().map_or("", |(_, help)| help);
            push_line(&mut text, format_args!("# HELP {name}{total} {help}"));
            push_line(&mut text, format_args!("# TYPE {name}{total} {kind}"));
        } else {
            push_line(&mut text, format_args!("{line}"));
        }
    }
    text
}

fn parse_type_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

    use super::*;

    #[test]
    fn counter_header_and_samples_share_a_name() {
        let mut registry = Registry::default();
        let calls = Family::<[(&str, &str); 1], Counter>::default();
        calls.get_or_create(&[("who", "a\"b")]).inc_by(2);
        registry.register("calls", "Calls", calls);
        registry.register("open", "Open ones", Gauge::<i64>::default());
        let text = "# HELP calls_total Calls.\n# TYPE calls_total counter\n\
                    calls_total{who=\"a\\\"b\"} 2\n\
                    # HELP open Open ones.\n# TYPE open gauge\nopen 0\n";
        assert_eq!(render_registry(&registry), text);
    }
}
