//! A query from the wire compiles or is refused with its violations. The index of triggers, the
//! plain evaluation and the explanation agree, and a query survives a round trip over the wire.
#![no_main]

use bellwether_backend::{
    matching::{self, TriggerSet},
    message::sample,
    rpc::convert::query,
};
use bellwether_proto::v1;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|input: &[u8]| {
    let Ok(wire) = v1::Query::decode(input) else {
        return;
    };
    let mut violations = Vec::new();
    let Some(query) = query::query(Some(wire), "query", &mut violations) else {
        return;
    };
    if !violations.is_empty() {
        return;
    }
    let mut violations_again = Vec::new();
    let again = query::query(Some(query::to_wire(&query)), "query", &mut violations_again);
    assert!(violations_again.is_empty(), "{violations_again:?}");
    // Compare as text, since NaN does not equal itself.
    assert_eq!(
        format!("{:?}", Some(&query)),
        format!("{:?}", again.as_ref())
    );

    let Ok(compiled) = matching::compile(&query) else {
        return;
    };
    let occurrence = sample::sample_occurrence(1_767_225_600_000);
    let matches = compiled.matches(&occurrence);
    assert_eq!(compiled.explain(&query, &occurrence, &|_| true).result, matches);
    let set = TriggerSet::build(vec![((), compiled)]);
    assert_eq!(set.find_matching(&occurrence).len(), usize::from(matches));
});
