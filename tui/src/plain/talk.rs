//! The dialogue of plain mode: the printed rows and their numbers, the open question, and the
//! effect of input.

use super::{
    announce::PrintedRows,
    command::{self, LineMeaning},
    fill, question, say,
};
use crate::{
    data::Label,
    keymap::{self, Action},
    limits,
    model::{
        Connection, Model, Notice,
        bulk::Stage,
        message::Msg,
        overlay::{Overlay, PaletteTarget},
        page::Content,
    },
    route::Route,
    theme::Token,
};

#[derive(Debug, Default)]
pub(super) struct Dialogue {
    lines: Vec<String>,
    numbered: Vec<String>,
    links: Vec<usize>,
    /// Lines of the page, and the number of lines or rows that were already printed.
    document: Vec<String>,
    shown: usize,
    page: String,
    /// Whether to print the page, or the rest of it, even if unchanged.
    again: bool,
    more: bool,
    text: Option<String>,
    /// The question that was printed, and the errors in the form.
    prompt_text: String,
    wrong: Vec<String>,
    filled: Option<usize>,
    link: String,
    progress_ms: i64,
    printed: PrintedRows,
    change_announced: bool,
}

impl Dialogue {
    pub(super) fn print(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    pub(super) fn print_greeting(&mut self, model: &Model) {
        self.print(format!(
            "Bellwether in line mode on {}. `help` lists commands, `quit` exits.",
            model.service
        ));
    }

    pub(super) fn print_link_state(&mut self, model: &Model) {
        let words = match &model.link {
            Connection::Connecting => return,
            Connection::Up => {
                let caller = model.caller.as_ref().map_or_else(String::new, |caller| {
                    format!(" as {}, with the role {}", caller.name, caller.role.label())
                });
                let read_only = if model.read_only { ", read-only" } else { "" };
                format!("Connected{caller}{read_only}.")
            }
            Connection::Down { failure, .. } => {
                format!("Not connected: {}. Retrying.", failure.sentence())
            }
        };
        if self.link != words {
            self.link.clone_from(&words);
            self.print(words);
        }
    }

    pub(super) fn print_notice(&mut self, notice: &Notice) {
        let text = notice.text.trim_start_matches(['✓', '✗', ' ']);
        let text = say::say_symbols(text);
        match notice.token {
            _ if text == "…" => {}
            Token::Good => self.print(format!("ok: {text}")),
            Token::Bad => self.print(format!("error: {text}")),
            Token::Warning => self.print(format!("warning: {text}")),
            _ => self.print(text),
        }
    }

    pub(super) fn print_progress(&mut self, model: &Model) {
        let words = match (&model.overlay, &model.page.content) {
            (Some(Overlay::Bulk(bulk)), _) => match bulk.stage {
                Stage::Running | Stage::Stopping => format!("{} done", bulk.progress_text()),
                Stage::Counting => format!("counting: {}", bulk.counted.count),
                _ => return,
            },
            (None, Content::Report(report)) if report.found.waiting.is_some() => {
                let Some(progress) = &report.progress else {
                    return;
                };
                let (scanned, matched) = (progress.scanned, progress.matched);
                format!("{scanned} events checked, {matched} matched")
            }
            _ => return,
        };
        if model.now_ms - self.progress_ms >= limits::PROGRESS_MS {
            self.progress_ms = model.now_ms;
            self.print(format!("{words}; `stop` cancels it"));
        }
    }

    pub(super) fn print_when_idle(&mut self, model: &Model) {
        if let Some(overlay) = &model.overlay {
            let (lines, prompt_text) = question::question_output(overlay);
            if !prompt_text.is_empty() && format!("{lines:?}{prompt_text}") != self.prompt_text {
                self.prompt_text = format!("{lines:?}{prompt_text}");
                self.lines.extend(lines);
                self.print(prompt_text);
            }
            return;
        }
        self.prompt_text.clear();
        let page = page_key(model);
        let again = std::mem::take(&mut self.again);
        let more = std::mem::take(&mut self.more);
        if page != self.page || again {
            self.page = page;
            self.print_page(model);
        } else if more {
            self.read_next_lines(model);
        }
        self.print_form(model);
    }

    fn print_page(&mut self, model: &Model) {
        self.numbered.clear();
        self.links.clear();
        self.document.clear();
        self.shown = 0;
        self.change_announced = false;
        self.printed.clear();
        if let Some(form) = model.page.form() {
            self.lines.extend(say::say_form(model, form));
            let shown = "`LABEL = value` fills in a field, `LABEL` describes it, an empty line \
                        prints the form again.";
            self.print(shown);
            self.wrong.clear();
            return;
        }
        if !model.page.route.is_list() {
            self.print(format!("{}.", say::page_title(model)));
            (self.document, self.links) = say::say_document(model);
        }
        self.read_next_lines(model);
    }

    fn read_next_lines(&mut self, model: &Model) {
        if model.page.route.is_list() {
            self.read_rows(model);
        } else {
            let end = self.document.len().min(self.shown + limits::PRINTED_LINES);
            let lines = self.document[self.shown..end].to_vec();
            self.lines.extend(lines);
            self.shown = end;
            let left = self.document.len() - end;
            if left > 0 {
                self.print(format!("{left} more lines; an empty line continues."));
            }
        }
    }

    fn read_rows(&mut self, model: &Model) {
        let rows = model.rows();
        let first = self.numbered.len();
        // A row that moved keeps its number and is not printed again.
        let shown: std::collections::HashSet<&String> = self.numbered.iter().collect();
        let fresh = (0..rows.len()).map(|index| rows.id(index).to_owned());
        let fresh: Vec<String> = fresh
            .filter(|id| !shown.contains(id))
            .take(limits::PRINTED_ROWS)
            .collect();
        let left = rows.len().saturating_sub(first + fresh.len());
        let more = model.has_more();
        drop(rows);
        let count = first + fresh.len();
        let mut heading = vec![match (count, fresh.len()) {
            (0, _) => "nothing".to_owned(),
            (_, 0) => "no more".to_owned(),
            _ if left == 0 && !more => format!("{} to {count} of {count}", first + 1),
            _ => {
                let all = count + left;
                let more = if more { " and more" } else { "" };
                format!("{} to {count} of {all}{more}", first + 1)
            }
        }];
        heading.extend(say::page_state(model));
        self.print(format!(
            "{}: {}.",
            say::page_title(model),
            heading.join(", ")
        ));
        if model.page.list.count == 0 && !model.page.list.filter.is_empty() {
            self.print("No match; `filter` without text removes the filter.");
        }
        for (at, id) in fresh.iter().enumerate() {
            let mark = if model.page.list.marks.contains(id) {
                "marked; "
            } else {
                ""
            };
            let row = say::say_row(model, id);
            self.print(format!("{}. {mark}{row}", first + at + 1));
        }
        self.numbered.extend(fresh);
        if left > 0 || more {
            self.print("An empty line continues.");
        }
        self.printed.record(model, &self.numbered);
    }

    fn print_form(&mut self, model: &Model) {
        let Some(form) = model.page.form() else {
            return;
        };
        if let Some(index) = self.filled.take() {
            let (label, value) = (form.specs[index].label, say::say_value(form, index));
            self.print(format!("{label} = {value}"));
        }
        let mut wrong: Vec<String> = Vec::new();
        for (path, error) in &form.errors {
            let spec = form.specs.iter().find(|spec| spec.path == path);
            let label = spec.map_or("The whole", |spec| spec.label);
            wrong.push(format!("not ok: {label}: {error}"));
        }
        if form.checked && wrong.is_empty() {
            let shown = "ok: Valid; ‹form_save› saves";
            wrong.push(model.expand_keys(shown));
        }
        let fresh: Vec<_> = wrong.iter().filter(|it| !self.wrong.contains(it)).collect();
        self.lines.extend(fresh.into_iter().cloned());
        self.wrong = wrong;
    }

    pub(super) fn handle_line(&mut self, model: &Model, line: &str) -> Vec<Msg> {
        if let Some(overlay) = &model.overlay {
            self.prompt_text.clear();
            let (msgs, said) = question::interpret(overlay, line.trim());
            self.lines.extend(said.map(str::to_owned));
            return msgs;
        }
        if question::is_cancellable(model) && line.trim() == "stop" {
            return vec![Msg::Act(Action::Back)];
        }
        if let Some(form) = model.page.form() {
            if line.trim().is_empty() {
                self.again = true;
                return vec![];
            }
            match fill::read(form, line) {
                Ok(Some(fill::Line::Fill(index, text))) => {
                    self.filled = Some(index);
                    return vec![Msg::Fill(index, text)];
                }
                Ok(Some(fill::Line::Ask(index))) => {
                    let help = model.expand_keys(form.specs[index].help);
                    self.filled = Some(index);
                    self.print(help);
                    return vec![];
                }
                Ok(None) => {}
                Err(message) => {
                    self.print(format!("error: {message}"));
                    return vec![];
                }
            }
        }
        match command::parse_line(model, line, &self.numbered) {
            LineMeaning::ReadOn => self.request_more(model),
            LineMeaning::Number(number) => self.open_numbered(model, number),
            LineMeaning::Act { action, rows, rest } => self.run_action(model, action, rows, rest),
            LineMeaning::Find(target) => {
                self.again = true;
                vec![Msg::Find(target)]
            }
            LineMeaning::Wrong(reason) => {
                self.print(format!("error: {reason}"));
                vec![]
            }
        }
    }

    /// Answers the prompt opened by an action, if the text was part of the command.
    pub(super) fn answer_prompt(&mut self, model: &Model) -> Vec<Msg> {
        let text = self.text.take();
        match (&model.overlay, text) {
            (Some(Overlay::Prompt(_) | Overlay::Picker(_)), Some(text)) => {
                question::reply_messages(text)
            }
            _ => vec![],
        }
    }

    fn request_more(&mut self, model: &Model) -> Vec<Msg> {
        self.more = true;
        let is_list = model.page.route.is_list();
        if is_list && self.numbered.len() >= model.rows().len() && model.has_more() {
            return vec![Msg::Act(Action::Bottom)];
        }
        if !is_list && self.shown >= self.document.len() {
            self.more = false;
            self.print("End of the list.");
        }
        vec![]
    }

    fn open_numbered(&mut self, model: &Model, number: usize) -> Vec<Msg> {
        self.again = true;
        let at = number.checked_sub(1);
        if model.page.route.is_list() {
            let id = at.and_then(|at| self.numbered.get(at)).cloned();
            if let Some(id) = id.filter(|id| model.rows().position(id).is_some()) {
                return vec![Msg::Choose(vec![id], false), Msg::Act(Action::Open)];
            }
        } else if let Some(line) = at.and_then(|at| self.links.get(at)) {
            return vec![Msg::Line(*line), Msg::Act(Action::Open)];
        }
        self.again = false;
        self.print(format!("error: no {number} here"));
        vec![]
    }

    fn run_action(
        &mut self,
        model: &Model,
        action: Action,
        rows: Vec<String>,
        rest: String,
    ) -> Vec<Msg> {
        self.again = command::shows_a_page(keymap::entry_for(action));
        match action {
            Action::Help => {
                self.again = false;
                self.print(format!("Commands here ({}):", say::page_title(model)));
                self.lines.extend(command::help_lines(model));
                let shown = "ROWS are numbers such as 3, 1 4 or 2-5, or a name. A number without \
                            a command opens a row or a link. An empty line continues. Also: the \
                            words of the palette, such as `test NAME`, `edit NAME`, `event ID` \
                            or `sort COLUMN`.";
                self.print(shown);
                return vec![];
            }
            Action::Filter => return vec![Msg::Find(PaletteTarget::Filter(rest))],
            Action::Mark => return vec![Msg::Choose(rows, true)],
            // Quitting leads to a question if the editor contains unsaved text.
            _ if keymap::entry_for(action).action == Action::Quit => return vec![Msg::Act(action)],
            _ => {}
        }
        if keymap::entry_for(action).lines.text && !rest.is_empty() {
            self.text = Some(rest);
        }
        let mut msgs = Vec::new();
        if !rows.is_empty() {
            msgs.push(Msg::Choose(rows, false));
        }
        msgs.push(Msg::Act(action));
        msgs
    }

    pub(super) fn has_changes(&self, model: &Model) -> bool {
        if model.overlay.is_some() || page_key(model) != self.page {
            return false;
        }
        if model.page.route.is_list() {
            let held = model.store.events.paused && model.page.route == Route::EVENTS;
            return !held && self.printed.has_changes(model, &self.numbered);
        }
        let is_watched = matches!(model.page.route, Route::Event(_) | Route::Delivery(_));
        is_watched && !self.change_announced && say::say_document(model).0 != self.document
    }

    pub(super) fn announce_changes(&mut self, model: &Model) {
        if !self.has_changes(model) {
            return;
        }
        if model.page.route.is_list() {
            let lines = self.printed.take_changes(model, &self.numbered);
            self.lines.extend(lines);
        } else {
            self.change_announced = true;
            self.print("page changed; `refresh` reloads it");
        }
    }
}

fn page_key(model: &Model) -> String {
    let list = &model.page.list;
    let open_only = model.store.events.filter.open_only;
    let content = match &model.page.content {
        Content::Event { tab, .. } => format!("{tab:?}"),
        Content::Report(report) => format!("{}{}", report.title, report.started_ms),
        Content::Form(form) => form.title(),
        Content::None | Content::Response(_) => String::new(),
    };
    let route = &model.page.route;
    format!(
        "{route:?}{content}{}{:?}{open_only}",
        list.filter, list.sort
    )
}
