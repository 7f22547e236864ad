//! Tests of the metadata that enrichment tables set in occurrences.

use std::sync::Arc;

use super::*;
use crate::{
    decide::LoadedEnrichment,
    domain::{EnrichmentTable, Value},
    samples,
};

fn tables(csv: &str) -> Enrichments {
    let table = EnrichmentTable {
        match_fields: vec!["host".into()],
        csv: csv.into(),
        ..samples::enrichment("hosts")
    };
    Enrichments::new(vec![Arc::new(LoadedEnrichment::new(table).unwrap())])
}

/// Applies an event with this metadata, one second after the previous one.
fn receive(
    occurrence: &mut Option<Occurrence>,
    metadata: &[(&str, &str)],
    enrichments: &Enrichments,
) {
    let last_ms = occurrence.as_ref().map_or(START_MS, |it| it.last_seen_ms);
    let pairs = metadata.iter();
    let event = IncomingEvent {
        metadata: pairs
            .map(|(key, value)| ((*key).to_owned(), Value::Text((*value).into())))
            .collect(),
        summary: String::new(),
        ..event(None, None, last_ms + 1_000)
    };
    let arrival = Arrival {
        enrichments,
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: event.timestamp_ms,
    };
    let key = RecordId::from_parts(1, 0);
    let settings = SharedSettings::default();
    if let EventEffect::Opened(opened) = apply_event(occurrence.as_mut(), &arrival, &settings, key)
    {
        *occurrence = Some(*opened);
    }
}

fn metadata(occurrence: Option<&Occurrence>) -> String {
    let fields = occurrence.unwrap().metadata.iter();
    let pairs = fields.map(|(key, value)| match value {
        Value::Text(text) => format!("{key}={text}"),
        other => format!("{key}={other:?}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn changed_table_replaces_its_own_values_and_keeps_the_senders() {
    let (first, second) = (
        tables("host,team,site\na,db,b1"),
        tables("host,team\na,web"),
    );
    let mut found = None;
    receive(&mut found, &[("disk", "sda")], &first);
    assert_eq!(metadata(found.as_ref()), "disk=sda site=b1 team=db");
    let id = found.as_ref().unwrap().event;
    assert_eq!(
        id,
        event(None, None, 0).id(),
        "the identity is the sender's"
    );
    let content_ms = found.as_ref().unwrap().content_ms;
    // An event without metadata keeps the sender's.
    receive(&mut found, &[], &first);
    assert_eq!(metadata(found.as_ref()), "disk=sda site=b1 team=db");
    assert_eq!(found.as_ref().unwrap().content_ms, content_ms);
    receive(&mut found, &[], &second);
    assert_eq!(metadata(found.as_ref()), "disk=sda team=web");
    assert!(found.as_ref().unwrap().content_ms > content_ms);
    receive(&mut found, &[("team", "ops")], &second);
    assert_eq!(metadata(found.as_ref()), "team=ops");
    assert!(found.as_ref().unwrap().enriched.is_empty());
    receive(&mut found, &[("disk", "sdb")], &second);
    receive(&mut found, &[], &NO_ENRICHMENTS);
    assert_eq!(metadata(found.as_ref()), "disk=sdb");
    assert_eq!(found.as_ref().unwrap().number, 1);
    assert_eq!(found.unwrap().count, 6);
}
