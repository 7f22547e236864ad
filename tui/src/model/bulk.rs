//! Many deliveries sent again or cancelled: counted first, asked, then done some at a time.

use super::Model;
use crate::{
    client::{Chosen, Request, Ticket},
    data::{BulkTally, Deed},
    text,
    theme::Token,
};

/// Destinations that are told by name.
const DESTINATIONS: usize = 8;
/// Cells that a name has in a line of its own.
const NAME_CELLS: usize = 40;

/// Where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The service counts.
    Counting,
    /// The count is there; nothing was changed yet. The answer is No until somebody says Yes.
    Asking { yes: bool },
    /// Under way.
    Running,
    /// Under way, and to stop after what was asked for last.
    Stopping,
    /// A call failed, for this reason; it can go on.
    Failed(String),
}

/// A deed to many deliveries.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) deed: Deed,
    pub(crate) chosen: Chosen,
    pub(crate) stage: Stage,
    /// What the service counted.
    pub(crate) counted: BulkTally,
    /// What is done.
    pub(crate) done: BulkTally,
    /// Whether the count is complete: from then on things are done.
    pub(crate) is_counted: bool,
    /// Where to go on.
    pub(crate) token: String,
    pub(crate) waiting: Option<Ticket>,
}

impl Bulk {
    pub(crate) fn new(deed: Deed, chosen: Chosen) -> Self {
        Self {
            deed,
            chosen,
            stage: Stage::Counting,
            counted: BulkTally::default(),
            done: BulkTally::default(),
            is_counted: false,
            token: String::new(),
            waiting: None,
        }
    }

    /// What to ask the service next.
    pub(crate) fn request(&self) -> Request {
        Request::Bulk {
            deed: self.deed,
            chosen: self.chosen.clone(),
            dry_run: !self.is_counted,
            page_token: self.token.clone(),
        }
    }

    pub(crate) fn title(&self) -> String {
        let all = match &self.chosen {
            Chosen::Ids(ids) => format!("the {} marked deliveries", ids.len()),
            Chosen::Matching { words, .. } if words.is_empty() => "all deliveries".to_owned(),
            Chosen::Matching { words, .. } => format!("all deliveries with {words}"),
        };
        match self.deed {
            Deed::SendAgain => format!("Send {all} again?"),
            Deed::Cancel => format!("Cancel {all}?"),
        }
    }

    /// What Yes does.
    pub(crate) fn verb(&self) -> &'static str {
        match self.deed {
            Deed::SendAgain => "Send",
            Deed::Cancel => "Cancel them",
        }
    }

    /// What there is to know before a Yes, and while it is under way.
    pub(crate) fn lines(&self) -> Vec<(Token, String)> {
        let counted = &self.counted;
        let mut lines = Vec::new();
        if self.is_counted {
            let (what, token) = match self.deed {
                Deed::SendAgain => ("will be sent again", Token::Text),
                Deed::Cancel => ("will be cancelled", Token::Warning),
            };
            lines.push((token, format!("{} {what}:", deliveries(counted.count))));
        } else {
            lines.push((Token::Info, format!("… counting: {}", counted.count)));
        }
        let mut destinations: Vec<_> = counted.destinations.iter().collect();
        destinations.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
        for (name, count) in destinations.iter().take(DESTINATIONS) {
            let name = text::fit(name, NAME_CELLS);
            lines.push((Token::Text, format!("{count:>9}  to {name}")));
        }
        if destinations.len() > DESTINATIONS {
            let rest = &destinations[DESTINATIONS..];
            let count: i64 = rest.iter().map(|(_, count)| **count).sum();
            let more = if rest.len() == 1 {
                "destination"
            } else {
                "destinations"
            };
            let told = format!("{count:>9}  to {} more {more}", rest.len());
            lines.push((Token::Text, told));
        }
        for (reason, count) in &counted.skipped {
            lines.push((Token::Dim, format!("{count:>9}  not: {reason}")));
        }
        if let (Deed::SendAgain, Chosen::Matching { filter, .. }) = (self.deed, &self.chosen)
            && filter.states.is_empty()
        {
            let told = "Without a state in the filter, only dead deliveries are meant.";
            lines.push((Token::Dim, told.to_owned()));
        }
        if let Stage::Failed(reason) = &self.stage {
            lines.push((Token::Bad, format!("✗ {reason}")));
        }
        lines
    }

    /// How much of what was counted is done.
    pub(crate) fn progress(&self) -> String {
        format!("{} of {}", self.done.count, self.counted.count)
    }

    /// What was done in the end.
    pub(crate) fn outcome(&self) -> String {
        let done = match self.deed {
            Deed::SendAgain => "on the way again",
            Deed::Cancel => "cancelled",
        };
        format!("{} {done}", deliveries(self.done.count))
    }
}

/// So many deliveries.
fn deliveries(count: i64) -> String {
    match count {
        1 => "1 delivery".to_owned(),
        _ => format!("{count} deliveries"),
    }
}

impl Model {
    /// The deed to many deliveries that lies over the page.
    pub(crate) fn bulk_mut(&mut self) -> Option<&mut Bulk> {
        match &mut self.overlay {
            Some(super::overlay::Overlay::Bulk(bulk)) => Some(bulk),
            _ => None,
        }
    }
}
