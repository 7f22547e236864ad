//! The location of each index. All statements are generated from this list.
//!
//! An index with at most one entry per record is usually a column. An update that moves one column
//! entry writes to all indexes of its table, so an index whose entries move often is a separate
//! table if the other columns rarely change. An index with several entries per record is always a
//! separate table.
//!
//! Records that change often have a narrow table, indexed only by the key and by the entries that
//! most changes move. Their stable entries are in a side table, so that an update of the record
//! does not write to their indexes, even when a snapshot is open and PostgreSQL has to write to all
//! indexes of a table. A row of the side table is found by one of its entries, so the table needs
//! no index on the record's key. Such an entry is added, replaced or removed together with its
//! record.

use crate::{index::Index, kind::Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexLocation {
    Column(&'static str),
    SideTable(&'static str),
    Table(&'static str),
}

pub(super) fn index_location(index: Index) -> IndexLocation {
    use IndexLocation::{Column, SideTable, Table};
    match index {
        Index::OccurrenceByEvent => SideTable("by_event"),
        Index::OccurrenceByStart => SideTable("by_start"),
        Index::OccurrenceByReview => SideTable("by_review"),
        Index::OccurrenceBySeverity => SideTable("by_severity"),
        Index::OccurrenceByState => Column("by_state"),
        Index::DeliveryByDestination => Column("by_destination"),
        Index::DeliveryByRule => Column("by_rule"),
        Index::DeliveryByGroup => Column("by_group"),
        Index::DeliveryByDigest => Column("by_digest"),
        Index::NotificationByTrigger => Column("notified_by_trigger"),
        Index::NotificationByDestination => Column("notified_by_destination"),
        Index::ReceiptByTime => Column("by_time"),
        Index::RevisionByEnd | Index::GroupByEnd => Column("by_end"),
        Index::GroupByKey => Column("by_key"),
        Index::OccurrenceByDue => Table("occurrence_by_due"),
        Index::OccurrenceBySilence => Table("occurrence_by_silence"),
        Index::OccurrenceByCause => Table("occurrence_by_cause"),
        Index::OccurrenceByGroup => Table("occurrence_by_group"),
        Index::RuleByTrigger => Table("rule_by_trigger"),
        Index::RuleByDestination => Table("rule_by_destination"),
        Index::RuleByCalendar => Table("rule_by_calendar"),
        Index::SilenceByCalendar => Table("silence_by_calendar"),
        Index::CalendarByException => Table("calendar_by_exception"),
        Index::ClientByKey => Table("client_by_key"),
        Index::DeliveryByDue => Table("delivery_by_due"),
        Index::DeliveryByState => Table("delivery_by_state"),
        Index::DeliveryByThread => Table("delivery_by_thread"),
        // A report on a group has entries for all members.
        Index::DeliveryByEvent => Table("delivery_by_event"),
        Index::AuditByName => Table("audit_by_name"),
        Index::ExpectationByBeat => Table("expectation_by_beat"),
        Index::RuleByPolicy => Table("rule_by_policy"),
        Index::ContactByUse => Table("contact_by_use"),
        Index::ScheduleByUse => Table("schedule_by_use"),
        Index::PolicyByUse => Table("policy_by_use"),
        Index::OccurrenceByResponse => Table("occurrence_by_response"),
        Index::HeartbeatByCalendar => Table("heartbeat_by_calendar"),
    }
}

/// Returns the side table of a kind, or `None` if all columns are in the main table.
pub(super) fn side_table(kind: Kind) -> Option<&'static str> {
    (kind == Kind::Occurrence).then_some("occurrence")
}

/// Returns the index columns of a kind's table, in the order of their numbers.
pub(super) fn index_columns(kind: Kind) -> impl Iterator<Item = (Index, &'static str)> {
    indexes_of_kind(kind).filter_map(|index| match index_location(index) {
        IndexLocation::Column(name) => Some((index, name)),
        IndexLocation::SideTable(_) | IndexLocation::Table(_) => None,
    })
}

pub(super) fn side_index_columns(kind: Kind) -> impl Iterator<Item = (Index, &'static str)> {
    indexes_of_kind(kind).filter_map(|index| match index_location(index) {
        IndexLocation::SideTable(name) => Some((index, name)),
        IndexLocation::Column(_) | IndexLocation::Table(_) => None,
    })
}

fn indexes_of_kind(kind: Kind) -> impl Iterator<Item = Index> {
    Index::ALL.into_iter().filter(move |it| it.kind() == kind)
}

#[cfg(test)]
mod tests {
    use super::{IndexLocation, index_location, side_table};
    use crate::{index::Index, kind::Kind, postgres::migration::NEWEST};

    #[test]
    fn newest_layout_has_a_table_for_every_kind() {
        for kind in Kind::ALL {
            assert!(
                kind.layout().is_none_or(|layout| layout <= NEWEST),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn indexes_do_not_share_storage() {
        let mut places = std::collections::HashSet::new();
        for index in Index::ALL {
            let table = match index_location(index) {
                IndexLocation::Column(name) => (index.kind().table_name(), name),
                IndexLocation::SideTable(name) => (side_table(index.kind()).unwrap(), name),
                IndexLocation::Table(name) => (name, ""),
            };
            assert!(places.insert(table), "{index:?}");
        }
    }
}
