//! Execution of actions.

use super::{
    bulk, confirm, copy, events, forms, grouped, heartbeats, navigate, on_call, outside, report,
    screen, silencing, views,
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
pub(super) fn run_action(model: &mut Model, action: Action) {
    let entry = keymap::entry_for(action);
    if let Err(reason) = access::check_allowed(model, entry) {
        return model.show_notice(Token::Warning, format!("{}: {reason}", entry.name));
    }
    act_on_selected(model, action);
}

fn acknowledge(model: &mut Model) {
    if model.group().is_some() {
        return bulk::begin_for_group(model, StatusChange::Acknowledged(true));
    }
    confirm::confirm_acknowledge(model, true);
}

fn set_status(model: &mut Model, status: Status) {
    if model.group().is_some() {
        return bulk::begin_for_group(model, StatusChange::Status(status));
    }
    confirm::confirm_status(model, status);
}

fn assign_to_caller(model: &mut Model) {
    match &model.caller {
        Some(caller) if model.group().is_some() => {
            let change = StatusChange::Assigned(caller.name.clone());
            bulk::begin_for_group(model, change);
        }
        _ => confirm::toggle_own_assignment(model),
    }
}

#[expect(clippy::too_many_lines, reason = "a table: a row for each action")]
fn act_on_selected(model: &mut Model, action: Action) {
    match action {
        Action::Quit => forms::quit_from_form(model),
        Action::Suspend => model.effects.push(Effect::Suspend),
        Action::ToggleMouse => screen::toggle_mouse(model),
        Action::Help => screen::open_palette(model, true),
        Action::Palette => screen::open_palette(model, false),
        Action::RetryNow => screen::reconnect_now(model),
        Action::ToggleAges => model.shows_ages = !model.shows_ages,
        Action::ToggleSplit => screen::toggle_split(model),
        Action::Show(screen) => navigate::open_screen(model, Route::Screen(screen)),
        Action::Go(kind) => navigate::open_screen(model, Route::List(kind)),
        Action::GoCriticals => {
            let filter = "severity=critical".to_owned();
            navigate::open_filtered(model, Route::EVENTS, filter);
        }
        Action::LongerCharts => screen::cycle_chart_period(model),
        Action::Search => screen::open_search(model),
        Action::NextMatch => navigate::next_match(model, true),
        Action::MatchBefore => navigate::next_match(model, false),
        Action::Back => screen::go_back(model),
        Action::PageBefore => navigate::go_back(model),
        Action::Forward => navigate::go_forward(model),
        Action::Up => navigate::move_cursor(model, -1),
        Action::Down => navigate::move_cursor(model, 1),
        Action::Top => navigate::move_cursor(model, isize::MIN / 2),
        Action::Bottom => navigate::go_to_end(model),
        Action::PageUp => navigate::move_cursor(model, -screen::page_rows(model)),
        Action::PageDown => navigate::move_cursor(model, screen::page_rows(model)),
        Action::Open => screen::open_selected(model),
        Action::NextLink => navigate::next_link(model),
        Action::NextTab => screen::next_tab(model),
        Action::Filter => screen::open_filter(model),
        Action::Mark => screen::toggle_mark(model),
        Action::MarkAll => screen::toggle_all_marks(model),
        Action::Copy => copy::copy_id(model),
        Action::CopyAs => copy::open_copy_menu(model),
        Action::OpenLink => outside::open_link(model),
        Action::Pause => screen::toggle_list_pause(model),
        Action::Follow => screen::follow_newest(model),
        Action::Sort => screen::cycle_sort(model),
        Action::Columns => screen::open_column_picker(model),
        Action::OpenOnly => screen::open_only(model),
        Action::ChooseView => views::choose_view(model),
        Action::NextView => views::next(model),
        Action::SaveView => views::save_view(model),
        Action::GroupBy => grouped::choose_grouping(model),
        Action::New => forms::new(model),
        Action::Edit => forms::edit_selected(model),
        Action::EditText => forms::edit_text(model),
        Action::Duplicate => forms::duplicate_selected(model),
        Action::TriggerFromEvent => forms::trigger_from_event(model),
        Action::Delete => confirm::confirm_delete(model),
        Action::Toggle => confirm::confirm_toggle(model),
        Action::Revoke => confirm::confirm_revoke(model),
        Action::Acknowledge => acknowledge(model),
        Action::Unacknowledge => confirm::confirm_acknowledge(model, false),
        Action::CloseEvent => set_status(model, Status::Closed),
        Action::Suppress => set_status(model, Status::Suppressed),
        Action::Reopen => confirm::confirm_status(model, Status::Open),
        Action::Mine => assign_to_caller(model),
        Action::Assign => events::prompt_assign(model),
        Action::Undo => confirm::confirm_undo(model),
        Action::Release => confirm::confirm_release(model),
        Action::AcknowledgeResponse => on_call::confirm_acknowledge(model),
        Action::AcknowledgeFor => on_call::prompt_acknowledge_for(model),
        Action::Escalate => on_call::confirm_escalate(model),
        Action::Override => on_call::prompt_override(model),
        Action::Feed => on_call::confirm_show_feed(model),
        Action::RevokeFeed => on_call::revoke_feed(model),
        Action::ForgetExpectation => heartbeats::prompt_forget(model),
        Action::RotateHeartbeat => heartbeats::confirm_rotate(model),
        Action::RunDrill => on_call::confirm_run_drill(model),
        Action::AcknowledgeGroup => {
            confirm::confirm_group_change(model, &StatusChange::Acknowledged(true));
        }
        Action::CloseGroup => {
            confirm::confirm_group_change(model, &StatusChange::Status(Status::Closed));
        }
        Action::SuppressGroup => {
            confirm::confirm_group_change(model, &StatusChange::Status(Status::Suppressed));
        }
        Action::Handover => report::open_handover(model),
        Action::NextOnCall => on_call::next_tab(model),
        Action::NextState => screen::next_state(model),
        Action::SendAgain => bulk::begin_for_deliveries(model, Transition::SendAgain),
        Action::CancelDelivery => bulk::begin_for_deliveries(model, Transition::Cancel),
        Action::SendAllAgain => bulk::matching(model, Transition::SendAgain),
        Action::CancelAll => bulk::matching(model, Transition::Cancel),
        Action::Obligations => report::open_obligations(model),
        Action::History => report::open_history(model),
        Action::AcknowledgeAll => events::set_all_statuses(model, StatusChange::Acknowledged(true)),
        Action::CloseAll => events::set_all_statuses(model, StatusChange::Status(Status::Closed)),
        Action::SuppressAll => {
            events::set_all_statuses(model, StatusChange::Status(Status::Suppressed));
        }
        Action::AnnotateAll => events::annotate_all_events(model),
        Action::Annotate => events::prompt_annotate(model),
        Action::Silence => silencing::choose_silence(model),
        Action::Explain => screen::open_explanation(model),
        Action::Unfold => model.page.is_unfolded = !model.page.is_unfolded,
        Action::TestDestination => report::test_destination(model),
        Action::PauseDestination => confirm::confirm_pause(model),
        Action::DeadLetters => navigate::open_dead_letters(model),
        Action::TestContact => report::test_contact(model),
        Action::TestTrigger | Action::PreviewRule | Action::TestMapping => {
            report::run_stored(model);
        }
        Action::NoiseReport => report::open_noise(model),
        Action::NoiseBy => report::cycle_noise_grouping(model),
        Action::LongerTry => report::cycle_report_span(model),
        Action::TestWithEvent | Action::FormEvent => report::pick_event(model),
        Action::SendWaiting => confirm::confirm_send_waiting(model),
        Action::TestWithDocument => report::other_document(model),
        Action::FormNext => forms::move_focus(model, true),
        Action::FormPrevious => forms::move_focus(model, false),
        Action::FormLeave => forms::leave_form(model),
        Action::FormSave => forms::save_form(model),
        Action::FormTest => forms::test_draft(model),
        Action::FormFlip => forms::select_older_test(model),
        Action::FormCurl => forms::copy_curl(model),
        Action::FormBench => forms::switch_pane(model),
        Action::FormScrollUp => forms::scroll_bench(model, false),
        Action::FormScrollDown => forms::scroll_bench(model, true),
        Action::FormPart => forms::show_next_part(model),
        Action::FormDifferences => forms::toggle_differences(model),
        Action::FormText => forms::as_text(model),
        Action::FormReveal => forms::reveal_secret(model),
        Action::FormReference => forms::open_reference(model),
    }
}
