//! A property of lists: a selected row stays selected as long as it exists, whatever else changes.

use super::*;
use crate::model::{overlay::PaletteTarget, sort};

#[derive(Clone, Debug)]
enum Step {
    /// Occurrences are added or updated, and some are removed.
    Stream(Vec<(u8, i64)>, Vec<u8>),
    /// The list is read again, with these rows.
    Read(Vec<u8>),
    Sort(usize),
    Filter(&'static str),
    Pause,
    Resize(u16),
    Select(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_u8..12;
    prop_oneof![
        (
            prop::collection::vec((id.clone(), 0_i64..40), 0..5),
            prop::collection::vec(id.clone(), 0..3),
        )
            .prop_map(|(rows, left)| Step::Stream(rows, left)),
        prop::collection::btree_set(id.clone(), 0..10)
            .prop_map(|ids| Step::Read(ids.into_iter().collect())),
        (0_usize..8).prop_map(Step::Sort),
        prop::sample::select(vec!["", "t", "1", "nothing"]).prop_map(Step::Filter),
        Just(Step::Pause),
        (8_u16..40).prop_map(Step::Resize),
        id.prop_map(Step::Select),
    ]
}

fn triggers(ids: &[u8]) -> Vec<Object> {
    let one = |id: &u8| Object {
        kind: Kind::Trigger,
        json: json!({
            "name": format!("t{id}"),
            "ruleNames": vec!["r"; usize::from(*id % 3)],
            "recentNotificationCount": id % 4,
        }),
    };
    ids.iter().map(one).collect()
}

fn apply(model: &mut Model, step: &Step) {
    let on_events = model.page.route == Route::EVENTS;
    let msg = match step {
        Step::Stream(rows, left) => {
            let server_update = ServerUpdate::Watched {
                generation: model.store.events.generation,
                rows: rows
                    .iter()
                    .map(|(id, seen)| EventRow {
                        last_seen_ms: *seen,
                        ..row(i64::from(*id))
                    })
                    .collect(),
                left: left.iter().map(|id| format!("e{id}:1")).collect(),
                token: "token".to_owned(),
                gap: false,
            };
            Msg::Server(server_update)
        }
        Step::Read(ids) => {
            let effects = update(model, Msg::Act(keymap::Action::RetryNow));
            for effect in effects {
                if let Effect::Send(Command::Call(ticket, call)) = effect
                    && call.method == "ListTriggers"
                {
                    let answer = Ok(listing(Kind::Trigger, &triggers(ids)));
                    update(model, Msg::Server(ServerUpdate::CallResult(ticket, answer)));
                }
            }
            return;
        }
        Step::Sort(at) => {
            let columns = sort::sortable_columns(&model.store, &model.page.route);
            let column = columns[at % columns.len()].title;
            Msg::Find(PaletteTarget::Sort(sort::Sort {
                column,
                descending: at % 2 == 0,
            }))
        }
        Step::Filter(text) if !on_events => Msg::Find(PaletteTarget::Filter((*text).to_owned())),
        Step::Filter(_) => return,
        Step::Pause => Msg::Act(keymap::Action::Pause),
        Step::Resize(rows) => Msg::Resize(80, *rows),
        Step::Select(id) => {
            let id = if on_events {
                format!("e{id}:1")
            } else {
                format!("t{id}")
            };
            Msg::Choose(vec![id], false)
        }
    };
    update(model, msg);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn selection_survives_updates_sorting_and_filtering(
        steps in prop::collection::vec(step(), 1..60),
        on_events in any::<bool>(),
    ) {
        let mut model = model(Role::Admin);
        press(&mut model, if on_events { "2" } else { "3" });
        for step in steps {
            let before = match &step {
                Step::Select(_) => None,
                // Events are not read again: that would open a new list.
                Step::Read(_) if on_events => continue,
                // If the first row is selected, a change of the order selects the new first row.
                Step::Sort(_) if on_events && model.page.list.index == 0 => None,
                _ => model.selected_id(),
            };
            apply(&mut model, &step);
            adjust_cursors(&mut model);
            let is_there = |id: &String| model.rows().position(id).is_some();
            if let Some(before) = before.filter(is_there) {
                prop_assert_eq!(model.selected_id(), Some(before), "after {:?}", step);
            }
            let list = &model.page.list;
            let count = model.rows().len();
            prop_assert!(count == 0 || list.index < count, "{:?}", step);
            prop_assert!(count == 0 || model.selected_id().is_some(), "{:?}", step);
        }
    }
}
