//! Conversion of statistics.

use bellwether_proto::v1;

use super::{
    list::to_i32,
    time::{duration_from_ms, timestamp},
};
use crate::{
    domain::counter::Tally,
    ops::statistics::{DeliveryCounts, Statistics},
};

pub fn statistics(statistics: Statistics) -> v1::GetStatisticsResponse {
    let columns = statistics.columns;
    let events = statistics.events.into_iter();
    let destinations = statistics.destinations.into_iter();
    let rules = statistics.rules.into_iter();
    v1::GetStatisticsResponse {
        counted_since_time: statistics.since_ms.map(timestamp),
        start_time: Some(timestamp(columns.start_ms())),
        step: Some(duration_from_ms(columns.step_ms())),
        events: events
            .map(|(severity, counts)| v1::SeverityStatistics {
                severity: severity as i32,
                counts: counts.into_iter().map(to_i32).collect(),
            })
            .collect(),
        deliveries: Some(deliveries(&statistics.deliveries)),
        destinations: destinations.map(named_statistics).collect(),
        rules: rules.map(named_statistics).collect(),
    }
}

fn named_statistics((name, counts): (String, DeliveryCounts)) -> v1::NamedStatistics {
    v1::NamedStatistics {
        name,
        deliveries: Some(deliveries(&counts)),
    }
}

fn deliveries(counts: &DeliveryCounts) -> v1::DeliveryStatistics {
    let now = |tally| Some(to_i32(counts.now.get(tally)));
    let happened = |tally| {
        let columns = counts.happened.iter();
        columns.map(|column| to_i32(column.get(tally))).collect()
    };
    v1::DeliveryStatistics {
        waiting_count: now(Tally::Waiting),
        delivered_count: now(Tally::Delivered),
        dead_count: now(Tally::Dead),
        cancelled_count: now(Tally::Cancelled),
        decided: happened(Tally::Decided),
        delivered: happened(Tally::Delivered),
        dead: happened(Tally::Dead),
        cancelled: happened(Tally::Cancelled),
        failed_attempts: happened(Tally::Failed),
        waiting: counts.waiting_at_end().into_iter().map(to_i32).collect(),
    }
}
