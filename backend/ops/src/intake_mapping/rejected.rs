//! The last rejected or dropped documents of each mapping and client, in memory.

use std::{
    collections::{HashMap, VecDeque},
    future::{Ready, ready},
    sync::{Mutex, PoisonError},
};

use bellwether_proto::v1;

use crate::{
    domain::Name,
    error::Error,
    limits::{REJECTED_DOCUMENTS_MAX, REJECTED_SENDERS_MAX},
    wire::time::timestamp,
};

/// A document, or an item of one, from which no event was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedDocument {
    /// Whether the condition `drop` matched.
    pub dropped: bool,
    /// The reason, with secrets masked.
    pub reason: String,
    pub size_bytes: usize,
    /// The beginning, with secrets masked.
    pub document: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedDocument {
    /// Time of receipt, in milliseconds since 1970.
    pub time_ms: i64,
    pub client: Name,
    pub rejected: RejectedDocument,
}

/// The last documents, by mapping and client.
#[derive(Debug, Default)]
pub struct RejectedDocuments(Mutex<HashMap<(Name, Name), VecDeque<ReceivedDocument>>>);

impl RejectedDocuments {
    /// Adds documents in the order of receipt, and drops the oldest of the same mapping and client.
    pub fn add(
        &self,
        mapping: &Name,
        client: &Name,
        time_ms: i64,
        documents: Vec<RejectedDocument>,
    ) {
        if documents.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (mapping.clone(), client.clone());
        if all.len() >= REJECTED_SENDERS_MAX && !all.contains_key(&key) {
            let time = |it: &VecDeque<ReceivedDocument>| it.back().map(|it| it.time_ms);
            let oldest = all.iter().min_by_key(|(_, it)| time(it));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        let kept = all.entry(key).or_default();
        kept.extend(documents.into_iter().map(|rejected| ReceivedDocument {
            time_ms,
            client: client.clone(),
            rejected,
        }));
        let beyond = kept.len().saturating_sub(REJECTED_DOCUMENTS_MAX);
        kept.drain(..beyond);
    }

    /// Returns the documents of a mapping, the newest first.
    fn for_mapping(&self, mapping: &str) -> Vec<ReceivedDocument> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_mapping = all.iter().filter(|((name, _), _)| name.as_str() == mapping);
        let mut found: Vec<_> = of_mapping
            .flat_map(|(_, kept)| kept.iter().rev().cloned())
            .collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.time_ms));
        found
    }
}

impl RejectedDocuments {
    /// Adds the rejected documents of a mapping to its view, except for documents of an earlier
    /// mapping with the same name.
    pub fn with_details(
        &self,
        mut mapping: v1::IntakeMapping,
    ) -> Ready<Result<v1::IntakeMapping, Error>> {
        let found = self.for_mapping(&mapping.name).into_iter();
        let found = found.map(|it| v1::RejectedDocument {
            time: Some(timestamp(it.time_ms)),
            client: it.client.to_string(),
            dropped: it.rejected.dropped,
            reason: it.rejected.reason,
            size_bytes: i32::try_from(it.rejected.size_bytes).unwrap_or(i32::MAX),
            document: it.rejected.document,
        });
        let created = mapping.create_time;
        let of_this = found.filter(|it| {
            let moment = |it: &Option<prost_types::Timestamp>| it.map(|it| (it.seconds, it.nanos));
            moment(&it.time) >= moment(&created)
        });
        mapping.rejected_documents = of_this.collect();
        ready(Ok(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected_document(reason: usize) -> RejectedDocument {
        RejectedDocument {
            dropped: false,
            reason: reason.to_string(),
            size_bytes: 1,
            document: String::new(),
        }
    }

    #[test]
    fn last_documents_of_each_mapping_and_client_are_kept() {
        let documents = RejectedDocuments::default();
        let name = |name: &str| Name::parse(name).unwrap();
        let (one, other) = (&name("one"), &name("other"));
        for at in 0..30 {
            let time_ms = i64::try_from(at).unwrap();
            documents.add(one, &name("a"), time_ms, vec![rejected_document(at)]);
        }
        documents.add(
            one,
            &name("b"),
            40,
            (0..30).map(rejected_document).collect(),
        );
        documents.add(other, &name("a"), 50, vec![rejected_document(1)]);
        documents.add(other, &name("b"), 60, Vec::new());
        let found = documents.for_mapping("one");
        let reasons: Vec<_> = found.iter().map(|it| it.rejected.reason.as_str()).collect();
        assert_eq!(found.len(), 2 * REJECTED_DOCUMENTS_MAX);
        assert_eq!((reasons[0], reasons[19]), ("29", "10"));
        assert_eq!((reasons[20], reasons[39]), ("29", "10"));
        assert_eq!(found[20].time_ms, 29);
        assert_eq!(documents.for_mapping("other").len(), 1);
    }

    #[test]
    fn rejected_documents_are_stored_for_a_bounded_number_of_senders() {
        let documents = RejectedDocuments::default();
        let name = Name::parse("a").unwrap();
        for at in 0..=REJECTED_SENDERS_MAX {
            let mapping = Name::parse(&format!("mapping {at}")).unwrap();
            documents.add(
                &mapping,
                &name,
                i64::try_from(at).unwrap(),
                vec![rejected_document(at)],
            );
        }
        assert!(documents.for_mapping("mapping 0").is_empty());
        assert_eq!(documents.for_mapping("mapping 1").len(), 1);
    }
}
