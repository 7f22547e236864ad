//! Keys in overlays.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    bulk, clash, confirm, copy, events, execute::execute, forms, heartbeats, line_picks, navigate,
    on_call, outside, report, screen, silencing, views,
};
use crate::{
    model::{
        Model,
        bulk::EventTransition,
        field::TextField,
        message::Effect,
        overlay::{
            Clash, ClashChoice, Confirm, Consequence, Menu, MenuAction, Overlay, Palette,
            PaletteTarget, Picker, PickerPurpose, ProgramPane, Prompt, PromptPurpose,
        },
    },
    theme::Token,
};

pub(super) fn handle_overlay_key(model: &mut Model, key: KeyEvent) {
    match model.overlay.take() {
        Some(Overlay::Confirm(confirm)) => handle_confirm_key(model, confirm, key),
        Some(Overlay::Clash(clash)) => handle_clash_key(model, clash, key),
        Some(Overlay::Bulk(bulk)) => bulk::handle_key(model, bulk, key),
        Some(Overlay::Prompt(prompt)) => handle_prompt_key(model, prompt, key),
        Some(Overlay::Picker(pick)) => handle_pick_key(model, pick, key),
        Some(Overlay::Palette(palette)) => handle_palette_key(model, palette, key),
        Some(Overlay::Menu(menu)) => handle_menu_key(model, menu, key),
        Some(Overlay::Silence(choice)) => silencing::handle_silence_key(model, choice, key),
        Some(Overlay::Key { name, key: secret }) => match key.code {
            KeyCode::Char('y') => {
                model.effects.push(Effect::Copy(secret.clone()));
                model.show_notice(Token::Info, "copied the key");
                model.overlay = Some(Overlay::Key { name, key: secret });
            }
            KeyCode::Esc => {}
            _ => model.overlay = Some(Overlay::Key { name, key: secret }),
        },
        Some(Overlay::Program(pane)) => handle_program_key(model, pane, key),
        None => {}
    }
}

/// Handles a key of the pane with the output of a command. Esc stops a running command.
fn handle_program_key(model: &mut Model, mut pane: ProgramPane, key: KeyEvent) {
    let page = usize::from(model.size.1 / 2);
    let last = pane.lines.len().saturating_sub(1);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => {
            if pane.end.is_none() {
                model.effects.push(Effect::StopRun);
                model.show_notice(Token::Warning, "stopped the command");
            }
            return;
        }
        KeyCode::Char('y') => {
            model.effects.push(Effect::Copy(pane.lines.join("\n")));
            model.show_notice(Token::Info, "copied the output");
        }
        KeyCode::Down | KeyCode::Char('j') => pane.top += 1,
        KeyCode::Up | KeyCode::Char('k') => pane.top = pane.top.saturating_sub(1),
        KeyCode::PageDown => pane.top += page,
        KeyCode::PageUp => pane.top = pane.top.saturating_sub(page),
        _ => {}
    }
    pane.top = pane.top.min(last);
    model.overlay = Some(Overlay::Program(pane));
}

pub(super) fn handle_overlay_paste(model: &mut Model, text: &str) {
    match &mut model.overlay {
        Some(Overlay::Prompt(prompt)) => prompt.field.insert(text),
        Some(Overlay::Palette(palette)) => palette.field.insert(text),
        Some(Overlay::Picker(pick)) => pick.needle.insert(text),
        Some(Overlay::Silence(choice)) => {
            if let Some((_, field)) = &mut choice.typing {
                field.insert(text);
            }
        }
        Some(
            Overlay::Confirm(_)
            | Overlay::Clash(_)
            | Overlay::Bulk(_)
            | Overlay::Menu(_)
            | Overlay::Key { .. }
            | Overlay::Program(_),
        )
        | None => {}
    }
}

fn handle_confirm_key(model: &mut Model, mut confirm: Confirm, key: KeyEvent) {
    match key.code {
        KeyCode::Char('y') => return execute(model, confirm.then),
        KeyCode::Enter if confirm.yes => return execute(model, confirm.then),
        KeyCode::Enter | KeyCode::Esc | KeyCode::Char('n' | 'q') => {
            let is_save =
                matches!(&confirm.then, Consequence::Write(_, write) if write.closes_form);
            // Plain mode reports a cancelled question itself.
            if is_save && !model.is_plain {
                model.show_notice(Token::Dim, "not saved".to_owned());
            }
            return;
        }
        KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => {
            confirm.yes = !confirm.yes;
        }
        KeyCode::Down | KeyCode::Char('j') => {
            confirm.top = (confirm.top + 1).min(confirm.lines.len().saturating_sub(1));
        }
        KeyCode::Up | KeyCode::Char('k') => confirm.top = confirm.top.saturating_sub(1),
        _ => {}
    }
    model.overlay = Some(Overlay::Confirm(confirm));
}

/// Handles a key of an edit conflict. Esc returns to editing, so no edit is lost without an
/// explicit choice.
fn handle_clash_key(model: &mut Model, mut shown: Box<Clash>, key: KeyEvent) {
    let all = ClashChoice::ALL;
    let at = all
        .iter()
        .position(|choice| *choice == shown.choice)
        .unwrap_or(0);
    match key.code {
        KeyCode::Enter => return clash::resolve_clash(model, *shown),
        KeyCode::Esc | KeyCode::Char('q') => {
            shown.choice = ClashChoice::Edit;
            return clash::resolve_clash(model, *shown);
        }
        KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => {
            shown.choice = all[(at + 1) % all.len()];
        }
        KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => {
            shown.choice = all[(at + all.len() - 1) % all.len()];
        }
        KeyCode::Down | KeyCode::Char('j') => {
            shown.top = (shown.top + 1).min(shown.lines.len().saturating_sub(1));
        }
        KeyCode::Up | KeyCode::Char('k') => shown.top = shown.top.saturating_sub(1),
        _ => {}
    }
    model.overlay = Some(Overlay::Clash(shown));
}

fn handle_prompt_key(model: &mut Model, mut prompt: Prompt, key: KeyEvent) {
    match key.code {
        KeyCode::Esc => {}
        KeyCode::Enter => {
            let text = prompt.field.text().trim().to_owned();
            match prompt.then {
                PromptPurpose::Annotate(_)
                | PromptPurpose::AnnotateAll
                | PromptPurpose::Assign
                | PromptPurpose::Override(_)
                | PromptPurpose::Forget(_)
                | PromptPurpose::AcknowledgeFor(_)
                    if text.is_empty() => {}
                PromptPurpose::Annotate(ids) => confirm::confirm_note(model, &ids, &text),
                PromptPurpose::AnnotateAll => {
                    bulk::begin_for_events(model, EventTransition::Note(text));
                }
                PromptPurpose::Assign if text == events::NOBODY => {
                    confirm::confirm_assign(model, String::new());
                }
                PromptPurpose::Assign => confirm::confirm_assign(model, text),
                PromptPurpose::Override(_) | PromptPurpose::AcknowledgeFor(_) => {
                    let then = on_call::parse_answer(model, &prompt.then, &text);
                    submit_prompt(model, prompt, then);
                }
                PromptPurpose::Forget(ref heartbeat) => {
                    let then = heartbeats::forget_expectation(model, heartbeat, &text);
                    submit_prompt(model, prompt, then);
                }
                PromptPurpose::Search => navigate::search(model, text),
                PromptPurpose::Document { title, fields } => {
                    report::with_document(model, title, fields, text);
                }
            }
        }
        _ => {
            let offered = prompt.suggestions().next().map(str::to_owned);
            match offered.filter(|_| key.code == KeyCode::Tab) {
                Some(offered) => prompt.field = TextField::new(offered),
                None => drop(prompt.field.press(key)),
            }
            model.overlay = Some(Overlay::Prompt(prompt));
        }
    }
}

fn submit_prompt(model: &mut Model, prompt: Prompt, then: Result<Consequence, String>) {
    match then {
        Ok(then) => execute(model, then),
        Err(message) => {
            model.show_notice(Token::Bad, message);
            model.overlay = Some(Overlay::Prompt(prompt));
        }
    }
}

fn handle_pick_key(model: &mut Model, mut pick: Picker, key: KeyEvent) {
    match key.code {
        KeyCode::Esc => return,
        KeyCode::Enter => {
            let value = pick.value().unwrap_or_default();
            return match &pick.purpose {
                PickerPurpose::Event => report::with_event(model, &value),
                PickerPurpose::Columns => screen::set_columns(model, pick.chosen),
                PickerPurpose::Names => forms::apply_pick(model, pick.chosen),
                PickerPurpose::Choice => forms::apply_choice(model, pick),
                PickerPurpose::Line(format) => {
                    line_picks::handle_choice(model, *format, &pick.chosen);
                }
                PickerPurpose::Wait(targets) => line_picks::write_step(model, targets, &value),
                PickerPurpose::HandOff(names) => line_picks::write_layer(model, names, &value),
            };
        }
        KeyCode::Char(' ') | KeyCode::Tab if pick.has_marks() => pick.toggle(),
        KeyCode::Down => pick.cursor += 1,
        KeyCode::Up => pick.cursor = pick.cursor.saturating_sub(1),
        _ => drop(pick.needle.press(key)),
    }
    pick.cursor = pick
        .cursor
        .min(pick.matching_items().len().saturating_sub(1));
    model.overlay = Some(Overlay::Picker(pick));
}

fn handle_menu_key(model: &mut Model, mut menu: Menu, key: KeyEvent) {
    let last = menu.items.len().saturating_sub(1);
    let at = match key.code {
        KeyCode::Esc | KeyCode::Char('q') => return,
        KeyCode::Enter => Some(menu.cursor),
        KeyCode::Char(typed) => menu.items.iter().position(|item| item.key == typed),
        _ => None,
    };
    if let Some(at) = at.filter(|at| *at <= last) {
        return match menu.items.swap_remove(at).what {
            MenuAction::Field(field) => navigate::open_grouped(model, &field),
            MenuAction::View(name) => views::show_view(model, &name),
            MenuAction::Open(url) => outside::open_url(model, url),
            what => copy::run_menu_action(model, what),
        };
    }
    match key.code {
        KeyCode::Down | KeyCode::Tab => menu.cursor = (menu.cursor + 1).min(last),
        KeyCode::Up | KeyCode::BackTab => menu.cursor = menu.cursor.saturating_sub(1),
        _ => {}
    }
    model.overlay = Some(Overlay::Menu(menu));
}

pub(super) fn open_target(model: &mut Model, target: PaletteTarget) {
    match target {
        PaletteTarget::Act(action) => model.follow.push_back(action),
        PaletteTarget::ActOn(route, action) => {
            navigate::go_to_route(model, route);
            model.follow.push_back(action);
        }
        PaletteTarget::Go(route) => navigate::go_to_route(model, route),
        PaletteTarget::Theme(theme) => {
            model.theme = theme;
            let words = format!(
                "theme {}; set `theme` in bellwether.toml to keep it",
                theme.as_str()
            );
            model.show_notice(Token::Info, words);
        }
        PaletteTarget::Sort(sort) => {
            let sorted = model.set_sort(sort);
            screen::apply_sort(model, sorted);
        }
        PaletteTarget::Filter(filter) => match navigate::check_filter(model, &filter) {
            Ok(()) => {
                let route = model.page.route.clone();
                model.remember_filter(&route, &filter);
                navigate::set_filter(model, filter);
            }
            Err(message) => model.show_notice(Token::Bad, message),
        },
        PaletteTarget::List(route, filter) => {
            match navigate::validate_filter_text(model, &route, &filter) {
                Ok(()) => {
                    model.remember_filter(&route, &filter);
                    navigate::open_filtered(model, route, filter);
                }
                Err(message) => model.show_notice(Token::Bad, message),
            }
        }
        PaletteTarget::Silence(filter, end) => silencing::silence_typed(model, &filter, &end),
        PaletteTarget::Context(name) => forms::quit_to_context(model, name),
        PaletteTarget::View(name) => views::show_view(model, &name),
        PaletteTarget::Group(field) => navigate::open_grouped(model, &field),
        PaletteTarget::Run(at) => outside::run_command(model, at),
        PaletteTarget::Type(_) => {}
    }
}

fn handle_palette_key(model: &mut Model, mut palette: Palette, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => return,
        KeyCode::Enter => {
            let item = palette.items(model).into_iter().nth(palette.cursor);
            let Some(item) = item else {
                model.overlay = Some(Overlay::Palette(palette));
                return;
            };
            return match (item.refusal, item.target) {
                (Some(reason), _) => {
                    model.show_notice(Token::Warning, format!("{}: {reason}", item.title));
                }
                (None, PaletteTarget::Type(typed)) => {
                    palette.set_text(typed);
                    model.overlay = Some(Overlay::Palette(palette));
                }
                (None, target) => open_target(model, target),
            };
        }
        KeyCode::Down => palette.cursor += 1,
        KeyCode::Up => palette.cursor = palette.cursor.saturating_sub(1),
        KeyCode::Char('n') if control => palette.cursor += 1,
        KeyCode::Char('p') if control => palette.cursor = palette.cursor.saturating_sub(1),
        KeyCode::Tab => {
            let items = palette.items(model);
            if let Some(item) = items.get(palette.cursor) {
                palette.set_text(item.completion_text());
            }
        }
        KeyCode::PageDown => palette.cursor += 10,
        KeyCode::PageUp => palette.cursor = palette.cursor.saturating_sub(10),
        _ => {
            if palette.field.press(key) {
                palette.cursor = 0;
            }
        }
    }
    palette.cursor = palette
        .cursor
        .min(palette.items(model).len().saturating_sub(1));
    model.overlay = Some(Overlay::Palette(palette));
}
