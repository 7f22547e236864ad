//! Previews of the messages that a draft of a rule would send.

use std::{collections::HashSet, sync::Arc};

use bellwether_proto::v1;
use tokio::sync::watch;

use super::{Rules, check_grouping, check_repeat_interval};
use crate::{
    clock::Clock,
    domain::{
        Contact, Content, Destination, EscalationPolicy, EventId, NO_EVENT_ID, Name, Occurrence,
        PagedContact, RecordId, Rule, SharedSettings, Trigger, delivery::RuleContent,
    },
    error::Error,
    find,
    message::{self, Context, ExceededLimit, Links},
    reach::{self, ReachedReceiver},
    refers::ReferenceChecker,
    send::{self as destination, RenderPurpose, RenderedView, Renderers},
    settings,
    store::Stored,
    validate::{Violations, convert_language},
    wire::{json, to_i32},
};

/// Maximum number of receivers of an escalation policy for which the message is rendered.
const POLICY_PREVIEWS_MAX: usize = 100;
/// Maximum bytes of messages in a response; further messages are described but not shown.
const SHOWN_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Installation {
    /// The settings, which contain the name of the installation.
    pub settings: watch::Receiver<Arc<SharedSettings>>,
    pub links: Links,
    pub renderers: Renderers,
}

impl Rules {
    /// Renders the messages that a draft would send about the newest occurrence of an event, or
    /// about a sample event if no event is named. The draft is not stored and requires no name. No
    /// messages are sent.
    #[expect(
        clippy::too_many_lines,
        reason = "one preview, from definitions to warnings"
    )]
    pub async fn preview(
        &self,
        draft: v1::PreviewRuleRequest,
        installation: &Installation,
    ) -> Result<v1::PreviewRuleResponse, Error> {
        let mut violations = Violations::default();
        if !draft.name.is_empty() {
            violations.name(&draft.name, false);
        }
        violations.check_texts(&draft.description, &[]);
        let language = convert_language(draft.template_language, &mut violations);
        let settings = Arc::new(settings::read_values(&self.store).await?);
        violations.extend(message::check_message(
            language.unwrap_or_default(),
            &draft.message,
            &settings.templates,
        ));
        let interval_seconds = check_repeat_interval(draft.repeat_interval, &mut violations);
        let group = draft
            .group
            .as_ref()
            .map(|it| check_grouping(it, &mut violations));
        let mut changes = self.store.new_changes();
        let mut refers =
            ReferenceChecker::new(self, None::<&Rule>, (&mut violations, &mut changes));
        let triggers = refers
            .resolve_all::<Trigger>("triggerNames", &draft.trigger_names)
            .await?;
        let destinations = refers
            .resolve_all::<Destination>("destinationNames", &draft.destination_names)
            .await?;
        let policy = refers
            .resolve_optional::<EscalationPolicy>(
                "escalationPolicyName",
                &draft.escalation_policy_name,
            )
            .await?;
        let event = (!draft.event_id.is_empty()).then(|| EventId::parse(&draft.event_id));
        if event == Some(None) {
            violations.add("eventId", NO_EVENT_ID);
        }
        violations.into_result(Some(()))?;

        let occurrence = self.occurrence(event.flatten()).await?;
        let mut warnings = message::message_warnings(
            language.unwrap_or_default(),
            &draft.message,
            &settings.templates,
        );
        for Stored { value: trigger, .. } in &triggers {
            for warning in self.fields.field_warnings(&trigger.query).await? {
                warnings.push(format!("trigger `{}`: {warning}", trigger.name));
            }
        }
        let rule = RuleContent {
            name: draft.name,
            description: draft.description,
            message: draft.message,
            template_language: language.unwrap_or_default(),
            enabled: draft.enabled.unwrap_or_default(),
            repeat_interval_seconds: interval_seconds,
            trigger_names: triggers.iter().map(|t| t.value.name.clone()).collect(),
            destination_names: destinations.iter().map(|d| d.value.name.clone()).collect(),
        };
        let policy = policy.map(|it| it.value.name);
        let receivers = (&*rule.destination_names, policy.as_ref());
        let reached = reach::receivers_of_rule(&self.store, receivers, self.clock.now_ms()).await?;
        let receivers = self.receivers(destinations, &reached).await?;
        let reaches = reached.iter().map(|it| it.to_wire(&rule.name)).collect();
        let trigger = triggers.into_iter().next().map(|stored| stored.value);
        let group = group.map(|it| message::sample::sample_group(&it, &occurrence));
        let mut left_bytes = SHOWN_BYTES_MAX;
        let mut previews = Vec::with_capacity(receivers.len());
        for Receiver {
            field,
            destination,
            contact,
        } in receivers
        {
            let contact_name = contact.as_ref().map(|it| it.name.clone());
            let content = Content {
                clear: false,
                occurrence: occurrence.clone(),
                rule: rule.clone(),
                trigger: trigger.clone(),
                destination_kind: destination.kind,
                template_language: destination.template_language,
                group: group.clone(),
                thread: None,
                digest: None,
                contact,
                previous: None,
            };
            let (name, ours) = (destination.name, installation.clone());
            let settings = Arc::clone(&settings);
            let delivery_id =
                RecordId::from_parts(self.clock.now_ms().unsigned_abs(), rand::random());
            let rendered = installation.renderers.run(RenderPurpose::Preview, move || {
                let around = Context {
                    delivery_id,
                    destination_name: name.as_str(),
                    tenant: &settings.tenant,
                    links: &ours.links,
                    snippets: &settings.templates,
                    opening: None,
                    kept: None,
                };
                (destination::render(&content, &around), name)
            });
            let (rendered, name) = rendered.await?;
            if let Some(ExceededLimit { of_rule, message }) = rendered.exceeded {
                return Err(if of_rule {
                    Error::invalid("message", message)
                } else {
                    Error::invalid(field, format!("`{name}`: {message}"))
                });
            }
            let receiver = (name, contact_name);
            previews.push(into_preview(rendered, receiver, &mut left_bytes));
        }
        Ok(v1::PreviewRuleResponse {
            previews,
            warnings,
            reaches,
        })
    }

    /// Returns the draft's own destinations, and those reached through its policy, once per contact
    /// and method; at most [`POLICY_PREVIEWS_MAX`] of the latter.
    async fn receivers(
        &self,
        destinations: Vec<Stored<Destination>>,
        reaches: &[ReachedReceiver],
    ) -> Result<Vec<Receiver>, Error> {
        let direct = destinations.into_iter().enumerate();
        let direct = direct.map(|(at, stored)| Receiver {
            field: format!("destinationNames[{at}]"),
            destination: stored.value,
            contact: None,
        });
        let mut all: Vec<_> = direct.collect();
        let mut seen = HashSet::new();
        let paged = reaches.iter().filter(|it| it.policy.is_some());
        let paged = paged.filter(|it| seen.insert((&it.destination, &it.contact, &it.method)));
        for way in paged.take(POLICY_PREVIEWS_MAX) {
            let destination = way.destination.as_str().into();
            let destination = self.store.get::<Destination>(destination).await?;
            let contact = match &way.contact {
                Some(name) => self.store.get::<Contact>(name.as_str().into()).await?,
                None => None,
            };
            let contact = contact.and_then(|it| paged_contact(it.value, &way.method, &self.clock));
            if contact.is_some() == way.contact.is_some() {
                all.extend(destination.map(|it| Receiver {
                    field: "escalationPolicyName".into(),
                    destination: it.value,
                    contact,
                }));
            }
        }
        Ok(all)
    }

    async fn occurrence(&self, event: Option<EventId>) -> Result<Occurrence, Error> {
        match event {
            None => Ok(message::sample::sample_occurrence(self.clock.now_ms())),
            Some(event) => find::newest_occurrence(&self.store, event)
                .await?
                .ok_or_else(|| Error::NotFound(format!("event `{event}` not found"))),
        }
    }
}

struct Receiver {
    /// The field of the draft that leads to this receiver.
    field: String,
    destination: Destination,
    contact: Option<PagedContact>,
}

fn paged_contact(contact: Contact, method: &str, clock: &Arc<dyn Clock>) -> Option<PagedContact> {
    let mut methods = contact.methods.into_iter();
    let method = methods.find(|it| it.id == method)?;
    Some(PagedContact {
        name: contact.name,
        variables: method.variables,
        // A preview has no response to acknowledge.
        response: RecordId::from_parts(clock.now_ms().unsigned_abs(), rand::random()),
        method: method.id,
    })
}

/// Returns the preview of a message, without its text if the response has no room for it.
fn into_preview(
    mut message: RenderedView,
    (destination_name, contact_name): (Name, Option<Name>),
    left_bytes: &mut usize,
) -> v1::RulePreview {
    let size_bytes = message.size_bytes;
    let fits = size_bytes <= *left_bytes;
    if fits {
        *left_bytes -= size_bytes;
    } else {
        let reason = "message omitted: earlier ones fill the response";
        message.warnings.push(reason.into());
    }
    v1::RulePreview {
        destination_name: destination_name.to_string(),
        contact_name: contact_name.map(|it| it.to_string()).unwrap_or_default(),
        rendered: fits.then(|| json::object(message.shown)),
        size_bytes: Some(to_i32(size_bytes)),
        limit_bytes: message.limit_bytes.map(to_i32),
        warnings: message.warnings,
    }
}
