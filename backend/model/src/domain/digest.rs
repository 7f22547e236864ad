//! Budgets: how many messages a destination gets one by one, and the digest that includes the rest.

use std::{cmp::Reverse, fmt, time::Duration};

use crate::{
    domain::{Occurrence, RecordId, Severity},
    limits::{DIGEST_ROWS_MAX, DIGEST_SHOWN_BYTES_MAX, DIGEST_SHOWN_MAX},
};

/// How many messages a destination gets one by one; what is above it goes out in one digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many in a window, 1 to 10,000.
    pub messages: u32,
    /// How long a window is, 10 s to 24 h.
    pub per: Duration,
    /// Of a hundred, how many are kept free for what is critical.
    pub critical_share: u32,
}

impl Budget {
    /// Whether one more message is sent separately where so many went in the window.
    pub fn admits(self, sent: u32, severity: Severity) -> bool {
        let kept = u64::from(self.messages) * u64::from(self.critical_share) / 100;
        let open = match severity {
            Severity::Critical => u64::from(self.messages),
            _ => u64::from(self.messages).saturating_sub(kept),
        };
        u64::from(sent) < open
    }
}

/// What happened to a destination's budget in the window that began last. Kept apart from the
/// destination: it changes with traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWindow {
    /// The destination, by identity.
    pub destination: RecordId,
    /// When it ends, in milliseconds since 1970.
    pub until_ms: i64,
    /// How many messages went by themselves.
    pub sent: u32,
    /// The first message beyond the budget, while there may be no other one.
    pub held: Option<RecordId>,
    /// The digest that accepts what is beyond the budget.
    pub digest: Option<RecordId>,
    /// Digests that died, as long as what was folded into them has not followed.
    pub dead: Vec<RecordId>,
}

/// How a delivery stands to the budget of its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Folding {
    /// It was not held against a budget.
    #[default]
    Open,
    /// It is sent separately.
    Alone,
    /// It is reported in that digest.
    Into(RecordId),
}

impl Folding {
    /// The digest that includes it.
    pub fn digest(self) -> Option<RecordId> {
        match self {
            Self::Into(digest) => Some(digest),
            Self::Open | Self::Alone => None,
        }
    }
}

/// The identity of a digest as receivers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestId(pub RecordId);

impl fmt::Display for DigestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "digest-{}", self.0)
    }
}

/// What a digest includes.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestContent {
    /// The first delivery that carried it.
    pub id: RecordId,
    /// When the first message it reports on was decided, in milliseconds since 1970.
    pub start_ms: i64,
    /// When the last one was.
    pub end_ms: i64,
    /// How many messages it includes.
    pub count: u32,
    /// How many of these tell that something changed or ended.
    pub clear_count: u32,
    /// The same by rule and severity, at most [`DIGEST_ROWS_MAX`]; the last one is then of all others.
    pub rows: Vec<DigestRow>,
    /// The most severe ones, and of these the oldest.
    pub items: Vec<DigestItem>,
}

/// The messages of a rule and a severity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRow {
    /// The rule's name; none for all that have no separate row.
    pub rule_name: Option<String>,
    /// How bad it is; of others the worst.
    pub severity: Severity,
    /// How many.
    pub count: u32,
    /// How many of these tell that something changed or ended.
    pub clear_count: u32,
}

/// A message that a digest includes.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestItem {
    /// The rule's name.
    pub rule_name: String,
    /// Whether it tells that something changed or ended.
    pub clear: bool,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// The occurrence; of a group the one that stands for it.
    pub occurrence: Occurrence,
}

impl DigestContent {
    /// Of nothing yet.
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

    /// Processes a message.
    pub fn fold(&mut self, item: DigestItem) {
        let clear_count = u32::from(item.clear);
        self.start_ms = self.start_ms.min(item.at_ms);
        self.end_ms = self.end_ms.max(item.at_ms);
        self.count += 1;
        self.clear_count += clear_count;
        let row = self.row(&item.rule_name, item.occurrence.severity);
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

    /// The most severe one.
    ///
    /// # Panics
    /// Where nothing was folded into it.
    pub fn worst(&self) -> &Occurrence {
        &self
            .items
            .first()
            .expect("a digest has messages")
            .occurrence
    }

    /// The row of a rule and a severity.
    fn row(&mut self, rule_name: &str, severity: Severity) -> &mut DigestRow {
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
        let bytes = |it: &DigestItem| it.occurrence.weight_bytes();
        self.items.iter().map(bytes).sum()
    }

    /// How many messages there are beside so many.
    pub fn beside(&self, shown: usize) -> u32 {
        let shown = u32::try_from(shown).unwrap_or(u32::MAX);
        self.count.saturating_sub(shown)
    }
}
