//! Reports: tests, previews, outstanding resolutions and the audit log.

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{call, navigate, read, tested};
use crate::{
    client::{CallResult, Span, Ticket, events, message},
    data::{EventRow, Failure, FailureKind, Kind, Label, Object, Screen},
    kind, limits,
    model::{
        Model,
        field::TextField,
        inquiry::{Inquiry, LastingEffect, Outcome},
        loaded::Loaded,
        overlay::{Confirm, Consequence, Overlay, Picker, PickerPurpose, Prompt, PromptPurpose},
        page::{Content, Page, Report},
    },
    route::Route,
    theme::Token,
};

pub(super) fn test_destination(model: &mut Model) {
    if matches!(model.page.content, Content::Report(_)) {
        return rerun_report(model);
    }
    let Some(name) = model.resource_name() else {
        return;
    };
    let title = format!("Test of {name}");
    let inquiry = Inquiry::Destination {
        fields: json!({"name": name}),
        event_id: String::new(),
    };
    report(model, title, inquiry);
}

pub(super) fn test_contact(model: &mut Model) {
    let Some(name) = model.resource_name() else {
        return;
    };
    let title = format!("Test of the methods of {name}");
    report(model, title, Inquiry::Contact(name));
}

pub(super) fn rerun_report(model: &mut Model) {
    let Content::Report(report) = &model.page.content else {
        return;
    };
    let inquiry = report.inquiry.clone();
    if !confirm_lasting_effect(model, None, &inquiry) {
        repeat_report(model);
    }
}

pub(super) fn repeat_report(model: &mut Model) {
    let Content::Report(report) = &mut model.page.content else {
        return;
    };
    report.started_ms = model.now_ms;
    report.progress = None;
    let inquiry = report.inquiry.clone();
    if let Some(ticket) = report.found.waiting.take() {
        model.abandon(ticket);
    }
    let ticket = send_inquiry(model, inquiry, None, 1);
    if let Content::Report(report) = &mut model.page.content {
        report.found = Loaded {
            waiting: Some(ticket),
            ..Loaded::default()
        };
    }
}

/// Opens a picker with the sample event, followed by the loaded events, newest first.
pub(super) fn pick_event(model: &mut Model) {
    let rows = (0..model.store.events.len().min(limits::PALETTE_EVENTS))
        .filter_map(|at| model.store.events.get(at));
    let event = |row: &EventRow| {
        let moment = model.format_time(row.last_seen_ms);
        let words = [row.severity.label(), &row.summary, &row.name, &row.entity];
        (format!("{moment} {}", words.join(" ")), row.id.to_string())
    };
    let sample = ("the sample event".to_owned(), String::new());
    let (items, events) = std::iter::once(sample).chain(rows.map(event)).unzip();
    model.overlay = Some(Overlay::Picker(Picker {
        title: "Test with which event?".to_owned(),
        items,
        chosen: Vec::new(),
        values: Some(events),
        purpose: PickerPurpose::Event,
        needle: TextField::default(),
        cursor: usize::from(model.store.events.len() > 0),
    }));
}

pub(super) fn cycle_report_span(model: &mut Model) {
    match &mut model.page.content {
        Content::Report(report) => match &mut report.inquiry {
            Inquiry::Trigger { span, .. } => *span = span.next(),
            Inquiry::Handover { hours } => {
                let at = HANDOVER_HOURS.iter().position(|it| it == hours);
                let next = at.map_or(0, |at| (at + 1) % HANDOVER_HOURS.len());
                *hours = HANDOVER_HOURS[next];
            }
            _ => {
                let words = "only trigger tests and handovers have a time span";
                return model.show_notice(Token::Info, words);
            }
        },
        _ => return,
    }
    rerun_report(model);
}

/// Opens the noise report, and reads the resources for the forms of its rows.
pub(super) fn open_noise(model: &mut Model) {
    let counted = [Kind::Rule, Kind::Trigger, Kind::Destination, Kind::Contact];
    read::read_resources(model, &counted);
    let inquiry = Inquiry::Noise(v1::NoiseBy::Rule);
    report(model, "Noise".to_owned(), inquiry);
}

/// Opens the handover of the last hours, and reads the other data that it shows.
pub(super) fn open_handover(model: &mut Model) {
    let shown = [Kind::Schedule, Kind::Response, Kind::Silence];
    read::read_resources(model, &shown);
    let hours = HANDOVER_HOURS[0];
    let inquiry = Inquiry::Handover { hours };
    report(model, "Handover".to_owned(), inquiry);
}

const HANDOVER_HOURS: [i64; 4] = [12, 24, 168, 8];

pub(super) fn cycle_noise_grouping(model: &mut Model) {
    let Content::Report(report) = &mut model.page.content else {
        return;
    };
    if let Inquiry::Noise(by) = &mut report.inquiry {
        *by = match by {
            v1::NoiseBy::Unspecified | v1::NoiseBy::Rule => v1::NoiseBy::Trigger,
            v1::NoiseBy::Trigger => v1::NoiseBy::Destination,
            v1::NoiseBy::Destination => v1::NoiseBy::EventName,
            v1::NoiseBy::EventName => v1::NoiseBy::Contact,
            v1::NoiseBy::Contact => v1::NoiseBy::Rule,
        };
        rerun_report(model);
    }
}

pub(super) fn run_stored(model: &mut Model) {
    let Some(kind) = model.page.route.kind() else {
        return;
    };
    let name = model.resource_name();
    let found = name.and_then(|name| model.store.object(kind, &name));
    if let Some((title, inquiry)) = found.and_then(|object| inquiry_for(object, "")) {
        begin_inquiry(model, title, inquiry);
    }
}

pub(super) fn test_draft(model: &mut Model, draft: &Object) {
    if let Some((title, inquiry)) = inquiry_for(draft, "the unsaved ") {
        begin_inquiry(model, title, inquiry);
    }
}

fn begin_inquiry(model: &mut Model, title: String, inquiry: Inquiry) {
    match inquiry {
        Inquiry::Mapping { fields, document } => prompt_document(model, title, fields, document),
        inquiry => report(model, title, inquiry),
    }
}

/// Prompts for the document to test a mapping with; `document` is the previous one.
fn prompt_document(model: &mut Model, title: String, fields: Value, document: String) {
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: title.clone(),
        help: "paste what the service sends, such as x-github-event: push; {\"ref\": \"main\"}",
        field: TextField::new(document),
        offers: Vec::new(),
        then: PromptPurpose::Document { title, fields },
    }));
}

pub(super) fn with_document(model: &mut Model, title: String, fields: Value, document: String) {
    if document.is_empty() {
        return;
    }
    let inquiry = Inquiry::Mapping { fields, document };
    if let Content::Report(shown) = &mut model.page.content {
        shown.inquiry = inquiry;
        return rerun_report(model);
    }
    report(model, title, inquiry);
}

pub(super) fn other_document(model: &mut Model) {
    let Content::Report(shown) = &model.page.content else {
        return;
    };
    if let Inquiry::Mapping { fields, document } = &shown.inquiry {
        let (title, fields) = (shown.title.clone(), fields.clone());
        let document = document.clone();
        prompt_document(model, title, fields, document);
    }
}

/// Returns the title and request of a resource's test; `None` if it cannot be tested.
fn inquiry_for(object: &Object, what: &str) -> Option<(String, Inquiry)> {
    let name = object.name();
    let event_id = String::new();
    let (word, inquiry) = match object.kind {
        Kind::Trigger => {
            let fields = object.with_only_fields(&["name", "type"]);
            let span = Span::Day;
            ("Try", Inquiry::Trigger { fields, span })
        }
        Kind::Destination => {
            let fields = object.with_only_fields(&["name", "type", "delivery", "templateLanguage"]);
            ("Test", Inquiry::Destination { fields, event_id })
        }
        Kind::Mapping => {
            let fields = if what.is_empty() {
                json!({"name": name})
            } else {
                // Omits the signature: a test does not verify it, and the console does not know the
                // secret.
                json!({"mapping": kind::editable_part(object).without_fields(&["signature"]).json})
            };
            let document = String::new();
            ("Test", Inquiry::Mapping { fields, document })
        }
        Kind::Rule => {
            let fields = kind::editable_part(object).json;
            ("Preview", Inquiry::Rule { fields, event_id })
        }
        Kind::Client
        | Kind::Silence
        | Kind::Calendar
        | Kind::Inhibition
        | Kind::Group
        | Kind::Pending
        | Kind::Enrichment
        | Kind::View
        | Kind::Heartbeat
        | Kind::Contact
        | Kind::Schedule
        | Kind::Policy
        | Kind::Response
        | Kind::Drill => return None,
    };
    Some((format!("{word} of {what}{name}"), inquiry))
}

pub(super) fn open_obligations(model: &mut Model) {
    let mut request = v1::ListObligationsRequest::default();
    let name = || model.resource_name().into_iter().collect();
    match &model.page.route {
        Route::Screen(Screen::Events) | Route::Event(_) => {
            let id = model.occurrence().unwrap_or_default();
            let event = id.split_once(':').map_or(id.as_str(), |(event, _)| event);
            event.clone_into(&mut request.event_id);
        }
        Route::List(Kind::Rule) | Route::Object(Kind::Rule, _) => request.rule_names = name(),
        Route::List(Kind::Destination) | Route::Object(Kind::Destination, _) => {
            request.destination_names = name();
        }
        _ => {}
    }
    let title = "Not yet resolved".to_owned();
    report(model, title, Inquiry::Obligations(request));
}

pub(super) fn open_history(model: &mut Model) {
    let (kind, name) = match &model.page.route {
        Route::Screen(Screen::Events) | Route::Event(_) => ("occurrence", model.occurrence()),
        Route::Screen(Screen::Deliveries) => ("delivery", model.selected_id()),
        Route::Delivery(id) => ("delivery", Some(id.clone())),
        // Only the service changes these kinds, so the log of all objects is shown.
        Route::List(Kind::Group | Kind::Pending | Kind::Response)
        | Route::Object(Kind::Group | Kind::Pending | Kind::Response, _) => ("", None),
        Route::List(kind) | Route::Object(kind, _) => (kind.singular(), model.resource_name()),
        _ => ("", None),
    };
    let mut request = v1::ListAuditEntriesRequest::default();
    let mut title = "Who changed what".to_owned();
    if let Some(name) = name {
        title = format!("Who changed {kind} {name}");
        request.kinds.push(kind.to_owned());
        request.names.push(name);
    }
    // The current versions are read, so that the log does not offer to restore them.
    let edited = Kind::ALL.iter().copied();
    let edited: Vec<Kind> = edited
        .filter(|it| kind::spec(*it).update.is_some())
        .collect();
    read::read_resources(model, &edited);
    report(model, title, Inquiry::Audit(request));
}

fn report(model: &mut Model, title: String, inquiry: Inquiry) {
    if !confirm_lasting_effect(model, Some(&title), &inquiry) {
        open_report(model, title, inquiry);
    }
}

const RULES: usize = 6;

/// Asks before a test with a lasting effect, once per form. If it creates an event, first requests
/// who would be notified. Returns `false` for any other report.
fn confirm_lasting_effect(model: &mut Model, title: Option<&str>, inquiry: &Inquiry) -> bool {
    let Some((name, effect)) = model.lasting_effect(inquiry) else {
        return false;
    };
    let form = model.page.form();
    if form.is_some_and(|form| form.bench.confirmed.as_ref() == Some(&effect)) {
        return false;
    }
    let title = title.map(str::to_owned);
    let LastingEffect::AtReceiver(words) = effect else {
        let Some(render) = inquiry.render_call() else {
            return false;
        };
        let inquiry = inquiry.clone();
        model.show_notice(Token::Dim, "… checking who would be notified");
        call(model, render, |model, _, answer| {
            confirm_test(model, title, inquiry, message(answer));
            true
        });
        return true;
    };
    let then = Consequence::Test(title, Box::new(inquiry.clone()));
    let question = format!("Test {name} with a real message?");
    let confirm = Confirm::new(question, "Test", then).line(Token::Warning, words);
    model.overlay = Some(Overlay::Confirm(confirm));
    true
}

fn confirm_test(
    model: &mut Model,
    title: Option<String>,
    inquiry: Inquiry,
    found: Result<v1::RenderDestinationResponse, Failure>,
) {
    let Some((name, LastingEffect::Event(severity))) = model.lasting_effect(&inquiry) else {
        return;
    };
    model.notice = None;
    let lines = match found {
        Ok(rendered) => model.notified_receivers(&rendered.route.unwrap_or_default()),
        Err(failure) if failure.kind == FailureKind::Unsupported => model.possible_receivers(),
        Err(failure) => return model.show_notice(Token::Bad, format!("✗ {}", failure.sentence())),
    };
    let then = Consequence::Test(title, Box::new(inquiry));
    let words = format!(
        "Creates an event of severity {severity} in this service and closes it after the test."
    );
    let title = format!("Test {name} with a real event?");
    let mut confirm = Confirm::new(title, "Create it", then).line(Token::Warning, words);
    for line in lines {
        confirm = confirm.line(Token::Text, line);
    }
    model.overlay = Some(Overlay::Confirm(confirm));
}

impl Model {
    fn receivers_of_rule(&self, rule: &str) -> String {
        let found = self.store.object(Kind::Rule, rule);
        let receivers: Vec<&str> =
            found.map_or_else(Vec::new, |it| it.texts("destinationNames").collect());
        format!("  {rule} to {}", receivers.join(", "))
    }

    fn notified_receivers(&self, route: &v1::EventRoute) -> Vec<String> {
        if route.rule_names.is_empty() {
            return vec!["No rule matches: no one is notified.".to_owned()];
        }
        let silences = route.silence_names.join(", ");
        let mut lines = if silences.is_empty() {
            vec!["These rules notify, and again on closing if they send updates:".to_owned()]
        } else {
            vec![format!(
                "Silenced by {silences}; otherwise these rules would notify:"
            )]
        };
        lines.extend(self.format_rule_names(route.rule_names.iter().map(String::as_str)));
        lines
    }

    fn possible_receivers(&self) -> Vec<String> {
        let rules = self.store.resources(Kind::Rule).rows().iter();
        let enabled: Vec<&str> = rules
            .filter(|rule| rule.flag("enabled"))
            .map(Object::name)
            .collect();
        if enabled.is_empty() {
            return vec!["No rule is enabled: no one is notified.".to_owned()];
        }
        let words = "Enabled rules notify if it matches, and again on closing:";
        let rules = self.format_rule_names(enabled.into_iter());
        std::iter::once(words.to_owned()).chain(rules).collect()
    }

    fn format_rule_names<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>) -> Vec<String> {
        let more = names.len().saturating_sub(RULES);
        let lines = names.take(RULES).map(|rule| self.receivers_of_rule(rule));
        let rest = (more > 0).then(|| format!("  and {more} more rules"));
        lines.chain(rest).collect()
    }

    /// Returns the destination of the successful test on the screen, with the number of messages
    /// waiting for it.
    pub(crate) fn tested_backlog(&self) -> Option<(String, i64)> {
        let Content::Report(report) = &self.page.content else {
            return None;
        };
        let (Inquiry::Destination { fields, .. }, Some(Outcome::Test(test))) =
            (&report.inquiry, &report.found.value)
        else {
            return None;
        };
        let is_stored = fields.get("type").is_none();
        let has_passed = test.outcome() == v1::Outcome::Delivered;
        let name = fields["name"]
            .as_str()
            .filter(|_| is_stored && has_passed)?;
        let found = self.store.object(Kind::Destination, name)?;
        let waiting = found.number("health.waitingCount").filter(|it| *it > 0)?;
        Some((name.to_owned(), waiting))
    }
}

pub(super) fn test_form(model: &mut Model, inquiry: &Inquiry) {
    if !confirm_lasting_effect(model, None, inquiry) {
        run_in_form(model, inquiry);
    }
}

pub(super) fn run_in_form(model: &mut Model, inquiry: &Inquiry) {
    let call = inquiry.call(model.now_ms, None);
    let ticket = self::call(model, call, record_form_test);
    let effect = model.lasting_effect(inquiry).map(|(_, effect)| effect);
    if let Some(form) = model.page.form_mut() {
        form.bench.confirmed = effect;
        form.begin_test(ticket);
    }
}

fn record_form_test(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let found: Result<v1::TestDestinationResponse, _> = message(answer);
    if let Ok(test) = &found {
        tested::close_test_event(model, test);
    }
    let now_ms = model.now_ms;
    let pages = std::iter::once(&mut model.page).chain(&mut model.back);
    let mut forms = pages.filter_map(Page::form_mut);
    let form = forms.find(|form| form.bench.waiting.is_some_and(|(it, _)| it == ticket));
    form.is_some_and(|form| form.record_test(ticket, found, now_ms))
}

pub(super) fn open_report(model: &mut Model, title: String, inquiry: Inquiry) {
    let ticket = send_inquiry(model, inquiry.clone(), None, 1);
    let found = Loaded::<Outcome> {
        waiting: Some(ticket),
        ..Loaded::default()
    };
    let report = Report {
        title,
        inquiry,
        started_ms: model.now_ms,
        found,
        progress: None,
    };
    let mut page = Page::new(Route::Report);
    page.content = Content::Report(Box::new(report));
    navigate::push_page(model, page);
}

/// Sends the next call for a report, with the results of the previous calls.
fn send_inquiry(
    model: &mut Model,
    inquiry: Inquiry,
    before: Option<Outcome>,
    calls: usize,
) -> Ticket {
    let call = inquiry.call(model.now_ms, before.as_ref());
    self::call(model, call, move |model, ticket, answer| {
        let found = inquiry.read(before, answer);
        if let Ok(Outcome::Test(test)) = &found {
            tested::close_test_event(model, test);
        }
        handle_response(model, ticket, inquiry, found, calls)
    })
}

/// Handles a response; for lists, continues with the next page as needed.
fn handle_response(
    model: &mut Model,
    ticket: Ticket,
    inquiry: Inquiry,
    found: Result<Outcome, Failure>,
    calls: usize,
) -> bool {
    fn outcome_slot(content: &mut Content) -> Option<&mut Loaded<Outcome>> {
        match content {
            Content::Report(report) => Some(&mut report.found),
            _ => None,
        }
    }
    let now = model.now_ms;
    let Some(report) = model.waiting_slot(ticket, outcome_slot) else {
        return false;
    };
    match found {
        Ok(read) if read.has_more(calls) => {
            let next = send_inquiry(model, inquiry, Some(read), calls + 1);
            if let Some(report) = model.waiting_slot(ticket, outcome_slot) {
                report.waiting = Some(next);
            }
            false
        }
        found => report.record(found, now),
    }
}

pub(super) fn with_event(model: &mut Model, id: &str) {
    let now_ms = model.now_ms;
    if let Some(form) = model.page.form_mut() {
        events::event_id(id).clone_into(&mut form.bench.event_id);
        form.live.due_ms = Some(now_ms);
        return;
    }
    let Content::Report(report) = &mut model.page.content else {
        return;
    };
    let id = id.split_once(':').map_or(id, |(event, _)| event);
    match &mut report.inquiry {
        Inquiry::Destination { event_id, .. } | Inquiry::Rule { event_id, .. } => {
            id.clone_into(event_id);
        }
        _ => return model.show_notice(Token::Info, "tested on all stored events"),
    }
    rerun_report(model);
}
