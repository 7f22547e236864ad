//! Contacts: storage, editing, and deletion of unused ones.

mod feed;
mod method_id;
mod never;

use bellwether_backend_model::calendar;
use bellwether_proto::v1;

use crate::{
    domain::{Calendar, Contact, ContactMethod, Destination, Severity},
    ended_uses::users_in_force,
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{
        CONTACT_AFTER_MAX, CONTACT_METHODS_MAX, CONTACT_SUBJECT_CHARACTERS_MAX,
        CONTACT_VALUE_CHARACTERS_MAX, CONTACT_VARIABLES_MAX, CONTACTS_MAX,
    },
    reach,
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resources, resource},
    store::{Changes, Kind},
    validate::{Violations, check_length},
    wire::time::{self, timestamp},
};

pub type Contacts = Resources<Contact>;

resource!(Contact, v1::Contact, "contact", |_| None);

impl AuthoredResource for Contact {
    type Draft = v1::Contact;
    type View = v1::Contact;

    async fn from_draft(
        all: &Contacts,
        draft: &v1::Contact,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.new_changes();
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        if !draft.time_zone.is_empty()
            && let Err(missing) = calendar::find_zone(&draft.time_zone)
        {
            violations.add("timeZone", missing.to_string());
        }
        let client = violations.optional_name("clientName", &draft.client_name);
        let subject = draft.subject.chars().count();
        if !draft.subject.is_empty() && !draft.client_name.is_empty() {
            violations.add("subject", "set only one of `clientName` and `subject`");
        } else if subject > CONTACT_SUBJECT_CHARACTERS_MAX {
            let most = CONTACT_SUBJECT_CHARACTERS_MAX;
            violations.add(
                "subject",
                format!("has {subject} characters; the limit is {most}"),
            );
        }
        let refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
        let before = stored.map_or(&[][..], |it| &it.methods);
        let methods = check_methods(&draft.methods, before, refers).await?;
        all.check_room(stored, CONTACTS_MAX).await?;
        let contact = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            time_zone: draft.time_zone.clone(),
            client,
            subject: draft.subject.clone(),
            methods,
            feed_number: stored.map_or(0, |it| it.feed_number),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(contact)?, changes))
    }

    async fn warnings(&self, all: &Contacts) -> Result<Vec<String>, Error> {
        never::never_usable_warnings(self, &all.store, all.clock.now_ms()).await
    }

    async fn changes_on_delete(
        all: &Contacts,
        contact: &Self,
        _force: bool,
    ) -> Result<Changes, Error> {
        let mut changes = all.store.new_changes();
        let used = (Kind::Contact, &contact.name);
        let users = users_in_force(&all.store, used, all.clock.now_ms(), &mut changes).await?;
        reach::ensure_unused((&all.store, &users), used, all.clock.now_ms()).await?;
        Ok(changes)
    }

    async fn view(all: &Contacts, contact: Self) -> Result<(v1::Contact, usize), Error> {
        let named = (Kind::Contact, &contact.name);
        let rules = reach::rules_reaching(&all.store, named, all.clock.now_ms()).await?;
        let (reached_by, bytes) = reach::to_wire(&rules);
        let view = v1::Contact {
            reached_by,
            ..v1::Contact::from_domain(contact)
        };
        Ok((view, bytes))
    }
}

async fn check_methods(
    drafts: &[v1::ContactMethod],
    before: &[ContactMethod],
    mut refers: ReferenceChecker<'_>,
) -> Result<Vec<ContactMethod>, Error> {
    let count = drafts.len();
    if !(1..=CONTACT_METHODS_MAX).contains(&count) {
        let message = format!("has {count} methods; expected 1 to {CONTACT_METHODS_MAX}");
        refers.violations.add("methods", message);
        return Ok(Vec::new());
    }
    let mut methods = Vec::with_capacity(count);
    for (at, draft) in drafts.iter().enumerate() {
        let path = |field: &str| format!("methods[{at}].{field}");
        let destination = refers
            .resolve::<Destination>(&path("destinationName"), &draft.destination_name)
            .await?;
        let calendar = refers
            .resolve_optional::<Calendar>(&path("calendarName"), &draft.calendar_name)
            .await?;
        let violations = &mut *refers.violations;
        check_variables(&path("variables"), draft, violations);
        let after_ms = check_length(
            &path("after"),
            draft.after.as_ref().map_or(0, time::duration_to_ms),
            (std::time::Duration::ZERO, CONTACT_AFTER_MAX),
            violations,
        );
        let min_severity = Severity::from_number(draft.min_severity);
        if min_severity.is_none() && draft.min_severity != 0 {
            violations.add(path("minSeverity"), "is not a severity");
        }
        if let Some(destination) = destination {
            methods.push(ContactMethod {
                id: draft.id.clone(),
                destination: destination.value.name,
                variables: draft.variables.clone(),
                after_ms,
                min_severity,
                calendar: calendar.map(|it| it.value.name),
            });
        }
    }
    method_id::check_ids(drafts, refers.violations);
    method_id::assign_ids(&mut methods, before);
    Ok(methods)
}

fn check_variables(path: &str, draft: &v1::ContactMethod, violations: &mut Violations) {
    if draft.variables.len() > CONTACT_VARIABLES_MAX {
        let count = draft.variables.len();
        let message = format!("has {count} entries; the limit is {CONTACT_VARIABLES_MAX}");
        return violations.add(path, message);
    }
    for (key, value) in &draft.variables {
        let is_key = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if !(1..=50).contains(&key.len()) || !key.chars().all(is_key) {
            violations.add(
                path,
                format!("`{key}` is not a valid key; expected 1 to 50 letters, digits and `_`"),
            );
        } else if key == "name" {
            violations.add(path, "`name` is already the name of the contact");
        } else if value.chars().count() > CONTACT_VALUE_CHARACTERS_MAX {
            let most = CONTACT_VALUE_CHARACTERS_MAX;
            violations.add(path, format!("`{key}` has more than {most} characters"));
        }
    }
}

impl FromDomain<Contact> for v1::Contact {
    /// Converts a contact without the rules that reach it.
    fn from_domain(contact: Contact) -> Self {
        let text = |name: Option<_>| name.as_ref().map(ToString::to_string).unwrap_or_default();
        let method = |it: ContactMethod| v1::ContactMethod {
            destination_name: it.destination.to_string(),
            variables: it.variables,
            after: (it.after_ms > 0).then(|| time::duration_from_ms(it.after_ms)),
            min_severity: it.min_severity.map_or(0, |it| it as i32),
            calendar_name: text(it.calendar),
            id: it.id,
        };
        Self {
            name: contact.name.to_string(),
            description: contact.description,
            tags: contact.tags,
            time_zone: contact.time_zone,
            client_name: text(contact.client),
            subject: contact.subject,
            methods: contact.methods.into_iter().map(method).collect(),
            create_time: Some(timestamp(contact.create_ms)),
            update_time: Some(timestamp(contact.update_ms)),
            etag: compute_etag(contact.id, contact.revision),
            reached_by: Vec::new(),
        }
    }
}
