//! The purpose of a response.

use std::collections::BTreeMap;

use bellwether_proto::v1;

use super::{
    inquiry::{Inquiry, Outcome},
    write::Write,
};
use crate::{
    client::{ReadTaken, Ticket},
    data::{Back, Counted, Kind, Object, Transition},
};

/// The purpose of a response, with data from earlier calls.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Overview,
    /// Statistics of a period.
    Statistics(Back),
    /// Most frequent open events by a field, with the statistics read before.
    Noisiest(Box<Counted>, &'static str),
    /// A page of resources of a kind, with the previous pages.
    List(Kind, Vec<Object>),
    /// A resource with details that the list omits.
    One(Kind),
    /// A page of events, and whether it follows another.
    Events {
        more: bool,
    },
    /// The number of events of a list's query.
    EventTotal {
        generation: Ticket,
    },
    /// The number of events that match the filter being typed.
    Matching,
    /// Events counted by a field.
    Grouped,
    Event,
    Explanation,
    /// An event to copy.
    Copy,
    /// A page of deliveries, and whether it follows another.
    Deliveries {
        more: bool,
    },
    /// Numbers of deliveries by state: of all, or of those that match the filter.
    DeliveryCounts {
        of_all: bool,
    },
    /// Deliveries by destination in the last hour.
    LastHour,
    Delivery,
    /// The next shifts of a schedule.
    Shifts,
    Report(Box<Inquired>),
    /// A test from a form.
    FormTest,
    /// The rendered request of a test, to be confirmed.
    TestQuestion(Box<TestQuestion>),
    /// What a silence would cover.
    Silence,
    /// The validation of a form.
    Check,
    /// The validation of a form before saving; for a silence, what it would cover.
    Save(Box<Saving>),
    /// The service's result for a form.
    Live,
    Bulk(BulkStep),
    Write(Box<Write>, ReadTaken),
}

/// A test to be confirmed; without a title, a repetition of the one on the screen.
#[derive(Clone, Debug)]
pub(crate) struct TestQuestion {
    pub(crate) title: Option<String>,
    pub(crate) inquiry: Inquiry,
}

/// A draft to be saved after its validation.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    pub(crate) draft: Object,
    /// Name and etag of the resource it replaces, and the text of that version.
    pub(crate) stored: Option<(String, String)>,
    pub(crate) before: String,
}

/// A report in progress.
#[derive(Clone, Debug)]
pub(crate) struct Inquired {
    pub(crate) inquiry: Inquiry,
    /// The result of the previous calls.
    pub(crate) before: Option<Outcome>,
    /// The number of calls, including this one.
    pub(crate) calls: usize,
}

impl Inquired {
    /// Starts a report.
    pub(crate) fn new(inquiry: Inquiry) -> Self {
        Self {
            inquiry,
            before: None,
            calls: 1,
        }
    }
}

/// A call of a bulk change.
#[derive(Clone, Debug)]
pub(crate) enum BulkStep {
    /// The number of events.
    Count,
    /// A page of their ids.
    Gather,
    /// The number of messages that the change sends.
    Updates(Box<Updating>),
    /// The result of changing a batch of events.
    Part(ReadTaken),
    /// The result of counting or changing deliveries.
    Deliveries(Transition),
}

/// A count of the receivers to be notified of a change.
#[derive(Clone, Debug)]
pub(crate) struct Updating {
    pub(crate) asked: v1::ListObligationsRequest,
    /// Counts by destination so far.
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) calls: usize,
}
