//! Destinations: stored, edited with their secrets kept, and deleted when no rule needs them.

mod check;
mod secrets;
mod sink;
mod tester;

use std::sync::Arc;

use crate::{
    clock::Clock,
    destination,
    domain::{DeliverySettings, Destination, DestinationKind, Health, Name},
    error::{Error, Violation},
    ops::{
        page::{Page, PageRequest},
        recent::Recent,
        resource::{Filter, Origin, create, delete, find, list, update},
        users::{Used, bytes_of, release, users_of},
        validate::Faults,
    },
    store::{Store, Stored},
};

pub use crate::destination::is_secret_header;
pub use tester::{About, Target, Test, Tester};

/// A destination as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct DestinationDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Where messages go; none only together with a fault. A secret that is empty or the mask was
    /// left out.
    pub kind: Option<DestinationKind>,
    /// How messages are delivered.
    pub delivery: DeliverySettings,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
    /// What was wrong with how the draft was written.
    pub faults: Vec<Violation>,
}

/// Where the test of a draft may send the secrets that it leaves out and that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredSecrets {
    /// Wherever the draft says: its author could store it as well.
    ToAnyAddress,
    /// To the scheme, host and port that they are stored for.
    ToStoredAddress,
}

/// A destination, and what is known about its use.
#[derive(Debug, Clone)]
pub struct DestinationView {
    /// The destination.
    pub destination: Destination,
    /// The rules that use it, by name.
    pub rule_names: Vec<Name>,
    /// Notifications for it in the last 24 hours.
    pub recent_notifications: usize,
    /// How its deliveries fare; none when there was no attempt yet.
    pub health: Option<Health>,
}

/// Manages destinations.
#[derive(Debug, Clone)]
pub struct Destinations {
    store: Store,
    clock: Arc<dyn Clock>,
    recent: Recent,
}

impl Destinations {
    /// Manages the destinations in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let recent = Recent::new(store.clone(), Arc::clone(&clock));
        Self {
            store,
            clock,
            recent,
        }
    }

    /// Stores a new destination; with `validate_only`, only checks it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::AlreadyExists`].
    pub async fn create(
        &self,
        draft: DestinationDraft,
        validate_only: bool,
    ) -> Result<DestinationView, Error> {
        let now_ms = self.clock.now_ms();
        let destination = checked(draft, None, &Origin::new(now_ms), now_ms)?;
        let decide = async || Ok((destination.clone(), self.store.changes()));
        let destination = create(&self.store, validate_only, decide).await?;
        self.view(destination).await
    }

    /// Reads a destination.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, name: &str) -> Result<DestinationView, Error> {
        self.view(find::<Destination>(&self.store, name).await?.value)
            .await
    }

    /// Lists destinations by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a filter, page size or token that is not accepted.
    pub async fn list(
        &self,
        filter: &Filter,
        page: &PageRequest,
    ) -> Result<Page<DestinationView>, Error> {
        let view = async |destination| {
            let view = self.view(destination).await?;
            let bytes = bytes_of(&view.rule_names);
            Ok((view, bytes))
        };
        list(&self.store, filter, page, view).await
    }

    /// Replaces a destination, keeping secrets that the draft leaves out; with `validate_only`,
    /// only checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::NotFound`], and
    /// [`Error::Aborted`] when the draft's etag is not current.
    pub async fn update(
        &self,
        draft: DestinationDraft,
        validate_only: bool,
    ) -> Result<DestinationView, Error> {
        let decide = async |stored: Stored<Destination>| {
            let origin = Origin::of(&stored.value);
            let kept = Some(&stored.value.kind);
            let destination = checked(draft.clone(), kept, &origin, self.clock.now_ms())?;
            Ok((destination, self.store.changes()))
        };
        let name = (&*draft.name, &*draft.etag);
        let destination = update(&self.store, name, validate_only, decide).await?;
        self.view(destination).await
    }

    /// Deletes a destination and what is known of its health; with `force`, takes it out of the
    /// rules that use it in the same commit. The dispatcher cancels deliveries whose destination is gone.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Aborted`] when the etag is not current, and
    /// [`Error::FailedPrecondition`], which names the rules that use it, without `force`.
    pub async fn delete(&self, name: &str, etag: &str, force: bool) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        // The destination before its rules: a rule that takes it up in between touches it.
        let decide = async |stored: Stored<Destination>| {
            let mut changes = self.store.changes();
            let used = Used::Destination(&stored.value.name);
            release(&self.store, used, force, now_ms, &mut changes).await?;
            let health = stored.value.id.to_bytes().into();
            if let Some(health) = self.store.get::<Health>(health).await? {
                changes.delete(&health);
            }
            Ok(changes)
        };
        delete(&self.store, (name, etag), now_ms, decide).await
    }

    /// Checks a draft as for storing it, without a name when it has none, and stores nothing.
    /// Secrets that it leaves out are taken from the stored destination of its name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, also when a stored secret may not be sent
    /// where the draft says.
    pub async fn try_draft(
        &self,
        draft: DestinationDraft,
        secrets: StoredSecrets,
    ) -> Result<(DestinationKind, DeliverySettings), Error> {
        let stored = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Destination>(name.as_str().into()).await?,
            Err(_fault) => None,
        };
        let kept = stored.as_ref().map(|stored| &stored.value.kind);
        let mut faults = Faults::new(&draft.faults);
        if !draft.name.is_empty() {
            faults.name(&draft.name);
        }
        check::settings(draft.delivery, &mut faults);
        let kind = checked_kind(draft.kind.clone(), kept, &mut faults);
        if let (StoredSecrets::ToStoredAddress, Some(draft), Some(kind), Some(kept)) =
            (secrets, &draft.kind, &kind, kept)
        {
            secrets::hold_to_address(draft, kind, kept, &mut faults);
        }
        Ok((faults.or(kind)?, draft.delivery))
    }

    async fn view(&self, destination: Destination) -> Result<DestinationView, Error> {
        let health = self.store.get::<Health>(destination.id.to_bytes().into());
        Ok(DestinationView {
            rule_names: users_of(&self.store, Used::Destination(&destination.name)).await?,
            recent_notifications: self.recent.of_destination(destination.id).await?,
            health: health.await?.map(|stored| stored.value),
            destination,
        })
    }
}

/// The destination that a draft describes.
fn checked(
    draft: DestinationDraft,
    kept: Option<&DestinationKind>,
    origin: &Origin,
    update_ms: i64,
) -> Result<Destination, Error> {
    let mut faults = Faults::new(&draft.faults);
    let name = faults.name(&draft.name);
    faults.texts(&draft.description, &draft.tags);
    check::settings(draft.delivery, &mut faults);
    let kind = checked_kind(draft.kind, kept, &mut faults);
    faults.or(name.zip(kind).map(|(name, kind)| Destination {
        id: origin.id,
        name,
        description: draft.description,
        tags: draft.tags,
        kind,
        delivery: draft.delivery,
        revision: origin.revision,
        create_ms: origin.create_ms,
        update_ms,
    }))
}

fn checked_kind(
    kind: Option<DestinationKind>,
    kept: Option<&DestinationKind>,
    faults: &mut Faults,
) -> Option<DestinationKind> {
    let mut kind = kind?;
    secrets::keep(&mut kind, kept);
    faults.extend(destination::check(&kind));
    Some(kind)
}
