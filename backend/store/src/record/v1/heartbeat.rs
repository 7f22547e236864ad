//! Heartbeats and their expectations.

use crate::{
    domain::{
        Expectation, Heartbeat, HeartbeatEvent, OpenAlarm,
        heartbeat::{ExpectedWindow, HeartbeatRun, Outage},
    },
    record::table::record,
};

record! { Heartbeat {
    1 id, 2 name, 3 description, 4 tags, 5 enabled, 6 query, 7 by, 8 every_ms, 9 grace_ms,
    10 forget_ms, 11 event, 12 key_number, 13 revision, 14 create_ms, 15 update_ms,
    16 calendar, 17 max_run_ms, 18 cron, 19 time_zone,
} }

record! { HeartbeatEvent { 1 name, 2 severity, 3 summary, 4 dimensions } }

record! { Expectation {
    1 heartbeat, 2 key, 3 values, 4 last_ms, 5 beat_service_ms, 6 has_failed, 7 open,
    8 run, 9 run_ms, 10 gaps_ms as PackedForm, 11 window, 12 outages,
} }

record! { Outage { 1 service_ms, 2 down_ms } }

record! { HeartbeatRun { 1 since_service_ms, 2 start_service_ms, 3 start_ms } }

record! { ExpectedWindow { 1 start_ms, 2 length_ms, 3 service_ms, 4 slack_ms, 5 is_over } }

record! { OpenAlarm { 1 event, 2 service_ms, 3 is_failure, 4 is_reported } }
