//! Counts of events by the values of a field.

use bellwether_proto::{cloud::Severity, v1};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupRow {
    /// The value; [`NONE`] if the field is absent.
    pub(crate) value: String,
    pub(crate) has_field: bool,
    pub(crate) count: i64,
    /// Size in percent of the largest group.
    pub(crate) share: i64,
    by_severity: [i64; SEVERITIES],
    pub(crate) last_seen_ms: Option<i64>,
}

const NONE: &str = "(none)";
const SEVERITIES: usize = Severity::Critical as usize + 1;

impl GroupRow {
    pub(crate) fn count(&self, severity: Severity) -> i64 {
        self.by_severity[severity as usize]
    }

    pub(crate) fn worst(&self) -> Severity {
        let at = self.by_severity.iter().rposition(|count| *count > 0);
        let number = at.and_then(|at| i32::try_from(at).ok()).unwrap_or_default();
        Severity::try_from(number).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupedEvents {
    pub(crate) rows: Vec<GroupRow>,
    pub(crate) group_count: i64,
    pub(crate) occurrence_count: i64,
    pub(crate) is_complete: bool,
}

impl From<v1::GroupEventsResponse> for GroupedEvents {
    fn from(found: v1::GroupEventsResponse) -> Self {
        let counts = found.groups.iter().filter_map(|group| group.count);
        let most = i64::from(counts.max().unwrap_or_default()).max(1);
        let row = |group: v1::EventGroup| {
            let mut by_severity = [0; SEVERITIES];
            for (name, count) in &group.count_by_severity {
                if let Some(severity) = Severity::from_str_name(name) {
                    by_severity[severity as usize] = i64::from(*count);
                }
            }
            let count = i64::from(group.count.unwrap_or_default());
            GroupRow {
                has_field: group.value.is_some(),
                value: group.value.unwrap_or_else(|| NONE.to_owned()),
                count,
                share: count * 100 / most,
                by_severity,
                last_seen_ms: group.last_seen,
            }
        };
        Self {
            group_count: found.group_count.unwrap_or_default().into(),
            occurrence_count: found.occurrence_count.unwrap_or_default().into(),
            is_complete: found.complete.unwrap_or_default(),
            rows: found.groups.into_iter().map(row).collect(),
        }
    }
}
