//! Settings shared by all nodes.

use std::{sync::Arc, time::Duration};

use super::destination::to_milliseconds;
use crate::{
    domain::{Settings, SharedSettings, Snippets},
    record::table::record,
};

record! {
    Settings as it {
        1 id, 2 name, 3 from_file, 4 tenant = it.values.tenant,
        5 info_age_max_ms = to_milliseconds(it.values.info_age_max),
        6 warning_age_max_ms = to_milliseconds(it.values.warning_age_max),
        7 error_age_max_ms = to_milliseconds(it.values.error_age_max),
        8 event_retention_ms = to_milliseconds(it.values.event_retention),
        9 delivery_retention_ms = to_milliseconds(it.values.delivery_retention),
        10 audit_retention_ms = to_milliseconds(it.values.audit_retention),
        11 together_from = it.values.together_from,
        12 revision, 13 create_ms, 14 update_ms,
        15 quiet_since_ms = it.values.quiet_since_ms,
        16 templates = Snippets::clone(&it.values.templates),
    } with {
        values: SharedSettings {
            tenant,
            info_age_max: Duration::from_millis(info_age_max_ms),
            warning_age_max: Duration::from_millis(warning_age_max_ms),
            error_age_max: Duration::from_millis(error_age_max_ms),
            event_retention: Duration::from_millis(event_retention_ms),
            delivery_retention: Duration::from_millis(delivery_retention_ms),
            audit_retention: Duration::from_millis(audit_retention_ms),
            together_from,
            quiet_since_ms,
            templates: Arc::new(templates),
        },
    }
}
