//! Permission checks for actions, with the reason for a refusal.

use super::{Connection, Model, form::Form, inquiry::Inquiry, sort};
use crate::{
    data::{Kind, Label, role_includes},
    keymap::{Action, ActionPlace, Entry, Requirement},
    kind::{self, FieldKind},
    route::Route,
};

pub(crate) fn check_allowed(model: &Model, entry: &Entry) -> Result<(), String> {
    let (role, writes) = match entry.need {
        Requirement::None => return Ok(()),
        Requirement::Role(role) => (role, false),
        // To change a resource, the role of its kind is required.
        Requirement::Write(role) if changes_single_resource(entry.action) => {
            let kind = model.page.route.kind();
            (kind.map_or(role, |kind| kind::spec(kind).role), true)
        }
        Requirement::Write(role) => (role, true),
    };
    if writes && model.read_only {
        return Err("this console is read-only".to_owned());
    }
    if let Some(caller) = &model.caller
        && !role_includes(caller.role, role)
    {
        let (own, needed) = (caller.role.label(), role.label());
        return Err(format!("requires the role `{needed}`; this key is `{own}`"));
    }
    match &model.link {
        Connection::Up => Ok(()),
        // Forms can be opened while disconnected, because they are submitted later.
        _ if !writes || opens_form(entry) => Ok(()),
        Connection::Connecting => Err("not connected yet".to_owned()),
        Connection::Down { .. } => Err("not connected; changes are not possible now".to_owned()),
    }
}

fn changes_single_resource(action: Action) -> bool {
    use Action::{Delete, Duplicate, Edit, EditText, New};
    matches!(action, New | Edit | EditText | Duplicate | Delete)
}

fn opens_form(entry: &Entry) -> bool {
    matches!(
        entry.action,
        Action::New
            | Action::Edit
            | Action::EditText
            | Action::Duplicate
            | Action::TriggerFromEvent
            | Action::FormTest
    )
}

/// Whether an action has a target; otherwise it is neither hinted nor listed.
pub(crate) fn has_target(model: &Model, entry: &Entry) -> bool {
    let Some(form) = model.page.form() else {
        return match entry.action {
            Action::Back => {
                !model.back.is_empty() || model.page.list.filter != model.page.list.given
            }
            Action::NextMatch | Action::MatchBefore => {
                model.page.route != Route::REFERENCE && !model.page.list.filter.is_empty()
            }
            Action::Undo => model.can_undo(),
            Action::PageBefore => !model.back.is_empty(),
            Action::Forward => !model.forward.is_empty(),
            // Sorting requires more than one column.
            Action::Sort => {
                sort::sortable_columns(&model.store, &model.page.route).len() > 1
                    && model.page.list.count > 0
            }
            Action::TestWithEvent => matches!(
                model.page.inquiry(),
                Some(Inquiry::Destination { .. } | Inquiry::Rule { .. })
            ),
            Action::TestWithDocument => {
                matches!(model.page.inquiry(), Some(Inquiry::Mapping { .. }))
            }
            Action::TestDestination if model.page.route == Route::Report => !matches!(
                model.page.inquiry(),
                Some(Inquiry::Noise(_) | Inquiry::Handover { .. })
            ),
            Action::NoiseBy => matches!(model.page.inquiry(), Some(Inquiry::Noise(_))),
            Action::LongerTry => matches!(
                model.page.inquiry(),
                Some(Inquiry::Trigger { .. } | Inquiry::Handover { .. })
            ),
            Action::AcknowledgeResponse | Action::AcknowledgeFor | Action::Escalate => {
                model.target_name(Kind::Response).is_some()
            }
            Action::Override => model.target_name(Kind::Schedule).is_some(),
            Action::SendWaiting => model.tested_backlog().is_some(),
            Action::Open if matches!(model.page.route, Route::List(kind) if !kind.has_page()) => {
                false
            }
            Action::Open if model.page.route == Route::ON_CALL => model.link_at_cursor().is_some(),
            Action::Columns => model.page.list.count > 0,
            Action::CopyAs => model.page.route != Route::REFERENCE,
            Action::Copy if model.page.route == Route::EVENTS && model.page.list.count == 0 => {
                model.first_steps().is_some()
            }
            Action::Filter if matches!(model.page.route, Route::List(_)) => {
                model.page.list.count > 0 || !model.page.list.filter.is_empty()
            }
            Action::LongerCharts => model.shows_wall(),
            Action::New
            | Action::Filter
            | Action::OpenOnly
            | Action::Pause
            | Action::Follow
            | Action::NextState
            | Action::NextOnCall => true,
            _ => {
                let everywhere = entry.places.contains(&ActionPlace::Anywhere);
                everywhere || !model.page.route.is_list() || model.page.list.count > 0
            }
        };
    };
    form_has_target(form, entry.action)
}

/// Whether an action of forms has a target in this form.
fn form_has_target(form: &Form, action: Action) -> bool {
    let has = |wanted: fn(&FieldKind) -> bool| {
        let shown = (0..form.specs.len()).filter(|index| form.is_shown(*index));
        shown.map(|index| &form.specs[index].kind).any(wanted)
    };
    match action {
        Action::FormFlip => form.bench.count() > 1,
        Action::FormEvent
        | Action::FormCurl
        | Action::FormBench
        | Action::FormScrollUp
        | Action::FormScrollDown
        | Action::FormPart => form.has_bench(),
        Action::FormDifferences => form.bench.has_differences(),
        Action::FormReveal => has(|kind| *kind == FieldKind::Secret),
        Action::FormText => kind::spec(form.kind).nested,
        Action::FormTest => matches!(
            form.kind,
            Kind::Trigger | Kind::Destination | Kind::Rule | Kind::Mapping
        ),
        _ => true,
    }
}
