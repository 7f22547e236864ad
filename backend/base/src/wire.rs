//! Conversions between wire and domain types that several kinds share.

pub mod event;
mod hold;
pub mod json;
pub mod query;
pub mod time;

use std::collections::BTreeMap;

pub use hold::holds;

use crate::{domain::Severity, error::Violation};

/// Converts a count for the wire, saturating.
pub fn to_i32(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// Converts a count for the wire, saturating.
pub fn to_i64(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Converts counts by severity, with the names of the severities on the wire.
pub fn count_by_name(counts: BTreeMap<Severity, usize>) -> BTreeMap<String, i32> {
    let counts = counts.into_iter();
    counts
        .map(|(severity, count)| (severity.enum_name().to_owned(), to_i32(count)))
        .collect()
}

/// Returns the value with this name. An empty or unknown name selects the first value; an unknown one
/// also adds a violation.
pub fn parse_name<T: Copy>(
    names: &[(&str, T); 4],
    name: &str,
    field: String,
    violations: &mut Vec<Violation>,
) -> T {
    let known = names.iter().find(|(known, _)| *known == name);
    if known.is_none() && !name.is_empty() {
        let names = names.map(|(name, _)| name).join(", ");
        violations.push(Violation::new(field, format!("is not one of {names}")));
    }
    known.unwrap_or(&names[0]).1
}

/// Returns the name of a value; empty if it has none.
pub fn name_of<T: Copy + PartialEq>(names: &[(&str, T)], value: T) -> String {
    let found = names.iter().find(|(_, it)| *it == value);
    found.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use bellwether_proto::v1::{self, audit_entry, occurrence, silence};

    use crate::domain::{AuditAction, CloseReason, HoldKind, Outcome, Role, SilenceState};

    #[test]
    fn numbers_of_variants_are_those_on_the_wire() {
        macro_rules! check {
            ($($domain:ident, $wire:path: $($variant:ident)+;)+) => {$($({
                use $wire as Wire;
                let (number, on_wire) = ($domain::$variant as i32, Wire::$variant as i32);
                assert_eq!(number, on_wire, "{:?}", $domain::$variant);
            })+)+};
        }
        check! {
            AuditAction, audit_entry::Action: Created Updated Deleted Read Refused;
            CloseReason, occurrence::CloseReason: Sender Operator Aged Expired;
            Outcome, v1::Outcome: Delivered Rejected Unreachable Blocked Unknown;
            Role, v1::Role: Ingest Viewer Operator Editor Admin;
            SilenceState, silence::State: Scheduled Active Expired;
        }
        for kind in HoldKind::ALL {
            let on_wire = v1::HoldKind::try_from(kind as i32).unwrap();
            let name = format!(
                "HOLD_KIND_{}",
                kind.as_str().to_uppercase().replace([' ', '-'], "_")
            );
            assert_eq!(on_wire.as_str_name(), name);
        }
    }
}
