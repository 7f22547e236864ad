//! Message budgets of destinations, and the digests that contain the remaining messages.

use std::{cmp::Reverse, fmt, time::Duration};

use crate::{
    domain::{Occurrence, RecordId, Severity},
    limits::{DIGEST_ROWS_MAX, DIGEST_SHOWN_BYTES_MAX, DIGEST_SHOWN_MAX},
};

/// A limit on the messages that a destination receives separately in a window of time. A digest
/// contains the remaining ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Maximum number of separate messages per window, 1 to 10,000.
    pub messages: u32,
    /// Length of a window, 10 s to 24 h.
    pub per: Duration,
    /// Percentage reserved for critical messages.
    pub critical_share: u32,
}

impl Budget {
    /// Whether another message is sent separately after `sent` ones in the window.
    pub fn allows_another(self, sent: u32, severity: Severity) -> bool {
        let reserved = u64::from(self.messages) * u64::from(self.critical_share) / 100;
        let open = match severity {
            Severity::Critical => u64::from(self.messages),
            _ => u64::from(self.messages).saturating_sub(reserved),
        };
        u64::from(sent) < open
    }
}

/// The current budget window of a destination, stored separately from the destination because it
/// changes with traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWindow {
    pub destination: RecordId,
    pub until_ms: i64,
    pub sent: u32,
    /// The first message over budget, as long as it is the only one.
    pub held: Option<RecordId>,
    /// The digest that collects the messages over budget.
    pub digest: Option<RecordId>,
    /// Failed digests whose messages were not yet included in another digest.
    pub dead: Vec<RecordId>,
}

/// The state of a delivery in the budget of its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DigestMembership {
    /// Not yet counted against a budget.
    #[default]
    Open,
    /// Sent separately.
    Alone,
    Into(RecordId),
}

impl DigestMembership {
    pub fn digest_id(self) -> Option<RecordId> {
        match self {
            Self::Into(digest) => Some(digest),
            Self::Open | Self::Alone => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestId(pub RecordId);

impl fmt::Display for DigestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "digest-{}", self.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct DigestContent {
    /// The first delivery of the digest.
    pub id: RecordId,
    /// Time at which the first of the messages was decided, in milliseconds since 1970.
    pub start_ms: i64,
    /// Time at which the last of the messages was decided, in milliseconds since 1970.
    pub end_ms: i64,
    pub count: u32,
    /// Number of messages that report a change or an end.
    pub clear_count: u32,
    /// Counts by rule and severity, at most [`DIGEST_ROWS_MAX`]. If there are more, the last row
    /// counts all remaining rules.
    pub rows: Vec<DigestRow>,
    /// The most severe messages, the oldest first among equals.
    pub items: Vec<DigestItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRow {
    /// The name of the rule; `None` for the row of all remaining rules.
    pub rule_name: Option<String>,
    /// The severity. In the row for all remaining rules, the highest of their severities.
    pub severity: Severity,
    pub count: u32,
    pub clear_count: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DigestItem {
    pub rule_name: String,
    /// Whether the message reports a change or an end.
    pub clear: bool,
    /// Time at which the message was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// The occurrence; for a group, its representative.
    pub occurrence: Occurrence,
}

impl DigestContent {
    pub fn new(id: RecordId) -> Self {
        Self {
            id,
            start_ms: i64::MAX,
            end_ms: i64::MIN,
            count: 0,
            clear_count: 0,
            rows: Vec::new(),
            items: Vec::new(),
        }
    }

    pub fn add_item(&mut self, item: DigestItem) {
        let clear_count = u32::from(item.clear);
        self.start_ms = self.start_ms.min(item.at_ms);
        self.end_ms = self.end_ms.max(item.at_ms);
        self.count += 1;
        self.clear_count += clear_count;
        let row = self.row_for(&item.rule_name, item.occurrence.severity);
        row.count += 1;
        row.clear_count += clear_count;
        let worst_first = |row: &DigestRow| {
            let is_other = row.rule_name.is_none();
            (is_other, Reverse(row.severity), row.rule_name.clone())
        };
        self.rows.sort_by_key(worst_first);
        self.items.push(item);
        self.items
            .sort_by_key(|it| (Reverse(it.occurrence.severity), it.at_ms));
        self.items.truncate(DIGEST_SHOWN_MAX);
        while self.items.len() > 1 && self.bytes() > DIGEST_SHOWN_BYTES_MAX {
            self.items.pop();
        }
    }

    pub fn most_severe(&self) -> &Occurrence {
        &self
            .items
            .first()
            .expect("a digest has messages")
            .occurrence
    }

    fn row_for(&mut self, rule_name: &str, severity: Severity) -> &mut DigestRow {
        let is_it = |row: &DigestRow| {
            row.severity == severity && row.rule_name.as_deref() == Some(rule_name)
        };
        let others = |row: &DigestRow| row.rule_name.is_none();
        let is_full = self.rows.len() >= DIGEST_ROWS_MAX - 1;
        let known = self.rows.iter().position(is_it);
        let known = known.or_else(|| self.rows.iter().position(others));
        let at = known.unwrap_or_else(|| {
            self.rows.push(DigestRow {
                rule_name: (!is_full).then(|| rule_name.to_owned()),
                severity,
                count: 0,
                clear_count: 0,
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        row.severity = row.severity.max(severity);
        row
    }

    fn bytes(&self) -> usize {
        let bytes = |it: &DigestItem| it.occurrence.estimated_bytes();
        self.items.iter().map(bytes).sum()
    }

    /// Returns the number of messages that are not among the first `shown` ones.
    pub fn hidden_count(&self, shown: usize) -> u32 {
        let shown = u32::try_from(shown).unwrap_or(u32::MAX);
        self.count.saturating_sub(shown)
    }
}
