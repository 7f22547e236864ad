//! Copying: the id with one key, other forms from a menu.

use bellwether_language::text::percent_encode;
use bellwether_proto::{json, v1};
use prost::Name;

use super::call;
use crate::{
    client::{CallResult, Ticket, events},
    data::{Kind, Screen, occurrence},
    document::Line,
    model::{
        Model, document,
        inquiry::Inquiry,
        message::Effect,
        overlay::{Menu, MenuAction, MenuItem, Overlay},
        page::Content,
    },
    route::Route,
    text,
    theme::Token,
};

pub(super) fn copy_id(model: &mut Model) {
    let wanted = match &model.page.route {
        Route::Screen(Screen::Events) if model.page.list.count == 0 => {
            model.show_notice(Token::Info, "copied the command");
            let command = model.shell.send_command();
            let lines = command
                .lines()
                .map(|line| line.trim_end_matches('\\').trim());
            return model
                .effects
                .push(Effect::Copy(lines.collect::<Vec<_>>().join(" ")));
        }
        Route::Screen(Screen::Overview) => model.service.clone(),
        Route::Report if matches!(model.page.inquiry(), Some(Inquiry::Handover { .. })) => {
            page_text(model)
        }
        _ => model.current_id(),
    };
    copy_text(model, wanted);
}

/// Returns the text of the page, without the hints about keys.
fn page_text(model: &Model) -> String {
    let lines = document::current_document(model).lines;
    let is_hint = |line: &&Line| {
        let mut words = line.spans.iter().filter(|it| !it.text.is_empty());
        words.all(|it| it.token == Token::Dim)
    };
    let (head, rest) = lines.split_at(lines.len().min(3));
    let head = head.iter().filter(|line| !is_hint(line));
    let all = head
        .chain(rest)
        .map(|line| line.text().trim_end().to_owned());
    all.collect::<Vec<_>>().join("\n")
}

fn copy_text(model: &mut Model, wanted: String) {
    if wanted.is_empty() {
        return model.show_notice(Token::Info, "nothing to copy here");
    }
    let first = wanted.lines().next().unwrap_or_default();
    let shown = text::fit_to_width(first, model.terminal_columns().saturating_sub(12));
    model.show_notice(Token::Info, format!("copied {shown}"));
    model.effects.push(Effect::Copy(wanted));
}

pub(super) fn open_copy_menu(model: &mut Model) {
    let items = model.copy_menu_items();
    if items.is_empty() {
        return model.show_notice(Token::Info, "nothing to copy here");
    }
    model.overlay = Some(Overlay::Menu(Menu {
        title: "Copy".to_owned(),
        help: "key or Enter copies · Esc closes",
        items,
        cursor: 0,
    }));
}

pub(super) fn run_menu_action(model: &mut Model, what: MenuAction) {
    match what {
        MenuAction::Field(_) | MenuAction::View(_) | MenuAction::Open(_) => {}
        MenuAction::Text(text) => copy_text(model, text),
        MenuAction::Event(id) => {
            let ticket = call(model, events::get_event(&id), copy_event);
            model.copies = Some(ticket);
            model.show_notice(Token::Dim, "…");
        }
    }
}

/// Copies a requested event, unless another was requested in the meantime.
fn copy_event(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    if model.copies.take_if(|waits| *waits == ticket).is_none() {
        return false;
    }
    match events::parse_event(answer) {
        Ok(event) => copy_text(model, pretty_json(&event)),
        Err(failure) => model.show_notice(Token::Bad, format!("✗ {}", failure.sentence())),
    }
    true
}

pub(super) fn pretty_json<M: Name>(message: &M) -> String {
    let json = json::to_json(message).ok();
    let json = json.and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok());
    let json = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    json.unwrap_or_default()
}

impl Model {
    /// Returns the id or name of the selected or shown item; empty if there is none.
    pub(super) fn current_id(&self) -> String {
        match &self.page.route {
            route if route.is_list() => self.selected_id().unwrap_or_default(),
            route => route.object_name().to_owned(),
        }
    }

    fn copy_menu_items(&self) -> Vec<MenuItem> {
        let id = self.current_id();
        let mut items = Vec::new();
        let mut add = |key, label: &str, what: Option<MenuAction>| {
            let filled =
                what.filter(|what| !matches!(what, MenuAction::Text(text) if text.is_empty()));
            let label = String::from(label);
            items.extend(filled.map(|what| MenuItem { key, label, what }));
        };
        add('i', "id or name", Some(MenuAction::Text(id.clone())));
        add('r', "row", Some(MenuAction::Text(self.current_row())));
        add('j', "JSON", self.current_json(&id));
        let path = rest_path(&self.page.route, &id);
        add(
            'c',
            "curl",
            path.map(|path| MenuAction::Text(self.curl_command(&path))),
        );
        let command = self.current_command(&id);
        add('b', "bellwether", command.map(MenuAction::Text));
        items
    }

    fn current_row(&self) -> String {
        if !self.page.route.is_list() {
            let lines = document::current_document(self).lines;
            let line = lines.get(self.page.reading.cursor);
            return line.map_or_else(String::new, |line| line.text().trim().to_owned());
        }
        let id = self.page.list.selected_id(&*self.rows());
        let cells = id.map(|id| self.row_cells(&id)).unwrap_or_default();
        let cells = cells.into_iter().filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join("  ")
    }

    fn row_cells(&self, id: &str) -> Vec<String> {
        let Some(table) = self.store.table_for_route(&self.page.route) else {
            return Vec::new();
        };
        let rows = self.rows();
        let place = rows.position(id).map(|index| rows.row_index(index));
        let cells = place.map(|place| table.cells(self, place));
        let cells = cells.into_iter().flatten();
        cells.map(|cell| cell.text.trim().to_owned()).collect()
    }

    pub(super) fn current_json(&self, id: &str) -> Option<MenuAction> {
        let object = |kind| {
            let object = self.store.object(kind, id)?;
            serde_json::to_string_pretty(&object.json).ok()
        };
        match (&self.page.route, &self.page.content) {
            (_, Content::Event { detail, .. }) => {
                Some(MenuAction::Text(pretty_json(detail.value.as_ref()?)))
            }
            (Route::Delivery(_), content) => {
                let delivery = content.response::<v1::Delivery>()?;
                Some(MenuAction::Text(pretty_json(delivery.value.as_ref()?)))
            }
            // The event is requested, because the rows of the list are not complete events.
            (Route::Screen(Screen::Events), _) if !id.is_empty() => {
                Some(MenuAction::Event(id.to_owned()))
            }
            (Route::List(kind) | Route::Object(kind, _), _) => object(*kind).map(MenuAction::Text),
            (Route::Screen(Screen::Deliveries), _) => {
                let mut rows = self.store.deliveries.rows().iter();
                Some(MenuAction::Text(pretty_json(
                    rows.find(|row| row.id == id)?,
                )))
            }
            _ => None,
        }
    }

    fn curl_command(&self, path: &str) -> String {
        let rest = self.shell.rest.as_deref().unwrap_or("$BELLWETHER_REST");
        let key = &self.shell.key;
        format!("curl -H \"authorization: Bearer {key}\" \"{rest}{path}\"")
    }

    fn current_command(&self, id: &str) -> Option<String> {
        let bellwether = &self.shell.bellwether;
        let quoted = shell_quote(id);
        let event = match &self.page.content {
            Content::Event { detail, .. } => detail.value.as_ref().and_then(occurrence),
            _ => None,
        };
        let words = match &self.page.route {
            Route::Screen(Screen::Events) | Route::Event(_) if id.is_empty() => {
                let filter = shell_quote(&self.page.list.filter);
                format!("events {filter}")
            }
            Route::Screen(Screen::Events) => format!("explain {quoted}"),
            Route::Event(_) => {
                let id = event.map_or(id, |event| event.id.as_str());
                format!("explain {}", shell_quote(id))
            }
            Route::List(kind) | Route::Object(kind, _) if is_configuration(*kind) => {
                format!("get {} {quoted}", kind.singular())
            }
            Route::Screen(Screen::Overview) => "status".to_owned(),
            _ => return None,
        };
        Some(format!("{bellwether} {}", words.trim_end()))
    }
}

fn is_configuration(kind: Kind) -> bool {
    crate::api::ConfigKind::find(kind.singular()).is_some()
}

fn rest_path(route: &Route, id: &str) -> Option<String> {
    let event = id.split_once(':').map_or(id, |(event, _)| event);
    let below =
        |path: &str, id: &str| (!id.is_empty()).then(|| format!("{path}/{}", percent_encode(id)));
    match route {
        Route::Screen(Screen::Events) | Route::Event(_) => below("/v1/events", event),
        Route::List(Kind::Client | Kind::Pending)
        | Route::Object(Kind::Client | Kind::Pending, _) => None,
        Route::List(Kind::Mapping) | Route::Object(Kind::Mapping, _) => {
            below("/v1/intake/mappings", id)
        }
        Route::List(Kind::Enrichment) | Route::Object(Kind::Enrichment, _) => {
            below("/v1/intake/enrichment-tables", id)
        }
        Route::List(Kind::Policy) | Route::Object(Kind::Policy, _) => {
            below("/v1/notification/escalation-policies", id)
        }
        Route::List(kind) | Route::Object(kind, _) => {
            below(&format!("/v1/notification/{}", kind.plural()), id)
        }
        Route::Screen(Screen::Deliveries) | Route::Delivery(_) => {
            below("/v1/notification/deliveries", id)
        }
        Route::Screen(Screen::Overview) => Some("/v1/overview".to_owned()),
        _ => None,
    }
}

pub(super) fn shell_quote(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,@:=".contains(char);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
