//! Severity names of this product and other monitoring products.

use crate::zenoss::cloud::Severity;

/// Returns the severity for the name that a sender uses, ignoring case.
pub fn from_name(word: &str) -> Option<Severity> {
    let word = word.trim().to_lowercase();
    let found = WORDS.iter().find(|(words, _)| words.contains(&&*word));
    found.map(|(_, severity)| *severity)
}

/// Returns the word for a severity; `debug` if the severity is unspecified.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Default | Severity::Debug => "debug",
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
        Severity::Critical => "critical",
    }
}

const WORDS: [(&[&str], Severity); 5] = [
    (
        &[
            "critical",
            "crit",
            "fatal",
            "emergency",
            "emerg",
            "panic",
            "alert",
            "page",
            "disaster",
            "p1",
        ],
        Severity::Critical,
    ),
    (&["error", "err", "major", "high", "p2"], Severity::Error),
    (
        &["warning", "warn", "minor", "medium", "average", "p3"],
        Severity::Warning,
    ),
    (
        &[
            "info",
            "information",
            "informational",
            "notice",
            "low",
            "p4",
        ],
        Severity::Info,
    ),
    (
        &["debug", "trace", "none", "ok", "normal", "p5"],
        Severity::Debug,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_words_are_case_insensitive() {
        for (words, severity) in WORDS {
            for word in words {
                assert_eq!(from_name(word), Some(severity), "{word}");
                let shouted = format!(" {} ", word.to_uppercase());
                assert_eq!(from_name(&shouted), Some(severity), "{word}");
            }
        }
        assert_eq!(from_name("whatever"), None);
        assert_eq!(from_name(""), None);
    }
}
