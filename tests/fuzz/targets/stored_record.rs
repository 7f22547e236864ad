//! Stored bytes that are not a record cause an error. A record that was read can be written, and is
//! read unchanged.
#![no_main]

use std::sync::LazyLock;

use bellwether_backend::{
    domain::{Attempt, Client, Delivery, Destination, Health, Occurrence, Rule, Trigger},
    store::{record::Record, seal::Sealer},
};
use libfuzzer_sys::fuzz_target;

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&[(1, [7; 32])]));

fn check<T: Record>(bytes: &[u8]) {
    let Ok(value) = T::decode(bytes, &SEALER) else {
        return;
    };
    let again = T::decode(&value.encode(&SEALER), &SEALER).expect("a message that was written can be read");
    assert_eq!(again.key(), value.key());
    assert_eq!(again.entries().len(), value.entries().len());
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else {
        return;
    };
    match kind % 8 {
        0 => check::<Trigger>(bytes),
        1 => check::<Destination>(bytes),
        2 => check::<Rule>(bytes),
        3 => check::<Client>(bytes),
        4 => check::<Occurrence>(bytes),
        5 => check::<Delivery>(bytes),
        6 => check::<Attempt>(bytes),
        _ => check::<Health>(bytes),
    }
});
