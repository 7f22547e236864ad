//! What each action does.

use super::{
    bulk, confirm, copy, events, forms, grouped, navigate, report, screen, silencing, views,
};
use crate::{
    client::StatusChange,
    data::{Kind, Status, Transition},
    keymap::{self, Action},
    model::{Model, access, form::ClauseInput, message::Effect},
    route::Route,
    theme::Token,
};

/// What an action does to the model, and what it asks of the world.
type Run = fn(&mut Model, &mut Vec<Effect>);

/// Takes an action if it is allowed; returns why when it is not.
pub(super) fn run(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let entry = keymap::entry(action);
    if let Err(reason) = access::refusal(model, entry) {
        return model.say(Token::Warning, format!("{}: {reason}", entry.title));
    }
    of(action)(model, effects);
}

/// Acknowledges all of the group under the cursor, or what is marked, selected or shown.
fn acknowledge(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.group().is_some() {
        return bulk::group(model, StatusChange::Acknowledged(true), effects);
    }
    confirm::acknowledge(model, true, effects);
}

/// Gives all of the group under the cursor another status, or what is marked, selected or shown.
fn set(model: &mut Model, status: Status, effects: &mut Vec<Effect>) {
    if model.group().is_some() {
        return bulk::group(model, StatusChange::Status(status), effects);
    }
    confirm::status(model, status, effects);
}

/// Assigns all of the group under the cursor, or what is marked, selected or shown, to the caller.
fn mine(model: &mut Model, effects: &mut Vec<Effect>) {
    match &model.caller {
        Some(caller) if model.group().is_some() => {
            let change = StatusChange::Assigned(caller.name.clone());
            bulk::group(model, change, effects);
        }
        _ => confirm::mine(model, effects),
    }
}

#[expect(clippy::too_many_lines, reason = "a table: a row for each action")]
fn of(action: Action) -> Run {
    match action {
        Action::Quit => |model, _| forms::quit(model),
        Action::Suspend => |_, effects| effects.push(Effect::Suspend),
        Action::ToggleMouse => screen::toggle_mouse,
        Action::Help => |model, _| screen::palette(model, true),
        Action::Palette => |model, _| screen::palette(model, false),
        Action::RetryNow => screen::retry_now,
        Action::ToggleAges => |model, _| model.shows_ages = !model.shows_ages,
        Action::ToggleSplit => |model, _| screen::toggle_split(model),
        Action::GoOverview => |model, effects| navigate::go(model, Route::Overview, effects),
        Action::GoEvents => |model, effects| navigate::go(model, Route::Events, effects),
        Action::GoTriggers => {
            |model, effects| navigate::go(model, Route::List(Kind::Trigger), effects)
        }
        Action::GoDestinations => {
            |model, effects| navigate::go(model, Route::List(Kind::Destination), effects)
        }
        Action::GoRules => |model, effects| navigate::go(model, Route::List(Kind::Rule), effects),
        Action::GoDeliveries => |model, effects| navigate::go(model, Route::Deliveries, effects),
        Action::GoClients => {
            |model, effects| navigate::go(model, Route::List(Kind::Client), effects)
        }
        Action::GoSilences => {
            |model, effects| navigate::go(model, Route::List(Kind::Silence), effects)
        }
        Action::GoCalendars => {
            |model, effects| navigate::go(model, Route::List(Kind::Calendar), effects)
        }
        Action::GoInhibitions => {
            |model, effects| navigate::go(model, Route::List(Kind::Inhibition), effects)
        }
        Action::GoMappings => {
            |model, effects| navigate::go(model, Route::List(Kind::Mapping), effects)
        }
        Action::GoGroups => |model, effects| navigate::go(model, Route::List(Kind::Group), effects),
        Action::GoPending => {
            |model, effects| navigate::go(model, Route::List(Kind::Pending), effects)
        }
        Action::GoViews => |model, effects| navigate::go(model, Route::List(Kind::View), effects),
        Action::GoMap => |model, effects| navigate::go(model, Route::Map, effects),
        Action::GoReference => |model, effects| navigate::go(model, Route::Reference, effects),
        Action::GoCriticals => |model, effects| {
            let filter = "severity=critical".to_owned();
            navigate::go_filtered(model, Route::Events, filter, effects);
        },
        Action::LongerCharts => screen::longer_charts,
        Action::MapLeft => |model, _| navigate::step(model, -1),
        Action::MapRight => |model, _| navigate::step(model, 1),
        Action::MapAround => screen::map_around,
        Action::Search => |model, _| screen::search(model),
        Action::NextMatch => |model, _| navigate::next_match(model, true),
        Action::MatchBefore => |model, _| navigate::next_match(model, false),
        Action::Back => screen::back,
        Action::PageBefore => navigate::back,
        Action::Forward => navigate::forward,
        Action::Up => |model, effects| navigate::move_by(model, -1, effects),
        Action::Down => |model, effects| navigate::move_by(model, 1, effects),
        Action::Top => |model, effects| navigate::move_by(model, isize::MIN / 2, effects),
        Action::Bottom => navigate::to_end,
        Action::PageUp => |model, effects| navigate::move_by(model, -screen::page(model), effects),
        Action::PageDown => |model, effects| navigate::move_by(model, screen::page(model), effects),
        Action::Open => screen::open,
        Action::NextLink => |model, _| navigate::next_link(model),
        Action::NextTab => screen::next_tab,
        Action::Filter => |model, _| screen::filter(model),
        Action::Mark => screen::mark,
        Action::MarkAll => |model, _| screen::mark_all(model),
        Action::Copy => copy::id,
        Action::CopyAs => |model, _| copy::choose(model),
        Action::Pause => |model, _| screen::pause(model),
        Action::Sort => screen::sort,
        Action::OpenOnly => screen::open_only,
        Action::ChooseView => |model, _| views::choose(model),
        Action::NextView => views::next,
        Action::SaveView => views::save,
        Action::GroupBy => |model, _| grouped::choose(model),
        Action::New => forms::new,
        Action::Edit => forms::edit,
        Action::EditText => forms::edit_text,
        Action::Duplicate => forms::duplicate,
        Action::TriggerFromEvent => forms::trigger_from_event,
        Action::Delete => |model, _| confirm::delete(model),
        Action::Toggle => confirm::toggle,
        Action::Revoke => |model, _| confirm::revoke(model),
        Action::Acknowledge => acknowledge,
        Action::Unacknowledge => |model, effects| confirm::acknowledge(model, false, effects),
        Action::CloseEvent => |model, effects| set(model, Status::Closed, effects),
        Action::Suppress => |model, effects| set(model, Status::Suppressed, effects),
        Action::Reopen => |model, effects| confirm::status(model, Status::Open, effects),
        Action::Mine => mine,
        Action::Assign => |model, _| events::assign(model),
        Action::Undo => confirm::undo,
        Action::Release => |model, _| confirm::release(model),
        Action::AcknowledgeGroup => {
            |model, _| confirm::group(model, StatusChange::Acknowledged(true))
        }
        Action::CloseGroup => {
            |model, _| confirm::group(model, StatusChange::Status(Status::Closed))
        }
        Action::SuppressGroup => {
            |model, _| confirm::group(model, StatusChange::Status(Status::Suppressed))
        }
        Action::NextState => screen::next_state,
        Action::SendAgain => {
            |model, effects| bulk::deliveries(model, Transition::SendAgain, effects)
        }
        Action::CancelDelivery => {
            |model, effects| bulk::deliveries(model, Transition::Cancel, effects)
        }
        Action::SendAllAgain => {
            |model, effects| bulk::matching(model, Transition::SendAgain, effects)
        }
        Action::CancelAll => |model, effects| bulk::matching(model, Transition::Cancel, effects),
        Action::Obligations => report::obligations,
        Action::History => report::history,
        Action::AcknowledgeAll => {
            |model, effects| events::set_all(model, StatusChange::Acknowledged(true), effects)
        }
        Action::CloseAll => {
            |model, effects| events::set_all(model, StatusChange::Status(Status::Closed), effects)
        }
        Action::SuppressAll => |model, effects| {
            events::set_all(model, StatusChange::Status(Status::Suppressed), effects);
        },
        Action::AnnotateAll => |model, _| events::annotate_all(model),
        Action::Annotate => |model, _| events::annotate(model),
        Action::Silence => silencing::choose,
        Action::Explain => screen::explain,
        Action::Unfold => |model, _| model.page.is_unfolded = !model.page.is_unfolded,
        Action::TestDestination => report::test_destination,
        Action::PauseDestination => |model, _| confirm::pause(model),
        Action::TestTrigger | Action::PreviewRule | Action::TestMapping => report::stored,
        Action::LongerTry => report::longer,
        Action::TestWithEvent => |model, _| report::pick_event(model),
        Action::TestWithDocument => |model, _| report::other_document(model),
        Action::FormNext => |model, _| forms::step(model, true),
        Action::FormPrevious => |model, _| forms::step(model, false),
        Action::FormLeave => forms::leave,
        Action::FormSave => |model, _| forms::save(model),
        Action::FormTest => forms::test,
        Action::FormText => forms::as_text,
        Action::FormReveal => |model, _| forms::reveal(model),
        Action::FormReference => forms::reference,
        Action::FormAddClause => |model, _| forms::clause(model, ClauseInput::add),
        Action::FormRemoveClause => {
            |model, _| forms::clause(model, |clause, part| Ok(clause.remove(part)))
        }
        Action::FormNegateClause => {
            |model, _| forms::clause(model, |clause, part| Ok(clause.negate(part)))
        }
        Action::FormNestClause => |model, _| forms::clause(model, ClauseInput::nest),
        Action::FormUnnestClause => |model, _| forms::clause(model, ClauseInput::unnest),
    }
}
