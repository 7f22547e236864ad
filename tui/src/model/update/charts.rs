//! Reads what the charts of the overview show: statistics, and what is open most.

use bellwether_proto::v1;

use super::call;
use crate::{
    client::{Answer, Call, EventFilter, Ticket, message},
    data::{Back, Counted, FailureKind},
    model::{Model, message::Effect, reply_purpose::ReplyPurpose},
};

/// Groups that the overview shows at most.
const GROUPS: i32 = 50;
/// The fields that open events are counted by.
const NAME: &str = "name";
const HOST: &str = "host";

/// Reads all of it, one after the other.
pub(super) fn read(model: &mut Model, effects: &mut Vec<Effect>) {
    let back = model.back_to;
    let span = prost_types::Duration {
        seconds: back.seconds(),
        nanos: 0,
    };
    let request = v1::GetStatisticsRequest { span: Some(span) };
    let call = Call::of("OverviewService", &request);
    ask(model, call, ReplyPurpose::Statistics(back), effects);
    model.store.counted_revision = model.store.overview.revision;
    model.store.counted_from_ms = model.now_ms;
}

fn ask(model: &mut Model, call: Call, then: ReplyPurpose, effects: &mut Vec<Effect>) {
    model.store.wall.waiting = Some(self::call(model, call, then, effects));
}

/// Counts what is open by a field, to show it beside what was read before.
fn count(model: &mut Model, counted: Box<Counted>, by: &'static str, effects: &mut Vec<Effect>) {
    let open = EventFilter {
        open_only: true,
        ..EventFilter::default()
    };
    let call = open.group(by, GROUPS);
    ask(model, call, ReplyPurpose::Noisiest(counted, by), effects);
}

/// Processes the statistics of that time.
pub(super) fn statistics(
    model: &mut Model,
    ticket: Ticket,
    back: Back,
    answer: Answer,
    effects: &mut Vec<Effect>,
) -> bool {
    // Another span was asked for meanwhile.
    if model.store.wall.waiting != Some(ticket) {
        return false;
    }
    match message(answer) {
        Ok(statistics) => {
            let counted = Box::new(Counted {
                back,
                statistics,
                names: None,
                hosts: None,
            });
            count(model, counted, NAME, effects);
            false
        }
        Err(failure) => model.store.wall.set(Err(failure), model.now_ms),
    }
}

/// Processes what is open most by a field; after the last one all of it is shown.
pub(super) fn noisiest(
    model: &mut Model,
    ticket: Ticket,
    mut counted: Box<Counted>,
    by: &str,
    answer: Answer,
    effects: &mut Vec<Effect>,
) -> bool {
    if model.store.wall.waiting != Some(ticket) {
        return false;
    }
    let found = match message(answer) {
        Ok(found) => Some(found),
        // An older service does not tell.
        Err(failure) if failure.kind == FailureKind::Unsupported => None,
        Err(failure) => return model.store.wall.set(Err(failure), model.now_ms),
    };
    if by == NAME {
        counted.names = found;
        count(model, counted, HOST, effects);
        return false;
    }
    counted.hosts = found;
    model.store.wall.set(Ok(*counted), model.now_ms)
}
