//! Occurrences.

use crate::{
    domain::{
        Annotation, Close, CloseReason, EarlierOccurrence, Evaluation, Field, Flapping,
        HistoryEntry, IncomingEvent, Name, Notified, Occurrence, Opening, OwnEvent, RecordId,
        Report, Reporter, Reports, RevisionId, Severity, Status, ThreadOrigin,
    },
    record::table::{numbers, record},
};

record! {
    Occurrence as it {
        1 key, 2 event, 3 number, 4 name, 5 kind, 6 dimensions, 7 metadata as WrapperForm, 8 summary,
        9 body, 10 severity, 11 status, 12 acknowledged, 13 start_ms, 14 last_seen_ms,
        15 close_ms = it.close.map_or(0, |close| close.at_ms),
        16 close_reason as OptionalForm = it.close.map(|close| close.reason),
        17 count, 18 prior_count, 19 annotations, 20 history, 21 notified, 22 chain, 23 review_ms,
        24 content_ms, 25 evaluation, 26 received_ms, 27 reopened, 28 covered_by, 29 pending,
        30 hold_changes, 31 earlier, 32 causes, 33 expire_ms, 34 flapping, 35 assignee as OptionalForm,
        36 trace as OptionalForm,
        37 began_first_ms = it.reports.began_ms.map(|(first, _)| first),
        38 began_last_ms = it.reports.began_ms.map(|(_, last)| last),
        39 reporters = it.reports.reporters, 40 acknowledged_until_ms,
        41 ended_ms = it.reports.ended_ms, 42 age_shift_ms, 43 acknowledged_severity as OptionalForm,
        44 informed, 45 enriched,
    } with {
        close: decode_close(close_reason, close_ms),
        reports: Reports {
            began_ms: Option::zip(began_first_ms, began_last_ms), ended_ms, reporters,
        },
    }
}

fn decode_close(reason: Option<CloseReason>, at_ms: i64) -> Option<Close> {
    reason.map(|reason| Close { at_ms, reason })
}

record! {
    OwnEvent as it {
        1 id, 2 name = it.event.name, 3 kind = it.event.kind, 4 dimensions = it.event.dimensions,
        5 metadata as WrapperForm = it.event.metadata, 6 summary = it.event.summary,
        7 body = it.event.body, 8 severity as OptionalForm = it.event.severity,
        9 status as OptionalForm = it.event.status, 10 timestamp_ms = it.event.timestamp_ms, 11 chain,
    } with {
        event: IncomingEvent {
            name, kind, dimensions, metadata, summary, body, severity, status, timestamp_ms,
            acknowledged: None,
            expire_ms: None,
            report: Report::default(),
        },
    }
}

record! { Reporter { 1 id as FixedForm, 2 until_ms, 3 began_ms, 4 is_over } }

record! { Flapping { 1 rule, 2 openings as PackedForm, 3 number, 4 changed_ms, 5 since_ms } }

record! { ThreadOrigin { 1 key, 2 number } }

record! { EarlierOccurrence { 1 end_ms, 2 length_ms, 3 by_sender } }

record! { Evaluation { 1 at_ms, 2 rules_ms, 3 by_event } }

record! { Annotation { 1 id, 2 text, 3 author, 4 create_ms, 5 update_ms } }

record! { HistoryEntry { 1 at_ms, 2 author as OptionalForm, 3 field, 4 from, 5 to } }

record! { Notified {
    1 rule, 2 rule_name, 3 last_ms, 4 send_updates, 5 destinations, 6 cleared, 7 opening,
    8 group as OptionalForm, 9 shadow, 10 thread, 11 response, 12 last_notified,
} }

record! {
    Opening as it {
        1 at_ms,
        2 reference = (it.trigger.id, it.trigger.name.clone()),
        3 trigger_revision = it.trigger.revision,
        4 rule_revision,
    } with { trigger: decode_revision_id(reference, trigger_revision) }
}

fn decode_revision_id((id, name): (RecordId, Name), revision: u64) -> RevisionId {
    RevisionId { name, id, revision }
}

record! { (RecordId, Name) as it { 1 id = it.0, 2 name = it.1 } => Some((id, name)) }

numbers! { Severity, Status }

numbers! {
    CloseReason { 1 Sender, 2 Operator, 3 Aged, 4 Expired }
    Field { 1 Severity, 2 Status, 3 Acknowledged, 4 Assignee }
}

#[cfg(test)]
mod tests {
    use crate::{domain::Occurrence, record::Record, seal::Sealer};

    /// An occurrence encoded by a version that did not record the basis of decisions.
    const OLD: &str = "010a10000102030405060708090a0b0c0d0e0f1214000102030405060708090a0b0c0d0e0f101112\
        13180122046469736b2a046469736b32090a04686f7374120161420466756c6c500458016880a0f1\
        c2b1347080a0f1c2b134880101a201170880a0f1c2b134120673656e64657218022a046f70656eaa\
        013b0a10090909090909090909090909090909091204706167651880a0f1c2b13420012a180a1007\
        0707070707070707070707070707071204686f6f6bb801c0ef95c3b134";

    #[test]
    fn occurrence_without_decision_notes_round_trips() {
        let pairs = OLD.as_bytes().chunks(2);
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let sealer = Sealer::with_random_key();
        let old = Occurrence::decode(&bytes, &sealer).unwrap();
        assert_eq!((old.content_ms, old.evaluation), (None, None));
        assert_eq!(old.notified[0].rule_name.as_str(), "page");
        assert_eq!(old.notified[0].opening, None);
        assert_eq!(old.encode(&sealer), bytes);
    }
}
