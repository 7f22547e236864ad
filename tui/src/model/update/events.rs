//! Notes on events, and changes of all events that match a filter.

use super::bulk;
use crate::{
    client::StatusChange,
    model::{
        Model,
        bulk::EventTransition,
        field::TextField,
        overlay::{Overlay, Prompt, PromptPurpose},
    },
};

pub(super) fn prompt_annotate(model: &mut Model) {
    let ids = model.selected_targets();
    match ids.len() {
        0 => {}
        1 => prompt_note(model, "Add a note", PromptPurpose::Annotate(ids)),
        count => {
            let title = format!("Add a note to {count} occurrences");
            prompt_note(model, &title, PromptPurpose::Annotate(ids));
        }
    }
}

pub(super) const NOBODY: &str = "-";

pub(super) fn prompt_assign(model: &mut Model) {
    let ids = model.selected_targets();
    let before: Vec<_> = ids
        .iter()
        .filter_map(|id| Some(model.occurrence_status(id)?.assignee))
        .collect();
    let [first, others @ ..] = &before[..] else {
        return;
    };
    let field = if others.iter().all(|it| it == first) {
        TextField::new(first.clone())
    } else {
        TextField::default()
    };
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: "Assign to".to_owned(),
        help: "client name, or - to unassign; Tab completes, Enter assigns",
        field,
        offers: model.assignees(),
        then: PromptPurpose::Assign,
    }));
}

fn prompt_note(model: &mut Model, title: &str, then: PromptPurpose) {
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: title.to_owned(),
        help: "others see it with your client name; Enter continues",
        field: TextField::default(),
        offers: Vec::new(),
        then,
    }));
}

pub(super) fn set_all_statuses(model: &mut Model, change: StatusChange) {
    bulk::begin_for_events(model, EventTransition::Set(change));
}

pub(super) fn annotate_all_events(model: &mut Model) {
    prompt_note(
        model,
        "Add a note to all of them",
        PromptPurpose::AnnotateAll,
    );
}
