//! Destinations: stored, edited with their secrets kept, and deleted when no rule needs them.

mod check;
mod health_summary;
mod pausing;
mod secrets;
mod sink;
mod tester;

use crate::{
    destination::{self, Guard},
    domain::{
        BudgetWindow, DeliverySettings, Destination, DestinationKind, Health, HealthState, Name,
        RecordId, TemplateLanguage,
    },
    error::{Error, Violation},
    ops::{
        bounds::Bounds,
        resource::{Drafted, Origin, Resources},
        users::{Used, bytes_of, release, users_of},
        validate::{Faults, language},
    },
    store::Changes,
};

pub use crate::destination::{is_credential, is_plain_header, is_secret_header};
pub use health_summary::{HealthSummary, Verdict};
pub use tester::{About, Test, TestTarget, Tester};

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
    /// The number of the language of its templates.
    pub template_language: i32,
    /// How messages are delivered.
    pub delivery: DeliverySettings,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
    /// What was wrong with how the draft was written.
    pub faults: Vec<Violation>,
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
    /// The health of its deliveries; none for one that is not stored.
    pub health_summary: Option<Box<HealthSummary>>,
}

/// Manages destinations.
pub type Destinations = Resources<Destination>;

impl Drafted for Destination {
    type Draft = DestinationDraft;
    type View = DestinationView;

    fn named(draft: &DestinationDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    /// Secrets that the draft leaves out are those of the stored one.
    async fn checked(
        all: &Destinations,
        draft: &DestinationDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut faults = Faults::new(&draft.faults);
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        check::settings(draft.delivery, draft.kind.as_ref(), &mut faults);
        let kept = stored.map(|stored| (&stored.kind, stored.template_language));
        let language = language(draft.template_language, &mut faults).unwrap_or_default();
        let drafted = (draft.kind.clone(), language);
        let kind = checked_kind(drafted, kept, Some(&all.guard), &mut faults);
        let mut changes = all.store.changes();
        if let (Some(stored), Some(kind)) = (stored, &kind)
            && stored.kind != *kind
        {
            all.forget_fare(stored.id, &mut changes).await?;
        }
        let destination = name.zip(kind).map(|(name, kind)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            kind,
            template_language: language,
            delivery: draft.delivery,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(destination)?, changes))
    }

    /// What is known of its health goes with it. The dispatcher cancels deliveries whose
    /// destination is gone.
    async fn released(
        all: &Destinations,
        destination: &Self,
        force: bool,
    ) -> Result<Changes, Error> {
        let mut changes = all.store.changes();
        let used = Used::Destination(&destination.name);
        release(&all.store, used, force, all.clock.now_ms(), &mut changes).await?;
        let health = destination.id.to_bytes().into();
        if let Some(health) = all.store.get::<Health>(health).await? {
            changes.delete(&health);
        }
        let budget = destination.id.to_bytes().into();
        if let Some(budget) = all.store.get::<BudgetWindow>(budget).await? {
            changes.delete(&budget);
        }
        Ok(changes)
    }

    async fn view(
        all: &Destinations,
        destination: Self,
    ) -> Result<(DestinationView, usize), Error> {
        let health = all.store.get::<Health>(destination.id.to_bytes().into());
        let health = health.await?.map(|stored| stored.value);
        let health_summary =
            HealthSummary::of(&all.store, &all.clock, destination.id, health).await?;
        let rule_names = users_of(&all.store, Used::Destination(&destination.name)).await?;
        let bytes = bytes_of(&rule_names);
        let view = DestinationView {
            rule_names,
            recent_notifications: all.recent.of_destination(destination.id).await?,
            health_summary: Some(Box::new(health_summary)),
            destination,
        };
        Ok((view, bytes))
    }

    fn new_secrets(&self, before: &Self) -> Vec<String> {
        self.changed_secrets(Some(before))
    }

    fn bare(self) -> DestinationView {
        DestinationView {
            destination: self,
            rule_names: Vec::new(),
            recent_notifications: 0,
            health_summary: None,
        }
    }
}

impl Destinations {
    /// Forgets the health of a destination that leads elsewhere from now on. That it is paused is
    /// for the dispatcher to end, which reports it.
    async fn forget_fare(&self, id: RecordId, changes: &mut Changes) -> Result<(), Error> {
        let health = self.store.get::<Health>(id.to_bytes().into()).await?;
        if let Some(health) = health.filter(|it| it.value.state != HealthState::Paused) {
            changes.delete(&health);
        }
        Ok(())
    }

    /// Checks a draft as for storing it, without a name when it has none, and stores nothing.
    /// Secrets that it leaves out are taken from the stored destination of its name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, also when a stored secret may not be sent
    /// where the draft says, and [`Error::PermissionDenied`] for a stored one that the caller may not
    /// change.
    pub async fn try_draft(
        &self,
        draft: DestinationDraft,
    ) -> Result<(DestinationKind, TemplateLanguage, DeliverySettings), Error> {
        let stored = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Destination>(name.as_str().into()).await?,
            Err(_fault) => None,
        };
        if let (Some(bounds), Some(stored)) = (Bounds::of_caller(), &stored) {
            bounds.check("name", &stored.value)?;
        }
        let kept = stored.as_ref().map(|stored| &stored.value);
        let kept = kept.map(|stored| (&stored.kind, stored.template_language));
        let mut faults = Faults::new(&draft.faults);
        if !draft.name.is_empty() {
            faults.name(&draft.name, false);
        }
        check::settings(draft.delivery, draft.kind.as_ref(), &mut faults);
        // Where the guard does not let it go, the test reports it.
        let language = language(draft.template_language, &mut faults).unwrap_or_default();
        let kind = checked_kind((draft.kind, language), kept, None, &mut faults);
        Ok((faults.or(kind)?, language, draft.delivery))
    }
}

/// Where messages are to go, with the secrets that are kept; checked, also by a guard when there is
/// one.
fn checked_kind(
    (kind, language): (Option<DestinationKind>, TemplateLanguage),
    kept: Option<(&DestinationKind, TemplateLanguage)>,
    guard: Option<&Guard>,
    faults: &mut Faults,
) -> Option<DestinationKind> {
    let kind = secrets::keep((kind?, language), kept, faults);
    faults.extend_new(destination::check(&kind, language, guard));
    Some(kind)
}
