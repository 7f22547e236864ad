//! Receipts.

use crate::domain::{Receipt, RecordId, Refusal};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReceiptV1 {
    #[prost(bytes = "vec", tag = "1")]
    client: Vec<u8>,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(bytes = "vec", tag = "3")]
    fingerprint: Vec<u8>,
    #[prost(int64, tag = "4")]
    create_ms: i64,
    #[prost(message, repeated, tag = "5")]
    refused: Vec<RefusalV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RefusalV1 {
    #[prost(uint32, tag = "1")]
    place: u32,
    #[prost(string, tag = "2")]
    reason: String,
}

impl From<&Receipt> for ReceiptV1 {
    fn from(receipt: &Receipt) -> Self {
        let refusal = |refusal: &Refusal| RefusalV1 {
            place: u32::try_from(refusal.place).unwrap_or(u32::MAX),
            reason: refusal.reason.clone(),
        };
        Self {
            client: receipt.client.to_bytes().into(),
            key: receipt.key.clone(),
            fingerprint: receipt.fingerprint.into(),
            create_ms: receipt.create_ms,
            refused: receipt.refused.iter().map(refusal).collect(),
        }
    }
}

impl ReceiptV1 {
    pub(crate) fn into_receipt(self) -> Option<Receipt> {
        let refusal = |refusal: RefusalV1| {
            Some(Refusal {
                place: usize::try_from(refusal.place).ok()?,
                reason: refusal.reason,
            })
        };
        Some(Receipt {
            client: RecordId::from_bytes(self.client.try_into().ok()?),
            key: self.key,
            fingerprint: self.fingerprint.try_into().ok()?,
            create_ms: self.create_ms,
            refused: self
                .refused
                .into_iter()
                .map(refusal)
                .collect::<Option<_>>()?,
        })
    }
}
