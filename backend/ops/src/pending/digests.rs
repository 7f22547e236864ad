//! Digests that wait for the end of the budget windows of their destinations.

use std::collections::BTreeMap;

use super::{Filter, HeldMessage, Kind};
use crate::{
    domain::{BudgetWindow, Delivery, DeliveryState},
    error::Error,
    store::{Store, engine::Range, record::bytes::Key},
};

pub(super) async fn waiting_digests(
    store: &Store,
    filter: &Filter,
    range: &Range,
) -> Result<BTreeMap<Vec<u8>, HeldMessage>, Error> {
    let mut waiting = BTreeMap::new();
    let is_of_rules = !filter.rule_names.is_empty() || !filter.silence_name.is_empty();
    if !filter.includes_kind(Kind::Digest) || is_of_rules || filter.event.is_some() {
        return Ok(waiting);
    }
    let mut pages = store.pages::<BudgetWindow>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        let ids = page.iter().flat_map(|it| [it.value.digest, it.value.held]);
        let keys = ids.flatten().map(|id| id.to_bytes().into()).collect();
        let found = store.get_many::<Delivery>(keys).await?;
        for delivery in found.into_iter().flatten().map(|it| it.value) {
            let DeliveryState::Pending { due_ms } = delivery.state else {
                continue;
            };
            let key = Key::new().time_ms(due_ms).id(delivery.id).build();
            let is_before_end = range.end.as_ref().is_none_or(|end| key < *end);
            if key >= range.start && is_before_end {
                waiting.insert(key, HeldMessage::Digest(Box::new(delivery)));
            }
        }
    }
    Ok(waiting)
}
