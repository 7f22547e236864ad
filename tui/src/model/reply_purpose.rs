//! The purpose of a reply.

use std::collections::BTreeMap;

use bellwether_proto::v1;

use super::{
    beside::RowDetailsPart,
    inquiry::{Inquiry, Outcome},
    write::Write,
};
use crate::{
    client::ParseOutcome,
    data::{ChartData, ChartPeriod, Kind, Object, Transition},
};

#[derive(Clone, Debug)]
pub(crate) enum ReplyPurpose {
    Overview,
    Statistics(ChartPeriod),
    /// The most frequent open events by a field. Also contains the statistics that were read
    /// before.
    Noisiest(Box<ChartData>, &'static str),
    List(Kind, Vec<Object>),
    One(Kind),
    /// A page of events, and whether it is appended to the rows read before.
    Events {
        more: bool,
    },
    EventTotal,
    Matching,
    GroupedEvents,
    Coverage,
    Event,
    Explanation,
    /// A part of the details of the selected row.
    RowDetails(RowDetailsPart),
    Copy,
    /// The open events that notices are about.
    Attention,
    Outside(OutsideTask),
    /// A page of deliveries, and whether it is appended to the rows read before.
    Deliveries {
        more: bool,
    },
    /// Numbers of deliveries by state, among all or among those that match the filter.
    DeliveryCounts {
        of_all: bool,
    },
    LastHour,
    Delivery,
    Shifts,
    Report(Box<PendingInquiry>),
    FormTest,
    TestQuestion(Box<TestQuestion>),
    Silence,
    /// Values that occur in open events, for a silence that covers none.
    SilenceValues,
    Check,
    /// The validation of a form before saving; for a silence, the events that it would cover.
    Save(Box<PendingSave>),
    Live,
    Bulk(BulkStep),
    Write(Box<Write>, ParseOutcome),
}

/// A task outside the console for which an event is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutsideTask {
    OpenLink,
    /// The position of a command in the keymap.
    Run(usize),
}

/// A test to be confirmed; without a title, a repetition of the current one.
#[derive(Clone, Debug)]
pub(crate) struct TestQuestion {
    pub(crate) title: Option<String>,
    pub(crate) inquiry: Inquiry,
}

#[derive(Clone, Debug)]
pub(crate) struct PendingSave {
    pub(crate) draft: Object,
    /// Name and etag of the resource that the draft replaces, and its stored version.
    pub(crate) stored: Option<(String, String)>,
    pub(crate) before: Option<Object>,
}

#[derive(Clone, Debug)]
pub(crate) struct PendingInquiry {
    pub(crate) inquiry: Inquiry,
    pub(crate) before: Option<Outcome>,
    /// The number of calls for the report so far, including this one.
    pub(crate) calls: usize,
}

impl PendingInquiry {
    pub(crate) fn new(inquiry: Inquiry) -> Self {
        Self {
            inquiry,
            before: None,
            calls: 1,
        }
    }
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
