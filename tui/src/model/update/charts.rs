//! Data for the overview's charts: statistics, and the most frequent open events.

use bellwether_proto::v1;

use super::call;
use crate::{
    client::{Call, CallResult, EventFilter, Ticket, message},
    data::{ChartData, ChartPeriod, FailureKind},
    model::{Model, reply::ReplyHandler},
};

const GROUPS: i32 = 50;
const NAME: &str = "name";
const HOST: &str = "host";

pub(super) fn read_statistics(model: &mut Model) {
    let back = model.chart_period;
    let span = prost_types::Duration {
        seconds: back.seconds(),
        nanos: 0,
    };
    let request = v1::GetStatisticsRequest { span: Some(span) };
    let call = Call::from_request("OverviewService", &request);
    send_request(model, call, move |model, ticket, answer| {
        handle_statistics(model, ticket, back, answer)
    });
    model.store.counted_revision = model.store.overview.revision;
    model.store.wall.requested_ms = model.now_ms;
}

fn send_request(model: &mut Model, call: Call, handler: impl ReplyHandler) {
    model.store.wall.waiting = Some(self::call(model, call, handler));
}

fn count(model: &mut Model, counted: Box<ChartData>, by: &'static str) {
    let open = EventFilter {
        open_only: true,
        ..EventFilter::default()
    };
    let call = open.group(by, GROUPS);
    send_request(model, call, move |model, ticket, answer| {
        handle_noise_response(model, ticket, counted, by, answer)
    });
}

fn handle_statistics(
    model: &mut Model,
    ticket: Ticket,
    back: ChartPeriod,
    answer: CallResult,
) -> bool {
    // Drops the response if the period was changed in the meantime.
    if model.store.wall.waiting != Some(ticket) {
        return false;
    }
    match message(answer) {
        Ok(statistics) => {
            let counted = Box::new(ChartData {
                back,
                statistics,
                names: None,
                hosts: None,
            });
            count(model, counted, NAME);
            false
        }
        Err(failure) => model.store.wall.record(Err(failure), model.now_ms),
    }
}

fn handle_noise_response(
    model: &mut Model,
    ticket: Ticket,
    mut counted: Box<ChartData>,
    by: &str,
    answer: CallResult,
) -> bool {
    if model.store.wall.waiting != Some(ticket) {
        return false;
    }
    let found = match message(answer) {
        Ok(found) => Some(found),
        // Older services do not support this call.
        Err(failure) if failure.kind == FailureKind::Unsupported => None,
        Err(failure) => return model.store.wall.record(Err(failure), model.now_ms),
    };
    if by == NAME {
        counted.names = found;
        count(model, counted, HOST);
        return false;
    }
    counted.hosts = found;
    model.store.wall.record(Ok(*counted), model.now_ms)
}
