//! A query from the wire compiles or is refused with its faults; the index of triggers, the plain
//! evaluation and the explanation agree, and a query survives the way to the wire and back.
//!
//! An input is the length of a stored occurrence (two bytes), the occurrence, and the query.
#![no_main]

use std::sync::LazyLock;

use bellwether_backend::{
    domain::Occurrence,
    matching::{self, TriggerSet},
    rpc::convert::query,
    store::{record::Record, seal::Sealer},
};
use bellwether_proto::v1;
use libfuzzer_sys::fuzz_target;
use prost::Message;

static SEALER: LazyLock<Sealer> = LazyLock::new(Sealer::ephemeral);

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let Some((record, wire)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
    else {
        return;
    };
    let Ok(wire) = v1::Query::decode(wire) else {
        return;
    };
    let mut faults = Vec::new();
    let Some(query) = query::query(Some(wire), "query", &mut faults) else {
        return;
    };
    if !faults.is_empty() {
        return;
    }
    let mut faults_again = Vec::new();
    let again = query::query(Some(query::to_wire(&query)), "query", &mut faults_again);
    assert!(faults_again.is_empty(), "{faults_again:?}");
    // Not compared as values: no number equals NaN.
    assert_eq!(
        format!("{:?}", Some(&query)),
        format!("{:?}", again.as_ref())
    );

    let Ok(compiled) = matching::compile(&query) else {
        return;
    };
    let Ok(occurrence) = Occurrence::decode(record, &SEALER) else {
        return;
    };
    let matches = compiled.matches(&occurrence);
    assert_eq!(compiled.explain(&query, &occurrence).result, matches);
    let set = TriggerSet::build(vec![((), compiled)]);
    assert_eq!(set.matching(&occurrence).len(), usize::from(matches));
});
