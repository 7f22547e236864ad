//! Execution of actions.

use super::{
    bulk, confirm, copy, events, forms, grouped, heartbeats, navigate, on_call, report, screen,
    silencing, views,
};
use crate::{
    client::StatusChange,
    data::{Status, Transition},
    keymap::{self, Action},
    model::{Model, access, message::Effect},
    route::Route,
    theme::Token,
};

/// Runs an action if it is allowed; otherwise shows the reason.
pub(super) fn run(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let entry = keymap::entry(action);
    if let Err(reason) = access::check_allowed(model, entry) {
        return model.show_notice(Token::Warning, format!("{}: {reason}", entry.name));
    }
    act(model, action, effects);
}

/// Acknowledges the group under the cursor, or the marked, selected or shown events.
fn acknowledge(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.group().is_some() {
        return bulk::group(model, StatusChange::Acknowledged(true), effects);
    }
    confirm::acknowledge(model, true, effects);
}

fn set(model: &mut Model, status: Status, effects: &mut Vec<Effect>) {
    if model.group().is_some() {
        return bulk::group(model, StatusChange::Status(status), effects);
    }
    confirm::status(model, status, effects);
}

fn assign_to_caller(model: &mut Model, effects: &mut Vec<Effect>) {
    match &model.caller {
        Some(caller) if model.group().is_some() => {
            let change = StatusChange::Assigned(caller.name.clone());
            bulk::group(model, change, effects);
        }
        _ => confirm::toggle_own_assignment(model, effects),
    }
}

#[expect(clippy::too_many_lines, reason = "a table: a row for each action")]
fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Quit => forms::quit(model),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::ToggleMouse => screen::toggle_mouse(model, effects),
        Action::Help => screen::palette(model, true),
        Action::Palette => screen::palette(model, false),
        Action::RetryNow => screen::retry_now(model, effects),
        Action::ToggleAges => model.shows_ages = !model.shows_ages,
        Action::ToggleSplit => screen::toggle_split(model),
        Action::GoOverview => navigate::open_screen(model, Route::Overview, effects),
        Action::GoOnCall => navigate::open_screen(model, Route::OnCall, effects),
        Action::GoEvents => navigate::open_screen(model, Route::Events, effects),
        Action::GoDeliveries => navigate::open_screen(model, Route::Deliveries, effects),
        Action::GoReference => navigate::open_screen(model, Route::Reference, effects),
        Action::Go(kind) => navigate::open_screen(model, Route::List(kind), effects),
        Action::GoCriticals => {
            let filter = "severity=critical".to_owned();
            navigate::open_filtered(model, Route::Events, filter, effects);
        }
        Action::LongerCharts => screen::cycle_chart_period(model, effects),
        Action::Search => screen::search(model),
        Action::NextMatch => navigate::next_match(model, true),
        Action::MatchBefore => navigate::next_match(model, false),
        Action::Back => screen::go_back(model, effects),
        Action::PageBefore => navigate::go_back(model, effects),
        Action::Forward => navigate::forward(model, effects),
        Action::Up => navigate::move_by(model, -1, effects),
        Action::Down => navigate::move_by(model, 1, effects),
        Action::Top => navigate::move_by(model, isize::MIN / 2, effects),
        Action::Bottom => navigate::go_to_end(model, effects),
        Action::PageUp => navigate::move_by(model, -screen::page(model), effects),
        Action::PageDown => navigate::move_by(model, screen::page(model), effects),
        Action::Open => screen::open(model, effects),
        Action::NextLink => navigate::next_link(model),
        Action::NextTab => screen::next_tab(model, effects),
        Action::Filter => screen::filter(model),
        Action::Mark => screen::mark(model, effects),
        Action::MarkAll => screen::mark_all(model),
        Action::Copy => copy::id(model, effects),
        Action::CopyAs => copy::choose(model),
        Action::Pause => screen::pause(model),
        Action::Follow => screen::follow(model, effects),
        Action::Sort => screen::sort(model, effects),
        Action::Columns => screen::columns(model),
        Action::OpenOnly => screen::open_only(model, effects),
        Action::ChooseView => views::choose(model),
        Action::NextView => views::next(model, effects),
        Action::SaveView => views::save(model, effects),
        Action::GroupBy => grouped::choose(model),
        Action::New => forms::new(model, effects),
        Action::Edit => forms::edit(model, effects),
        Action::EditText => forms::edit_text(model, effects),
        Action::Duplicate => forms::duplicate(model, effects),
        Action::TriggerFromEvent => forms::trigger_from_event(model, effects),
        Action::Delete => confirm::delete(model),
        Action::Toggle => confirm::toggle(model, effects),
        Action::Revoke => confirm::revoke(model),
        Action::Acknowledge => acknowledge(model, effects),
        Action::Unacknowledge => confirm::acknowledge(model, false, effects),
        Action::CloseEvent => set(model, Status::Closed, effects),
        Action::Suppress => set(model, Status::Suppressed, effects),
        Action::Reopen => confirm::status(model, Status::Open, effects),
        Action::Mine => assign_to_caller(model, effects),
        Action::Assign => events::assign(model),
        Action::Undo => confirm::undo(model, effects),
        Action::Release => confirm::release(model),
        Action::AcknowledgeResponse => on_call::acknowledge(model, effects),
        Action::AcknowledgeFor => on_call::prompt_acknowledge_for(model),
        Action::Escalate => on_call::escalate(model),
        Action::Override => on_call::prompt_override(model),
        Action::Feed => on_call::feed(model),
        Action::RevokeFeed => on_call::revoke_feed(model),
        Action::ForgetExpectation => heartbeats::prompt_forget(model),
        Action::RotateHeartbeat => heartbeats::rotate(model),
        Action::AcknowledgeGroup => confirm::group(model, &StatusChange::Acknowledged(true)),
        Action::CloseGroup => confirm::group(model, &StatusChange::Status(Status::Closed)),
        Action::SuppressGroup => confirm::group(model, &StatusChange::Status(Status::Suppressed)),
        Action::Handover => report::handover(model, effects),
        Action::NextOnCall => on_call::next_tab(model, effects),
        Action::NextState => screen::next_state(model, effects),
        Action::SendAgain => bulk::deliveries(model, Transition::SendAgain, effects),
        Action::CancelDelivery => bulk::deliveries(model, Transition::Cancel, effects),
        Action::SendAllAgain => bulk::matching(model, Transition::SendAgain, effects),
        Action::CancelAll => bulk::matching(model, Transition::Cancel, effects),
        Action::Obligations => report::obligations(model, effects),
        Action::History => report::history(model, effects),
        Action::AcknowledgeAll => events::set_all(model, StatusChange::Acknowledged(true), effects),
        Action::CloseAll => events::set_all(model, StatusChange::Status(Status::Closed), effects),
        Action::SuppressAll => {
            events::set_all(model, StatusChange::Status(Status::Suppressed), effects);
        }
        Action::AnnotateAll => events::annotate_all(model),
        Action::Annotate => events::annotate(model),
        Action::Silence => silencing::choose(model, effects),
        Action::Explain => screen::explain(model, effects),
        Action::Unfold => model.page.is_unfolded = !model.page.is_unfolded,
        Action::TestDestination => report::test_destination(model, effects),
        Action::PauseDestination => confirm::pause(model),
        Action::DeadLetters => navigate::dead_letters(model, effects),
        Action::TestContact => report::test_contact(model, effects),
        Action::TestTrigger | Action::PreviewRule | Action::TestMapping => {
            report::run_stored(model, effects);
        }
        Action::NoiseReport => report::noise(model, effects),
        Action::NoiseBy => report::noise_by(model, effects),
        Action::LongerTry => report::cycle_report_span(model, effects),
        Action::TestWithEvent | Action::FormEvent => report::pick_event(model),
        Action::SendWaiting => confirm::send_waiting(model, effects),
        Action::TestWithDocument => report::other_document(model),
        Action::FormNext => forms::step(model, true),
        Action::FormPrevious => forms::step(model, false),
        Action::FormLeave => forms::leave(model, effects),
        Action::FormSave => forms::save(model, effects),
        Action::FormTest => forms::test(model, effects),
        Action::FormFlip => forms::select_older_test(model),
        Action::FormCurl => forms::copy_curl(model, effects),
        Action::FormBench => forms::switch_pane(model, effects),
        Action::FormScrollUp => forms::scroll_bench(model, false),
        Action::FormScrollDown => forms::scroll_bench(model, true),
        Action::FormPart => forms::show_next_part(model),
        Action::FormDifferences => forms::toggle_differences(model),
        Action::FormText => forms::as_text(model, effects),
        Action::FormReveal => forms::reveal(model),
        Action::FormReference => forms::reference(model, effects),
    }
}
