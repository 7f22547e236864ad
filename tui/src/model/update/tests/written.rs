//! Tests of copies, new rows, and deliveries created between two reads.

use super::*;

#[test]
fn copied_rule_starts_disabled() {
    let mut model = model(Role::Admin);
    press(&mut model, "5");
    let mut rule = object(Kind::Rule);
    rule.set("enabled", Some(true.into()));
    model
        .store
        .resources_mut(Kind::Rule)
        .record(Ok(vec![rule]), 0);
    adjust_cursors(&mut model);
    press(&mut model, "D");
    let copy = model.page.form_mut().unwrap().draft().unwrap();
    assert_eq!((copy.name(), copy.flag("enabled")), ("r-copy", false));
}

#[test]
fn cursor_moves_to_a_created_resource_once_listed() {
    let mut model = model(Role::Admin);
    press(&mut model, "5nnew<C-s>y");
    assert_eq!(model.selected_id().as_deref(), Some("r"));
    let mut new = object(Kind::Rule);
    new.set("name", Some("new".into()));
    let rules = vec![object(Kind::Rule), new];
    model.store.resources_mut(Kind::Rule).record(Ok(rules), 0);
    adjust_cursors(&mut model);
    assert_eq!(model.selected_id().as_deref(), Some("new"));
}

#[test]
fn new_deliveries_are_paged_until_they_reach_known_ones() {
    fn take(model: &mut Model, more: bool, newest: usize, next: &str) -> Option<String> {
        let rows = (newest - 2..=newest).rev().map(|number| v1::Delivery {
            id: format!("{number:04}"),
            ..v1::Delivery::default()
        });
        let page = v1::ListDeliveriesResponse {
            counts: None,
            warnings: Vec::new(),
            deliveries: rows.collect(),
            next_page_token: next.to_owned(),
        };
        let ticket = model.ticket();
        let reply = move |model: &mut Model, ticket, answer| {
            read::handle_deliveries(model, ticket, more, answer)
        };
        model.pending.insert(ticket, Reply::Other(Box::new(reply)));
        model.store.deliveries.waiting = Some(ticket);
        let answer = Ok(page.encode_to_vec());
        let effects = update(model, Msg::Server(ServerUpdate::CallResult(ticket, answer)));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send(Command::Call(_, call)) if call.method == "ListDeliveries" => {
                call.body["pageToken"].as_str().map(str::to_owned)
            }
            _ => None,
        })
    }
    let mut model = model(Role::Admin);
    press(&mut model, "6");
    assert_eq!(take(&mut model, false, 10, "older"), None);
    assert_eq!(take(&mut model, false, 16, "a").as_deref(), Some("a"));
    assert_eq!(take(&mut model, true, 13, "b").as_deref(), Some("b"));
    assert_eq!(take(&mut model, true, 10, "c"), None);
    let rows = model.store.deliveries.rows().iter();
    let ids: Vec<usize> = rows.map(|row| row.id.parse().unwrap()).collect();
    assert_eq!(ids, (8..=16).rev().collect::<Vec<_>>());
    assert_eq!(model.store.deliveries_next, "c");
}
