//! Bulk changes of deliveries or events: counted first, confirmed, then applied in batches.

mod events;

use std::{cmp::Reverse, collections::BTreeMap};

use bellwether_proto::v1;

pub(crate) use self::events::{EventBulk, EventTransition};
use super::bulk_undo::BulkUndo;
use crate::{
    client::{Call, DeliverySelection, ParseOutcome, Ticket, deliveries},
    data::{BulkTally, Label, Transition, WORST_FIRST},
    text,
    theme::Token,
};

pub(crate) type Updates = (BTreeMap<String, i64>, bool);

const DESTINATIONS: usize = 8;
const NAMED_RECEIVERS: usize = 4;
const NAME_CELLS: usize = 40;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    Counting,
    /// Counted, and waiting for confirmation. The default is No.
    Asking {
        yes: bool,
    },
    Running,
    Stopping,
    Failed(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Work {
    Deliveries(Transition, DeliverySelection),
    Events(EventBulk),
}

#[derive(Clone, Debug)]
pub(crate) enum BulkStep {
    Count,
    Gather,
    Updates(Box<ReceiverCount>),
    Part(ParseOutcome),
    Deliveries(Transition),
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiverCount {
    pub(crate) request: v1::ListObligationsRequest,
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) calls: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) work: Work,
    pub(crate) stage: Stage,
    pub(crate) counted: BulkTally,
    pub(crate) done: BulkTally,
    /// Number of messages to be sent, by destination, and whether the numbers are lower bounds; an
    /// error if they could not be read.
    pub(crate) updates: Option<Result<Updates, String>>,
    pub(crate) is_counted: bool,
    pub(crate) token: String,
    pub(crate) waiting: Option<Ticket>,
}

impl Bulk {
    pub(crate) fn new(work: Work) -> Self {
        Self {
            work,
            stage: Stage::Counting,
            counted: BulkTally::default(),
            done: BulkTally::default(),
            updates: None,
            is_counted: false,
            token: String::new(),
            waiting: None,
        }
    }

    pub(crate) fn call(&self) -> (Call, BulkStep) {
        match &self.work {
            Work::Deliveries(transition, chosen) => {
                let (chosen, token) = (chosen.clone(), self.token.clone());
                let call =
                    deliveries::change_deliveries(*transition, chosen, !self.is_counted, token);
                (call, BulkStep::Deliveries(*transition))
            }
            Work::Events(events) if self.is_counted => events.batch_call(),
            Work::Events(events) => events.request_ids(self.token.clone()),
        }
    }

    pub(crate) fn title(&self) -> String {
        let (transition, chosen) = match &self.work {
            Work::Deliveries(transition, chosen) => (transition, chosen),
            Work::Events(events) => return events.title(self.is_counted),
        };
        let all = match chosen {
            DeliverySelection::Ids(ids) => format!("the {} marked deliveries", ids.len()),
            DeliverySelection::Matching { words, .. } if words.is_empty() => {
                "all deliveries".to_owned()
            }
            DeliverySelection::Matching { words, .. } => format!("all deliveries with {words}"),
        };
        match transition {
            Transition::SendAgain => format!("Resend {all}?"),
            Transition::Cancel => format!("Cancel {all}?"),
        }
    }

    pub(crate) fn verb(&self) -> &'static str {
        match &self.work {
            Work::Deliveries(Transition::SendAgain, _) => "Send",
            Work::Deliveries(Transition::Cancel, _) => "Cancel them",
            Work::Events(events) => events.verb(),
        }
    }

    pub(crate) fn empty_message(&self) -> String {
        let (what, verb) = match &self.work {
            Work::Deliveries(Transition::SendAgain, _) => ("delivery", "resend"),
            Work::Deliveries(Transition::Cancel, _) => ("delivery", "cancel"),
            Work::Events(events) => ("event", events.infinitive()),
        };
        let skipped = self.counted.skipped.iter();
        let why: Vec<_> = skipped
            .map(|(reason, count)| format!("{} {reason}", text::group_digits(*count)))
            .collect();
        if why.is_empty() {
            format!("no {what} to {verb}")
        } else {
            format!("no {what} to {verb}: {}", why.join(", "))
        }
    }

    pub(crate) fn lines(&self) -> Vec<(Token, String)> {
        let counted = &self.counted;
        let mut lines = Vec::new();
        if self.is_counted {
            let (what, token) = match &self.work {
                Work::Deliveries(Transition::SendAgain, _) => ("will be resent", Token::Text),
                Work::Deliveries(Transition::Cancel, _) => ("will be cancelled", Token::Warning),
                Work::Events(events) => (&*events.announcement(counted.count), Token::Text),
            };
            let message = match &self.work {
                Work::Deliveries(..) => format!("{} {what}:", pluralize(counted.count, "delivery")),
                Work::Events(_) => what.to_owned(),
            };
            lines.push((token, message));
        } else {
            lines.push((
                Token::Info,
                format!("… counting: {}", text::group_digits(counted.count)),
            ));
        }
        // Events are counted by severity, deliveries by destination.
        let to = match self.work {
            Work::Deliveries(..) => "to ",
            Work::Events(_) => "",
        };
        let mut destinations: Vec<_> = counted.destinations.iter().collect();
        destinations.sort_by_key(|(name, count)| {
            let rank = WORST_FIRST.iter().position(|it| it.label() == *name);
            (rank, Reverse(**count), name.as_str())
        });
        for (name, count) in destinations.iter().take(DESTINATIONS) {
            let name = text::fit_to_width(name, NAME_CELLS);
            let count = text::group_digits(**count);
            lines.push((Token::Text, format!("{count:>9}  {to}{name}")));
        }
        if destinations.len() > DESTINATIONS {
            let rest = &destinations[DESTINATIONS..];
            let count: i64 = rest.iter().map(|(_, count)| **count).sum();
            let more = if rest.len() == 1 {
                "destination"
            } else {
                "destinations"
            };
            let count = text::group_digits(count);
            let message = format!("{count:>9}  to {} more {more}", rest.len());
            lines.push((Token::Text, message));
        }
        for (reason, count) in &counted.skipped {
            let count = text::group_digits(*count);
            lines.push((Token::Dim, format!("{count:>9}  not: {reason}")));
        }
        if let Work::Events(events) = &self.work {
            lines.extend(events.lines());
            lines.extend(self.describe_messages(events.closes()));
        }
        if let Work::Deliveries(Transition::SendAgain, DeliverySelection::Matching { filter, .. }) =
            &self.work
            && filter.states.is_empty()
        {
            let message = "Without a state in the filter, only dead deliveries are included.";
            lines.push((Token::Dim, message.to_owned()));
        }
        if let Stage::Failed(reason) = &self.stage {
            lines.push((Token::Bad, format!("✗ {reason}")));
        }
        lines
    }

    fn message_count(&self) -> i64 {
        match &self.updates {
            Some(Ok((counts, _))) => counts.values().sum(),
            _ => 0,
        }
    }

    pub(crate) fn can_be_quiet(&self) -> bool {
        let Work::Events(events) = &self.work else {
            return false;
        };
        events.updates() && (self.message_count() > 0 || matches!(self.updates, Some(Err(_))))
    }

    pub(crate) fn to_undo(&self) -> Option<BulkUndo> {
        let Work::Events(events) = &self.work else {
            return None;
        };
        Some(events.to_undo(self.message_count())).filter(|done| !done.is_empty())
    }

    fn describe_messages(&self, closes: bool) -> Option<(Token, String)> {
        let (one, many) = if closes {
            ("closing", "closings")
        } else {
            ("update", "updates")
        };
        let (counts, is_least) = match self.updates.as_ref()? {
            Ok((counts, is_least)) => (counts, *is_least),
            Err(message) => {
                let words = format!("Unknown number of {many} to send: {message}");
                return Some((Token::Warning, words));
            }
        };
        let count: i64 = counts.values().sum();
        if count == 0 {
            return Some((Token::Dim, format!("Sends no {many}.")));
        }
        let mut names: Vec<&str> = counts
            .keys()
            .map(String::as_str)
            .take(NAMED_RECEIVERS)
            .collect();
        let more = format!("{} more", counts.len().saturating_sub(names.len()));
        if counts.len() > names.len() {
            names.push(&more);
        }
        let about = if is_least { "at least" } else { "about" };
        let word = if count == 1 { one } else { many };
        let (count, names) = (text::group_digits(count), names.join(", "));
        let words = format!("Sends {about} {count} {word} to {names}.");
        Some((Token::Warning, words))
    }

    pub(crate) fn progress_text(&self) -> String {
        let [done, all] = [self.done.count, self.counted.count].map(text::group_digits);
        format!("{done} of {all}")
    }

    /// Describes the outcome, and returns whether any item was rejected.
    pub(crate) fn outcome(&self) -> (String, bool) {
        let done = match &self.work {
            Work::Deliveries(Transition::SendAgain, _) => "being resent",
            Work::Deliveries(Transition::Cancel, _) => "cancelled",
            Work::Events(events) => return events.outcome(self.done.count),
        };
        (
            format!("{} {done}", pluralize(self.done.count, "delivery")),
            false,
        )
    }

    /// Whether all counted items were processed, with or without success.
    pub(crate) fn is_complete(&self) -> bool {
        let through = match &self.work {
            Work::Deliveries(..) => self.done.count,
            Work::Events(events) => i64::try_from(events.through).unwrap_or(i64::MAX),
        };
        self.is_counted && through >= self.counted.count
    }
}

pub(crate) fn pluralize(count: i64, word: &str) -> String {
    match (count, word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (_, Some(stem)) => format!("{} {stem}ies", text::group_digits(count)),
        (_, None) => format!("{} {word}s", text::group_digits(count)),
    }
}
