//! The health of a destination in at most eight characters.

use super::{HealthState, Label, Sign};

impl Sign for HealthState {
    fn symbol(self) -> &'static str {
        match self {
            Self::Failing => "✗",
            Self::Paused => "‖",
            Self::Healthy => "✓",
            Self::Slow | Self::Behind => "◐",
            Self::Untried | Self::Unspecified => "·",
        }
    }
}

/// Returns the class of the last failure for a failing destination, otherwise the health.
pub(crate) fn health_word(state: HealthState, last_error: &str) -> &str {
    let class = failure_class(last_error).filter(|_| state == HealthState::Failing);
    class.unwrap_or_else(|| state.label())
}

/// Returns the class of an attempt's error: the status of the response, or the phase that failed.
fn failure_class(error: &str) -> Option<&str> {
    const CLASSES: [(&str, &str); 8] = [
        ("cannot be resolved", "DNS"),
        ("another host name", "TLS name"),
        ("certificate", "TLS"),
        ("TLS", "TLS"),
        ("connection refused", "refused"),
        ("within", "timeout"),
        ("no response", "timeout"),
        ("not allowed", "blocked"),
    ];
    let status = error
        .split_once("returned ")
        .and_then(|(_, rest)| rest.get(..3));
    let status = status.filter(|it| it.parse::<u16>().is_ok());
    let found = || CLASSES.iter().find(|(part, _)| error.contains(part));
    status.or_else(|| Some(found()?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_short_classes() {
        for (error, class) in [
            ("the receiver returned 401 Unauthorized", "401"),
            ("the host name `a.example` cannot be resolved", "DNS"),
            (
                "cannot connect to 127.0.0.1:443: connection refused",
                "refused",
            ),
            ("cannot connect to `a.example` within 10s", "timeout"),
            (
                "the server's certificate is for another host name: b.example",
                "TLS name",
            ),
            ("the template is empty", "failing"),
        ] {
            assert_eq!(health_word(HealthState::Failing, error), class, "{error}");
            assert!(class.len() <= 8, "{class}");
        }
        let paused = health_word(HealthState::Paused, "the receiver returned 500");
        assert_eq!(paused, "paused");
    }
}
