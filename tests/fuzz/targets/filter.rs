//! A filter is parsed, or refused with a position inside it. Printing and parsing a parsed filter
//! again gives the same filter.
#![no_main]

use bellwether_language::filter::{self, TimeReference};
use libfuzzer_sys::fuzz_target;

const NOW_MS: i64 = 1_767_225_600_000;

fuzz_target!(|text: &str| {
    match filter::parse(text, Some(&TimeReference::in_utc(NOW_MS))) {
        Err(error) => assert!(error.at <= text.chars().count()),
        Ok(parsed) => {
            let printed = filter::print_clause(&parsed.clause);
            let again = filter::parse(&printed, None).map(|parsed| parsed.clause);
            assert_eq!(again, Ok(parsed.clause), "{printed}");
        }
    }
});
