//! Questions before a change: what will change, what will break. Without one leaves only what can
//! be taken back and tells no one that it is over.

use super::carry_out::carry_out;
use crate::{
    client::{Request, StatusChange},
    data::{HealthState, Kind, Object, Status, Transition, Word},
    document::difference,
    kind,
    model::{
        Model,
        message::Effect,
        overlay::{Confirm, Consequence, Overlay},
        page::Content,
        silencing::SilenceScope,
        undo::Back,
        write::{TextEdit, Write},
    },
    route::Route,
    theme::Token,
};

fn write(done: impl Into<String>) -> Box<Write> {
    Box::new(Write::new(done))
}

fn ask(model: &mut Model, confirm: Confirm) {
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Does what can be taken back, and asks only where everything is asked about.
fn do_or_ask(model: &mut Model, mut confirm: Confirm, back: Back, effects: &mut Vec<Effect>) {
    if model.asks_always {
        return ask(model, confirm);
    }
    if let Consequence::Write(_, write) = &mut confirm.then {
        write.back = Some(back).filter(|back| !back.is_empty());
        write.at_once = true;
    }
    carry_out(model, confirm.then, effects);
}

/// Takes back what was done last.
pub(super) fn undo(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some((what, requests)) = model.take_undo() else {
        return model.say(Token::Info, "there is nothing to undo");
    };
    if requests.is_empty() {
        return model.say(Token::Info, format!("{what} is not so any more"));
    }
    for request in requests {
        let mut write = write(format!("undone: {what}"));
        write.at_once = true;
        let then = Consequence::Write(Box::new(request), write);
        carry_out(model, then, effects);
    }
}

/// Deleting what is selected, with the rules that will lose it.
pub(super) fn delete(model: &mut Model) {
    let name = model.resource_name().unwrap_or_default();
    let kind = model.page.route.kind();
    let Some((kind, object)) = kind.and_then(|kind| Some((kind, model.store.object(kind, &name)?)))
    else {
        return;
    };
    let etag = object.etag().to_owned();
    let users: Vec<String> = object.texts("ruleNames").map(str::to_owned).collect();
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
        let words = match kind {
            Kind::Rule => "Its outstanding messages are still delivered.",
            Kind::Calendar => "Only unused calendars can be deleted.",
            Kind::Mapping => "Requests to it are rejected from then on.",
            Kind::Inhibition => "Held notifications are evaluated immediately.",
            Kind::Silence => "It ends, and held notifications are evaluated immediately.",
            _ => "No rule uses it.",
        };
        confirm = confirm.line(Token::Text, words);
    } else {
        let words = format!("It is taken out of {}:", rules(users.len()));
        confirm = confirm.line(Token::Bad, words);
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
    let Some(stored) = model.store.object(Kind::Rule, rule) else {
        return rule.to_owned();
    };
    let word = kind.word();
    let left = stored.texts(&format!("{word}Names")).len();
    match left {
        0 | 1 => format!("{rule}, which is left without any {word}"),
        2 => format!("{rule}, which keeps 1 {word}"),
        _ => format!("{rule}, which keeps {} {word}s", left - 1),
    }
}

/// Enabling or disabling the rule.
pub(super) fn toggle(model: &mut Model, effects: &mut Vec<Effect>) {
    let name = model.resource_name();
    let Some(rule) = name.and_then(|name| model.store.object(Kind::Rule, &name)) else {
        return;
    };
    let on = !rule.flag("enabled");
    let mut draft = kind::draft(rule);
    draft.set("enabled", Some(on.into()));
    let name = draft.name().to_owned();
    let names: Vec<&str> = draft.texts("destinationNames").collect();
    let receivers = if names.is_empty() {
        "no destination".to_owned()
    } else {
        names.join(", ")
    };
    let does = if on { "notifies" } else { "does not notify" };
    let words = format!("From now on it {does} {receivers}.");
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
        draft,
        etag: rule.etag().to_owned(),
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let confirm = Confirm::new(title, verb, then).line(Token::Text, words);
    let back = Back::Enable {
        rule: name,
        on: !on,
    };
    do_or_ask(model, confirm, back, effects);
}

/// Pausing the destination, or resuming it.
pub(super) fn pause(model: &mut Model) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Destination, &name)) else {
        return;
    };
    let name = found.name().to_owned();
    let is_paused = kind::destination::health(found) == HealthState::Paused;
    let (title, verb, done, words) = if is_paused {
        (
            format!("Resume {name}?"),
            "Resume",
            format!("{name} resumed"),
            "Its waiting messages are sent now.",
        )
    } else {
        (
            format!("Pause {name}?"),
            "Pause",
            format!("{name} paused"),
            "Nothing is sent to it until it is resumed or edited; messages wait meanwhile.",
        )
    };
    let pause = !is_paused;
    let then = Consequence::Write(Box::new(Request::Pause { name, pause }), write(done));
    ask(
        model,
        Confirm::new(title, verb, then).line(Token::Text, words.to_owned()),
    );
}

/// Sending what waits now.
pub(super) fn release(model: &mut Model) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Pending, &name)) else {
        return;
    };
    let names: Vec<&str> = found.texts("destinationNames").collect();
    let words = format!("{} is notified now.", names.join(", "));
    if let Some(id) = Some(found.text("deliveryId")).filter(|id| !id.is_empty()) {
        let request = Request::RetryDelivery { id: id.to_owned() };
        let then = Consequence::Write(Box::new(request), write("on the way"));
        let confirm = Confirm::new("Send what is beyond the budget?", "Send", then);
        return ask(model, confirm.line(Token::Text, words));
    }
    let rule = found.text("ruleName").to_owned();
    let request = Request::Release {
        rule: rule.clone(),
        event_id: found.text("eventId").to_owned(),
        occurrence_id: found.text("occurrenceId").to_owned(),
    };
    let then = Consequence::Write(Box::new(request), write(format!("{rule} notifies now")));
    let title = format!("Send what waits of rule {rule}?");
    let confirm = Confirm::new(title, "Send", then).line(Token::Text, words);
    ask(model, confirm.line(Token::Dim, "Its holds end."));
}

/// Changing all that is open of a group.
pub(super) fn group(model: &mut Model, change: StatusChange) {
    let name = model.resource_name();
    let Some(found) = name.and_then(|name| model.store.object(Kind::Group, &name)) else {
        return;
    };
    let (verb, done) = match change {
        StatusChange::Acknowledged(_) => ("Acknowledge", "acknowledged"),
        StatusChange::Status(Status::Suppressed) => ("Suppress", "suppressed"),
        StatusChange::Status(_) => ("Close", "closed"),
        StatusChange::Assigned(_) => ("Assign", "assigned"),
    };
    let open = found.number("openCount").unwrap_or_default();
    let rule = found.text("ruleName");
    let title = format!("{verb} the {open} open of this group of rule {rule}?");
    let id = found.name().to_owned();
    let request = Request::SetGroupStatus { id, change };
    let done = format!("{done} the {open} open of a group of rule {rule}");
    let then = Consequence::Write(Box::new(request), write(done));
    let words = "Including members that joined meanwhile; 1,000 per commit.";
    ask(
        model,
        Confirm::new(title, verb, then).line(Token::Text, words),
    );
}

/// Silencing what was chosen with its counts on the screen; what is broad is asked about once more.
pub(super) fn silence(
    model: &mut Model,
    scope: &SilenceScope,
    until: &str,
    request: Request,
    effects: &mut Vec<Effect>,
) {
    let what = &scope.what;
    let then = Consequence::Write(Box::new(request), write(format!("silenced {what} {until}")));
    if !scope.is_broad() && !model.asks_always {
        return carry_out(model, then, effects);
    }
    let mut confirm = Confirm::new(format!("Silence {what} {until}?"), "Silence", then);
    for (token, line) in scope.lines() {
        confirm = confirm.line(token, line);
    }
    let after = "Held notifications are sent at the end, with the state then; closings are sent immediately.";
    ask(model, confirm.line(Token::Dim, after));
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
        Box::new(Request::Delete {
            kind: Kind::Client,
            name: name.clone(),
            etag: String::new(),
            force: false,
        }),
        write(done),
    );
    let mut confirm = Confirm::new(format!("Revoke the key of {name}?"), "Revoke", then).line(
        Token::Text,
        "It stops working immediately, also on open connections.",
    );
    if own {
        confirm = confirm.line(Token::Bad, "This is the key of this console.");
    }
    ask(model, confirm.line(Token::Dim, "This cannot be undone."));
}

pub(super) fn acknowledge(model: &mut Model, flag: bool, effects: &mut Vec<Effect>) {
    let (verb, done) = if flag {
        ("Acknowledge", "acknowledged")
    } else {
        ("Take back", "took back the acknowledgement of")
    };
    let change = StatusChange::Acknowledged(flag);
    self::change(model, change, (verb, done, ""), effects);
}

/// Makes the caller the one who looks after it, or no one where the caller does already.
pub(super) fn mine(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(caller) = &model.caller else { return };
    let own = caller.name.clone();
    let ids = model.targets();
    let is_mine = |id: &String| model.standing_of(id).is_some_and(|it| it.assignee == own);
    let assignee = if ids.iter().all(is_mine) {
        String::new()
    } else {
        own
    };
    assign(model, assignee, effects);
}

/// Makes a client the one who looks after it; no one when there is no name.
pub(super) fn assign(model: &mut Model, assignee: String, effects: &mut Vec<Effect>) {
    let done = if assignee.is_empty() {
        "unassigned".to_owned()
    } else {
        format!("assigned to {assignee}:")
    };
    let words = "This sends no notifications.";
    let change = StatusChange::Assigned(assignee);
    self::change(model, change, ("Assign", &done, words), effects);
}

pub(super) fn status(model: &mut Model, status: Status, effects: &mut Vec<Effect>) {
    let (verb, done, words) = match status {
        Status::Closed => (
            "Close",
            "closed",
            "Its sender's next report opens it again; suppress it until it ends.",
        ),
        Status::Suppressed => (
            "Suppress",
            "suppressed",
            "A suppressed occurrence sends no notifications.",
        ),
        Status::Open | Status::Default => ("Open", "reopened", "Rules may notify again."),
    };
    let change = StatusChange::Status(status);
    self::change(model, change, (verb, done, words), effects);
}

/// Changing the marked occurrences, else the selected or shown one.
fn change(
    model: &mut Model,
    change: StatusChange,
    (verb, done, words): (&'static str, &str, &str),
    effects: &mut Vec<Effect>,
) {
    let ids = model.targets();
    let title = match ids.as_slice() {
        [] => return,
        [_] => format!("{verb} this occurrence?"),
        many => format!("{verb} these {} occurrences?", many.len()),
    };
    let done = format!("{done} {}", model.name_events(&ids));
    let described = model.describe_some(&ids);
    let back = Back::of_change(model, &ids, &change);
    // Who was notified of an end is notified of it again, or of another beginning.
    let is_quiet = match change {
        StatusChange::Acknowledged(_) | StatusChange::Assigned(_) => true,
        StatusChange::Status(Status::Closed) => false,
        StatusChange::Status(_) => model.are_open(&ids),
    };
    let request = Request::SetStatus {
        occurrence_ids: ids,
        change,
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let mut confirm = Confirm::new(title, verb, then);
    for line in described {
        confirm = confirm.line(Token::Text, line);
    }
    if !words.is_empty() {
        confirm = confirm.line(Token::Dim, words);
    }
    if is_quiet {
        do_or_ask(model, confirm, back, effects);
    } else {
        ask(model, confirm);
    }
}

/// Sending one delivery again, or cancelling it.
pub(super) fn delivery(model: &mut Model, transition: Transition) {
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
    let line = row.map(|row| format!("{} to {}", row.state().word(), row.destination_name));
    let to = row.map_or_else(String::new, |row| format!(" to {}", row.destination_name));
    let (verb, title, done, words, request) = match transition {
        Transition::SendAgain => (
            "Send",
            "Send this delivery again?",
            "on the way again",
            "What has ended is sent as a new delivery; what waits is tried now.",
            Request::RetryDelivery { id },
        ),
        Transition::Cancel => (
            "Cancel it",
            "Cancel this delivery?",
            "cancelled",
            "It is not tried any more.",
            Request::CancelDelivery { id },
        ),
    };
    let then = Consequence::Write(Box::new(request), write(format!("{done}{to}")));
    let mut confirm = Confirm::new(title, verb, then);
    if let Some(line) = line {
        confirm = confirm.line(Token::Text, line);
    }
    ask(model, confirm.line(Token::Dim, words));
}

/// Writing the note.
pub(super) fn note(model: &mut Model, ids: Vec<String>, text: String, effects: &mut Vec<Effect>) {
    let lines = model.describe_some(&ids);
    let title = match ids.len() {
        1 => "Write this note?".to_owned(),
        count => format!("Write this note on {count} occurrences?"),
    };
    let done = format!("note written on {}", model.name_events(&ids));
    let request = Request::Annotate {
        occurrence_ids: ids,
        text: text.clone(),
    };
    let then = Consequence::Write(Box::new(request), write(done));
    let mut confirm = Confirm::new(title, "Write", then);
    for line in lines {
        confirm = confirm.line(Token::Dim, line);
    }
    // The service names what takes it back.
    let back = Back::Notes(Vec::new());
    do_or_ask(model, confirm.line(Token::Text, text), back, effects);
}

/// Storing a draft, with the difference to what is stored.
pub(super) fn save(
    model: &mut Model,
    draft: Object,
    stored: Option<(String, String)>,
    before: &str,
    text: Option<TextEdit>,
) {
    let (word, name) = (draft.kind.word(), draft.name().to_owned());
    let closes_form = matches!(model.page.content, Content::Form(_));
    let after = kind::text(&draft);
    let key = draft.kind == Kind::Client;
    let then = Route::Object(draft.kind, name.clone());
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
    if key {
        let words = "Its key is shown once, and nowhere else.";
        confirm = confirm.line(Token::Text, words);
    }
    for (token, line) in differs(before, &after) {
        confirm = confirm.line(token, line);
    }
    ask(model, confirm);
}

/// What changes, with a line around it.
pub(super) fn differs(before: &str, after: &str) -> Vec<(Token, String)> {
    let mut lines = difference(before, after, 1);
    if lines.is_empty() {
        let words = "No changes to the stored version.";
        lines.push((Token::Dim, words.to_owned()));
    }
    lines
}
