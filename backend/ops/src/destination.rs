//! Destinations: storage, editing with stored secrets kept, and deletion of unused ones.

mod check;
mod failing;
mod health;
mod health_summary;
mod pausing;
mod secrets;
mod sink;
mod tested_drafts;
mod tester;
mod wire;

use bellwether_proto::v1;

use crate::{
    domain::{
        BudgetWindow, DeliverySettings, Destination, DestinationKind, Health, HealthState, Name,
        RecordId, Snippets, TemplateLanguage,
    },
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    message::check_message,
    reach,
    references::{
        ReferencedResource, References, SilenceLimit, names_bytes, release_from_silences,
        remove_from_rules, rules_using,
    },
    resource::{AuthoredResource, Origin, Resources, resource},
    send::{self as destination, EgressGuard},
    settings,
    store::{Changes, Kind},
    tag_scope::TagScope,
    validate::{Violations, convert_language},
    wire::{time::timestamp, to_i32},
};

pub use crate::send::ExchangeTimes;
pub use failing::{FailingWatch, would_notify_no_one};
pub use health::health_to_wire;
pub use health_summary::{HealthSummary, HealthVerdict};
pub use tester::{CompletedTest, RenderedTest, SentTest, Test, TestSubject, TestTarget, Tester};

pub type Destinations = Resources<Destination>;

resource!(Destination, v1::Destination, "destination", |_| None);

impl AuthoredResource for Destination {
    type Draft = v1::Destination;
    type View = v1::Destination;

    /// Secrets omitted from the draft are taken from the stored destination.
    async fn from_draft(
        all: &Destinations,
        draft: &v1::Destination,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let kind = violations.read(|it| destination::from_wire(draft.r#type.clone(), it));
        let delivery = violations.read(|it| wire::settings_from_wire(draft.delivery, it));
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        check::check_settings(delivery, kind.as_ref(), &mut violations);
        let previous = stored.map(|stored| (&stored.kind, stored.template_language));
        let language =
            convert_language(draft.template_language, &mut violations).unwrap_or_default();
        let snippets = settings::read_values(&all.store).await?.templates;
        let against = (Some(&*all.guard), &*snippets);
        let kind = parse_kind((kind, language), previous, against, &mut violations);
        let mut changes = all.store.new_changes();
        if let (Some(stored), Some(kind)) = (stored, &kind)
            && stored.kind != *kind
        {
            all.forget_health(stored.id, &mut changes).await?;
        }
        let destination = name.zip(kind).map(|(name, kind)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            kind,
            template_language: language,
            delivery,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(destination)?, changes))
    }

    /// Also deletes the destination's health. The dispatcher cancels deliveries to deleted
    /// destinations.
    async fn changes_on_delete(
        all: &Destinations,
        destination: &Self,
        force: bool,
    ) -> Result<Changes, Error> {
        let mut changes = all.store.new_changes();
        let references = References::find(&all.store, Kind::Destination, &destination.name).await?;
        let now_ms = all.clock.now_ms();
        let named = (Kind::Destination, &destination.name);
        reach::ensure_unused((&all.store, &references), named, now_ms).await?;
        let used = ReferencedResource::Destination(&destination.name);
        remove_from_rules(&all.store, used, force, now_ms, &mut changes).await?;
        let limit = SilenceLimit::Destination(&destination.name);
        release_from_silences(&all.store, limit, now_ms, &mut changes).await?;
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

    fn new_secrets(&self, before: &Self) -> Vec<String> {
        self.changed_secrets(Some(before))
    }

    async fn view(
        all: &Destinations,
        destination: Self,
    ) -> Result<(v1::Destination, usize), Error> {
        let id = destination.id;
        let stored = all.store.get::<Health>(id.to_bytes().into()).await?;
        let stored = stored.map(|stored| stored.value);
        let summary = HealthSummary::compute(&all.store, &all.clock, id, stored).await?;
        let rule_names = rules_using(
            &all.store,
            ReferencedResource::Destination(&destination.name),
        )
        .await?;
        let named = (Kind::Destination, &destination.name);
        let reached_by = reach::rules_reaching(&all.store, named, all.clock.now_ms()).await?;
        let (reached_by, reach_bytes) = reach::to_wire(&reached_by);
        let bytes = names_bytes(&rule_names) + reach_bytes;
        let view = v1::Destination {
            rule_names: rule_names.iter().map(ToString::to_string).collect(),
            recent_notification_count: Some(to_i32(all.recent.count_by_destination(id).await?)),
            health: Some(health_to_wire(Some(&summary))),
            reached_by,
            lasting_effect: destination::lasting_effect(&destination.kind).to_owned(),
            ..v1::Destination::from_domain(destination)
        };
        Ok((view, bytes))
    }
}

impl FromDomain<Destination> for v1::Destination {
    fn from_domain(destination: Destination) -> Self {
        let is_default = destination.delivery == DeliverySettings::default();
        Self {
            name: destination.name.to_string(),
            description: destination.description,
            tags: destination.tags,
            r#type: Some(destination::to_wire(destination.kind)),
            template_language: destination.template_language.number(),
            delivery: (!is_default).then(|| wire::settings_to_wire(destination.delivery)),
            rule_names: Vec::new(),
            recent_notification_count: Some(0),
            health: Some(health_to_wire(None)),
            reached_by: Vec::new(),
            lasting_effect: String::new(),
            create_time: Some(timestamp(destination.create_ms)),
            update_time: Some(timestamp(destination.update_ms)),
            etag: compute_etag(destination.id, destination.revision),
        }
    }
}

impl Destinations {
    /// Deletes the health of a destination whose address changes. The dispatcher ends a pause and
    /// reports its end.
    async fn forget_health(&self, id: RecordId, changes: &mut Changes) -> Result<(), Error> {
        let health = self.store.get::<Health>(id.to_bytes().into()).await?;
        if let Some(health) = health.filter(|it| it.value.state != HealthState::Paused) {
            changes.delete(&health);
        }
        Ok(())
    }

    /// Validates a draft as for storing it, but stores nothing; the name is optional. Omitted
    /// secrets are taken from the stored destination with that name.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations, also if a stored secret may not be sent to
    /// the address in the draft, and [`Error::PermissionDenied`] if the caller may not change the
    /// stored destination.
    pub async fn prepare_draft_test(
        &self,
        draft: v1::Destination,
    ) -> Result<(DestinationKind, TemplateLanguage, DeliverySettings), Error> {
        let stored = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Destination>(name.as_str().into()).await?,
            Err(_error) => None,
        };
        if let (Some(scope), Some(stored)) = (TagScope::from_caller(), &stored) {
            scope.check("name", &stored.value)?;
        }
        let previous = stored.as_ref().map(|stored| &stored.value);
        let previous = previous.map(|stored| (&stored.kind, stored.template_language));
        let mut violations = Violations::default();
        let kind = violations.read(|it| destination::from_wire(draft.r#type, it));
        let delivery = violations.read(|it| wire::settings_from_wire(draft.delivery, it));
        if !draft.name.is_empty() {
            violations.name(&draft.name, false);
        }
        check::check_settings(delivery, kind.as_ref(), &mut violations);
        // A blocked address is not a violation here, because the test itself reports it.
        let language =
            convert_language(draft.template_language, &mut violations).unwrap_or_default();
        let snippets = settings::read_values(&self.store).await?.templates;
        let kind = parse_kind(
            (kind, language),
            previous,
            (None, &*snippets),
            &mut violations,
        );
        Ok((violations.into_result(kind)?, language, delivery))
    }
}

impl Destinations {
    pub async fn check_message(
        &self,
        language: TemplateLanguage,
        message: &str,
    ) -> Result<(), Error> {
        let snippets = settings::read_values(&self.store).await?.templates;
        match check_message(language, message, &snippets) {
            violations if violations.is_empty() => Ok(()),
            violations => Err(Error::Invalid(violations)),
        }
    }
}

fn parse_kind(
    (kind, language): (Option<DestinationKind>, TemplateLanguage),
    previous: Option<(&DestinationKind, TemplateLanguage)>,
    (guard, snippets): (Option<&EgressGuard>, &Snippets),
    violations: &mut Violations,
) -> Option<DestinationKind> {
    let kind = secrets::fill_stored_secrets((kind?, language), previous, violations);
    violations.extend_new(destination::check(&kind, language, (guard, snippets)));
    Some(kind)
}
