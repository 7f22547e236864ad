//! Groups, and the content of their messages.

use crate::{
    domain::{Group, GroupContent, MemberChange, Occurrence},
    record::table::{numbers, record},
};

record! { Group {
    1 id, 2 rule, 3 rule_name, 4 key, 5 by, 6 interval_ms, 7 destinations, 8 message_count,
    9 member_count, 10 is_full, 11 create_ms, 12 last_ms, 13 notified_ms, 14 end_ms, 15 shadow, 16 responder as OptionalForm,
} }

record! { GroupContent {
    1 id, 2 by, 3 count, 4 open_count, 5 joined_count, 6 closed_count, 7 is_first, 8 is_over,
    9 acknowledged, 10 members,
} }

record! {
    (Option<MemberChange>, Occurrence) as it {
        1 change as OptionalForm = it.0, 2 occurrence = it.1,
    } => Some((change, occurrence))
}

numbers! { MemberChange }
