//! Conversion of found events, counts and changes.

use bellwether_proto::v1;

use super::event::event_with_one_occurrence;
use crate::{
    ops::{
        search::{Bucket, Group, Groups, SearchPage},
        watch::WatchUpdate,
    },
    wire::{count_by_name, to_i32},
};

pub fn page(found: SearchPage) -> v1::SearchEventsResponse {
    let count = found.occurrences.len();
    v1::SearchEventsResponse {
        results: found
            .occurrences
            .into_iter()
            .map(event_with_one_occurrence)
            .collect(),
        page_info: Some(v1::PageInfo {
            count: Some(to_i32(count)),
            total_count: found.total.map(to_i32),
            has_next: Some(found.has_next),
            start_cursor: found.start_cursor,
            end_cursor: found.end_cursor,
        }),
        warnings: Vec::new(),
    }
}

pub fn bucket(bucket: Bucket) -> v1::FrequencyBucket {
    v1::FrequencyBucket {
        start: bucket.start_ms,
        end: bucket.end_ms,
        count_by_severity: count_by_name(bucket.by_severity),
    }
}

pub fn groups(found: Groups, limit: usize) -> v1::GroupEventsResponse {
    let group = |group: Group| v1::EventGroup {
        value: group.value,
        count: Some(to_i32(group.by_severity.values().sum::<usize>())),
        count_by_severity: count_by_name(group.by_severity),
        last_seen: group.last_seen_ms,
    };
    v1::GroupEventsResponse {
        group_count: Some(to_i32(found.all.len())),
        occurrence_count: Some(to_i32(found.counted)),
        complete: Some(found.is_complete),
        groups: found.all.into_iter().take(limit).map(group).collect(),
        warnings: Vec::new(),
    }
}

pub fn watch_response(update: WatchUpdate) -> v1::WatchEventsResponse {
    v1::WatchEventsResponse {
        events: update
            .changed
            .into_iter()
            .map(event_with_one_occurrence)
            .collect(),
        left_occurrence_ids: update.left.into_iter().map(|id| id.to_string()).collect(),
        resume_token: update.resume_token,
        gap: update.gap,
        warnings: Vec::new(),
    }
}
