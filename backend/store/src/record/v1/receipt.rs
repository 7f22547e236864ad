//! Receipts.

use crate::{
    domain::{Receipt, Refusal},
    record::table::record,
};

record! { Receipt { 1 client, 2 key, 3 fingerprint, 4 create_ms, 5 refused } }

record! {
    Refusal as it {
        1 place = u32::try_from(it.place).unwrap_or(u32::MAX),
        2 reason,
    } with { place: TryFrom::<u32>::try_from(place).ok()? }
}
