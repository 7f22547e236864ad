//! Creates new deliveries that send ended ones again with the current templates.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    decide::rule_content,
    domain::{
        Content, Delivery, DeliveryState, Destination, DigestMembership, RecordId, Rule,
        delivery::Recipients, destination::KeptValues,
    },
    error::Error,
    store::{Changes, Record, Store, Stored},
};

/// Current rules and destinations, each read once.
pub(super) struct Templates<'a> {
    store: &'a Store,
    destinations: HashMap<String, Option<Stored<Destination>>>,
    rules: HashMap<String, Option<Stored<Rule>>>,
}

impl<'a> Templates<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self {
            store,
            destinations: HashMap::new(),
            rules: HashMap::new(),
        }
    }

    pub(super) async fn has_destination(&mut self, old: &Delivery) -> Result<bool, Error> {
        Ok(self.destination(old).await?.is_some())
    }

    /// Adds a new delivery for an ended one, and marks the ended one as sent again. Returns
    /// [`Error::FailedPrecondition`] if the destination was deleted.
    pub(super) async fn resend(
        &mut self,
        changes: &mut Changes,
        old: &Stored<Delivery>,
        id: RecordId,
        now_ms: i64,
    ) -> Result<Delivery, Error> {
        let rule = self.rule(&old.value).await?.map(|rule| rule_content(&rule));
        let Some(destination) = self.destination(&old.value).await? else {
            return Err(Error::FailedPrecondition(format!(
                "the destination `{}` no longer exists",
                old.value.destination_name
            )));
        };
        let new = Delivery {
            id,
            state: DeliveryState::Pending { due_ms: now_ms },
            attempts: 0,
            deferrals: 0,
            awaits_receiver: false,
            is_reduced: false,
            last_error: String::new(),
            create_ms: now_ms,
            end_ms: None,
            retry_of: Some(old.value.id),
            origin: Some(old.value.thread_position().0),
            retried_as: None,
            folding: DigestMembership::Open,
            in_thread: true,
            behind: None,
            may_have_arrived: false,
            kept: KeptValues::default(),
            // A delivered message is sent to all recipients again, a failed one only to those that
            // did not receive it.
            recipients: Recipients {
                reached: match old.value.state {
                    DeliveryState::Delivered => Vec::new(),
                    _ => old.value.recipients.reached.clone(),
                },
                refused: Vec::new(),
            },
            content: Content {
                rule: rule.unwrap_or_else(|| old.value.content.rule.clone()),
                destination_kind: destination.value.kind.clone(),
                template_language: destination.value.template_language,
                ..old.value.content.clone()
            },
            ..old.value.clone()
        };
        let marked = Delivery {
            retried_as: Some(id),
            ..old.value.clone()
        };
        changes.touch_record(destination);
        changes.update(old, &marked);
        changes.insert(&new);
        Ok(new)
    }

    async fn destination(&mut self, of: &Delivery) -> Result<Option<&Stored<Destination>>, Error> {
        let name = &of.destination_name;
        let found = read_cached(self.store, &mut self.destinations, name).await?;
        Ok(found.filter(|found| found.value.id == of.destination))
    }

    async fn rule(&mut self, of: &Delivery) -> Result<Option<Rule>, Error> {
        let found = read_cached(self.store, &mut self.rules, &of.content.rule.name).await?;
        let found = found.filter(|found| Some(found.value.id) == of.rule);
        Ok(found.map(|found| found.value.clone()))
    }
}

async fn read_cached<'m, T: Record>(
    store: &Store,
    known: &'m mut HashMap<String, Option<Stored<T>>>,
    name: &str,
) -> Result<Option<&'m Stored<T>>, Error> {
    let found = match known.entry(name.to_owned()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(store.get(name.as_bytes().into()).await?),
    };
    Ok(found.as_ref())
}
