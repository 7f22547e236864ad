//! Questions before a change: what will change, what will break. No write leaves without one.

use crate::{
    client::{Request, StatusChange},
    data::{Draft, Kind, NewClient, Status},
    limits,
    model::{
        Model,
        message::{TextEdit, Write},
        overlay::{Confirm, Consequence, Overlay},
        page::{Content, Page, Route},
    },
    theme::Token,
};

fn write(done: impl Into<String>) -> Box<Write> {
    Box::new(Write {
        done: done.into(),
        closes_form: false,
        text: None,
        then: None,
        mine: None,
    })
}

fn ask(model: &mut Model, confirm: Confirm) {
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Deleting what is selected, with the rules that will lose it.
pub(super) fn delete(model: &mut Model) {
    let Some(name) = model.resource_name() else {
        return;
    };
    let store = &model.store;
    let (kind, etag, users) = match model.page.route {
        Route::Triggers | Route::Trigger(_) => {
            let Some(row) = store.trigger(&name) else {
                return;
            };
            (Kind::Trigger, row.etag.clone(), row.rule_names.clone())
        }
        Route::Destinations | Route::Destination(_) => {
            let Some(row) = store.destination(&name) else {
                return;
            };
            (Kind::Destination, row.etag.clone(), row.rule_names.clone())
        }
        _ => {
            let Some(row) = store.rule(&name) else { return };
            (Kind::Rule, row.etag.clone(), Vec::new())
        }
    };
    let word = kind.word();
    let force = !users.is_empty();
    let request = Request::Delete {
        kind,
        name: name.clone(),
        etag,
        force,
    };
    let then = Consequence::Write(Box::new(request), write(format!("{word} {name} deleted")));
    let mut confirm = Confirm::new(format!("Delete {word} {name}?"), "Delete", then);
    if users.is_empty() {
        let told = match kind {
            Kind::Rule => "Messages it has caused are still delivered.",
            Kind::Trigger | Kind::Destination => "No rule uses it.",
        };
        confirm = confirm.line(Token::Text, told);
    } else {
        let told = format!("It is taken out of {}:", rules(users.len()));
        confirm = confirm.line(Token::Bad, told);
        for rule in &users {
            confirm = confirm.line(
                Token::Text,
                format!("  {}", what_remains(model, kind, rule)),
            );
        }
    }
    if kind == Kind::Destination {
        confirm = confirm.line(Token::Text, "Its undelivered messages are cancelled.");
    }
    ask(model, confirm.line(Token::Dim, "This cannot be undone."));
}

fn rules(count: usize) -> String {
    if count == 1 {
        "the 1 rule that uses it".to_owned()
    } else {
        format!("the {count} rules that use it")
    }
}

fn what_remains(model: &Model, kind: Kind, rule: &str) -> String {
    let Some(stored) = model.store.rule(rule) else {
        return rule.to_owned();
    };
    let (left, word) = match kind {
        Kind::Trigger => (stored.spec.trigger_names.len(), "trigger"),
        _ => (stored.spec.destination_names.len(), "destination"),
    };
    match left {
        0 | 1 => format!("{rule}, which is left without any {word}"),
        2 => format!("{rule}, which keeps 1 {word}"),
        _ => format!("{rule}, which keeps {} {word}s", left - 1),
    }
}

/// Enabling or disabling the rule.
pub(super) fn toggle(model: &mut Model) {
    let Some(rule) = model
        .resource_name()
        .and_then(|name| model.store.rule(&name))
    else {
        return;
    };
    let mut spec = rule.spec.clone();
    spec.enabled = !spec.enabled;
    let (name, on) = (spec.name.clone(), spec.enabled);
    let names = |names: &[String]| {
        if names.is_empty() {
            "nobody".to_owned()
        } else {
            names.join(", ")
        }
    };
    let told = if on {
        format!(
            "From now on it notifies {}.",
            names(&spec.destination_names)
        )
    } else {
        format!(
            "From now on it does not notify {}.",
            names(&spec.destination_names)
        )
    };
    let (title, verb, done) = if on {
        (
            format!("Enable rule {name}?"),
            "Enable",
            format!("rule {name} enabled"),
        )
    } else {
        (
            format!("Disable rule {name}?"),
            "Disable",
            format!("rule {name} disabled"),
        )
    };
    let request = Request::Update {
        draft: Draft::Rule(spec),
        etag: rule.etag.clone(),
    };
    let then = Consequence::Write(Box::new(request), write(done));
    ask(
        model,
        Confirm::new(title, verb, then).line(Token::Text, told),
    );
}

/// Revoking the selected client.
pub(super) fn revoke(model: &mut Model) {
    let Some(name) = model.selected() else { return };
    let own = model
        .caller
        .as_ref()
        .is_some_and(|caller| caller.name == name);
    let done = format!("the key of {name} is revoked");
    let then = Consequence::Write(
        Box::new(Request::RevokeClient { name: name.clone() }),
        write(done),
    );
    let mut confirm = Confirm::new(format!("Revoke the key of {name}?"), "Revoke", then).line(
        Token::Text,
        "It is worth nothing at once, also on open connections.",
    );
    if own {
        confirm = confirm.line(Token::Bad, "This is the key of this console.");
    }
    ask(model, confirm.line(Token::Dim, "This cannot be undone."));
}

pub(super) fn acknowledge(model: &mut Model, flag: bool) {
    let (verb, done) = if flag {
        ("Acknowledge", "acknowledged")
    } else {
        ("Take back", "no longer acknowledged")
    };
    change(model, StatusChange::Acknowledged(flag), verb, done, "");
}

pub(super) fn status(model: &mut Model, status: Status) {
    let (verb, done, told) = match status {
        Status::Closed => (
            "Close",
            "closed",
            "The next news of the same kind opens a new occurrence.",
        ),
        Status::Suppressed => (
            "Suppress",
            "suppressed",
            "A suppressed occurrence notifies nobody.",
        ),
        Status::Open | Status::Unknown => ("Open", "opened again", "Rules may notify again."),
    };
    change(model, StatusChange::Status(status), verb, done, told);
}

/// Changing the marked occurrences, else the selected or shown one.
fn change(model: &mut Model, change: StatusChange, verb: &'static str, done: &str, told: &str) {
    let ids = model.targets();
    let title = match ids.as_slice() {
        [] => return,
        [_] => format!("{verb} this occurrence?"),
        many => format!("{verb} these {} occurrences?", many.len()),
    };
    let count = ids.len();
    let described = model.describe_some(&ids);
    let request = Request::SetStatus {
        occurrence_ids: ids,
        change,
    };
    let done = if count == 1 {
        done.to_owned()
    } else {
        format!("{count} {done}")
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let mut confirm = Confirm::new(title, verb, then);
    for line in described {
        confirm = confirm.line(Token::Text, line);
    }
    if !told.is_empty() {
        confirm = confirm.line(Token::Dim, told);
    }
    ask(model, confirm);
}

/// Sending one delivery again, or cancelling it.
pub(super) fn delivery(model: &mut Model, again: bool) {
    let id = match &model.page.route {
        Route::Delivery(id) => Some(id.clone()),
        _ => model.targets().pop(),
    };
    let Some(id) = id else { return };
    let row = model
        .store
        .deliveries
        .rows()
        .iter()
        .find(|row| row.id == id);
    let line = row.map(|row| format!("{} to {}", row.state.word(), row.destination_name));
    let (verb, title, done, told, request) = if again {
        (
            "Send",
            "Send this delivery again?",
            "on the way again",
            "What has ended is sent as a new delivery; what waits is tried now.",
            Request::RetryDelivery { id },
        )
    } else {
        (
            "Cancel it",
            "Cancel this delivery?",
            "cancelled",
            "It is not tried any more.",
            Request::CancelDelivery { id },
        )
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let mut confirm = Confirm::new(title, verb, then);
    if let Some(line) = line {
        confirm = confirm.line(Token::Text, line);
    }
    ask(model, confirm.line(Token::Dim, told));
}

/// Writing the note.
pub(super) fn note(model: &mut Model, ids: Vec<String>, text: String) {
    let lines = model.describe_some(&ids);
    let (title, done) = match ids.len() {
        1 => ("Write this note?".to_owned(), "note written".to_owned()),
        count => (
            format!("Write this note on {count} occurrences?"),
            format!("note written on {count}"),
        ),
    };
    let request = Request::Annotate {
        occurrence_ids: ids,
        text: text.clone(),
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let mut confirm = Confirm::new(title, "Write", then);
    for line in lines {
        confirm = confirm.line(Token::Dim, line);
    }
    ask(model, confirm.line(Token::Text, text));
}

/// Storing a draft, with the difference to what is stored.
pub(super) fn save(
    model: &mut Model,
    draft: Draft,
    stored: Option<(String, String)>,
    before: &str,
    text: Option<TextEdit>,
) {
    let (word, name) = (draft.kind().word(), draft.name().to_owned());
    let closes_form = matches!(model.page.content, Content::Form(_));
    let after = draft.to_text();
    let then = match draft.kind() {
        Kind::Trigger => Route::Trigger(name.clone()),
        Kind::Destination => Route::Destination(name.clone()),
        Kind::Rule => Route::Rule(name.clone()),
    };
    let mine = stored.is_some().then(|| Box::new(draft.clone()));
    let (title, verb, done, request) = match stored {
        Some((_, etag)) => (
            format!("Change {word} {name}?"),
            "Change",
            format!("{word} {name} changed"),
            Request::Update { draft, etag },
        ),
        None => (
            format!("Create {word} {name}?"),
            "Create",
            format!("{word} {name} created"),
            Request::Create { draft },
        ),
    };
    let mut write = write(done);
    write.closes_form = closes_form;
    write.text = text;
    write.mine = mine;
    write.then = Some(then);
    let mut confirm = Confirm::new(title, verb, Consequence::Write(Box::new(request), write));
    for (token, line) in difference(before, &after) {
        confirm = confirm.line(token, line);
    }
    ask(model, confirm);
}

/// What changes, line by line, with a line around it.
pub(super) fn difference(before: &str, after: &str) -> Vec<(Token, String)> {
    let diff = similar::TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(1) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (token, sign) = match change.tag() {
                similar::ChangeTag::Delete => (Token::Bad, '-'),
                similar::ChangeTag::Insert => (Token::Good, '+'),
                similar::ChangeTag::Equal => (Token::Dim, ' '),
            };
            lines.push((token, format!("{sign} {}", change.value().trim_end())));
        }
    }
    if lines.is_empty() {
        lines.push((
            Token::Dim,
            "Nothing is different from what is stored.".to_owned(),
        ));
    }
    lines
}

/// Making a client.
pub(super) fn client(model: &mut Model, new: NewClient) {
    let (name, role) = (&new.name, new.role.word());
    let title = format!("Create client {name} with the role {role}?");
    let mut write = write(format!("client {name} created"));
    write.closes_form = true;
    let request = Request::CreateClient(new);
    let then = Consequence::Write(Box::new(request), write);
    let told = "Its key is shown once, and nowhere else.";
    ask(
        model,
        Confirm::new(title, "Create", then).line(Token::Text, told),
    );
}

impl Model {
    /// The marked rows, else the selected or shown occurrence or row.
    pub(super) fn targets(&self) -> Vec<String> {
        let marks = &self.page.list.marks;
        if !marks.is_empty() {
            return marks.iter().take(limits::BULK_ITEMS).cloned().collect();
        }
        let one = match self.page.route {
            Route::Events | Route::Event(_) => self.occurrence(),
            _ => self.selected(),
        };
        one.into_iter().collect()
    }

    /// The first of these occurrences in a line each, and how many more there are.
    fn describe_some(&self, ids: &[String]) -> Vec<String> {
        let first = ids.iter().take(5).map(|id| self.describe(id));
        let more = ids.len().saturating_sub(5);
        let rest = (more > 0).then(|| format!("and {more} more"));
        first.chain(rest).collect()
    }

    /// An occurrence in one line.
    fn describe(&self, id: &str) -> String {
        if let Some(row) = self.store.events.find(id) {
            return format!("{}  {}  {}", row.severity.word(), row.summary, row.entity);
        }
        match &self.page {
            Page {
                content: Content::Event { detail, .. },
                ..
            } => detail.value.as_ref().map_or_else(
                || id.to_owned(),
                |event| {
                    let occurrence = &event.occurrence;
                    format!("{}  {}", occurrence.severity.word(), occurrence.summary)
                },
            ),
            _ => id.to_owned(),
        }
    }
}
