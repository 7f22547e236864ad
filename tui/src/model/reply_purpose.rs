//! The purpose of a reply.

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

/// What the answer to a call is for, with what was read by the calls before it.
#[derive(Clone, Debug)]
pub(crate) enum ReplyPurpose {
    Overview,
    /// What was counted in that time.
    Statistics(Back),
    /// What is open most by a field, beside what was counted.
    Noisiest(Box<Counted>, &'static str),
    /// A page of the resources of a kind, after those before it.
    List(Kind, Vec<Object>),
    /// One of them, with what the list does not tell.
    One(Kind),
    /// A page of events, and whether it continues after one before.
    Events {
        more: bool,
    },
    /// The number of events of the query of a list.
    EventTotal {
        generation: Ticket,
    },
    /// How many events the filter leaves that is typed.
    Matching,
    /// Events counted by what a field holds.
    Grouped,
    Event,
    Explanation,
    /// An event that is to be copied.
    Copy,
    /// A page of deliveries, and whether it continues after one before.
    Deliveries {
        more: bool,
    },
    /// How many there are by state: of all, or of what the filter leaves.
    DeliveryCounts {
        of_all: bool,
    },
    /// What went to destinations in the last hour.
    LastHour,
    Delivery,
    /// The next shifts of a schedule.
    Shifts,
    Report(Box<Inquired>),
    /// The test of a form.
    FormTest,
    /// Where the event of a test would be sent.
    TestQuestion(Box<TestQuestion>),
    /// What a silence would cover.
    Silence,
    /// Whether the form passes the check of the service.
    Check,
    /// The same before it is asked whether to save it; of a silence, what it would cover.
    Save(Box<Saving>),
    /// What the service makes of the form as it stands.
    Live,
    Bulk(BulkStep),
    Write(Box<Write>, ReadTaken),
}

/// A test that is to be asked about; without a title, the one on the screen again.
#[derive(Clone, Debug)]
pub(crate) struct TestQuestion {
    pub(crate) title: Option<String>,
    pub(crate) inquiry: Inquiry,
}

/// A draft that is to be saved once the service has looked at it.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    pub(crate) draft: Object,
    /// The name and etag of what it replaces, and the text of that.
    pub(crate) stored: Option<(String, String)>,
    pub(crate) before: String,
}

/// An inquiry that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Inquired {
    pub(crate) inquiry: Inquiry,
    /// What was read by the calls before this one.
    pub(crate) before: Option<Outcome>,
    /// How many calls there are with this one.
    pub(crate) calls: usize,
}

impl Inquired {
    /// The first call of an inquiry.
    pub(crate) fn new(inquiry: Inquiry) -> Self {
        Self {
            inquiry,
            before: None,
            calls: 1,
        }
    }
}

/// One call of something that is done to many.
#[derive(Clone, Debug)]
pub(crate) enum BulkStep {
    /// How many events are meant.
    Count,
    /// Which they are, a page of them.
    Gather,
    /// How many messages a change of them sends.
    Updates(Box<Updating>),
    /// Some of the events were changed.
    Part(ReadTaken),
    /// Deliveries were counted or changed.
    Deliveries(Transition),
}

/// Counting the receivers that were notified of what is to be changed.
#[derive(Clone, Debug)]
pub(crate) struct Updating {
    pub(crate) asked: v1::ListObligationsRequest,
    /// By destination, so far.
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) calls: usize,
}
