//! Tests of sort orders other than the default, and of events counted by a field.

use super::*;

/// Presses keys and returns the sort orders of the requests for events.
fn orders(model: &mut Model, keys: &str) -> Vec<Value> {
    let mut requested = Vec::new();
    for key in keymap::parse(keys).unwrap() {
        let effects = update(model, Msg::Key(key));
        requested.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Send(Command::Call(_, call)) if call.method == "SearchEvents" => {
                Some(call.body["query"]["sortBy"].clone())
            }
            _ => None,
        }));
        reply(model, effects);
        adjust_cursors(model);
    }
    requested
}

#[test]
fn events_are_sorted_by_the_service_or_the_reason_is_shown() {
    let mut model = model(Role::Admin);
    press(&mut model, "2");
    let severity = |order| json!([{"byField": {"field": "severity", "order": order}}]);
    assert_eq!(orders(&mut model, "S"), [severity("SORT_ORDER_DESC")]);
    press(&mut model, "SSSSS");
    assert_eq!(model.page.list.sort, None);
    assert_eq!(
        orders(&mut model, ":sort severity ↓<Enter>"),
        [severity("SORT_ORDER_DESC")]
    );
    let sorted = model.current_sort().unwrap();
    assert_eq!((sorted.column, sorted.descending), ("Severity", true));
    assert_eq!(orders(&mut model, "S"), [severity("SORT_ORDER_ASC")]);
    // Return to the initial order, in which the list is live.
    let rest = orders(&mut model, "SSSS");
    assert_eq!(rest.last(), Some(&Value::Null));
    assert_eq!(model.page.list.sort, None);

    assert!(orders(&mut model, ":sort count<Enter>").is_empty());
    let message = model.notice.clone().unwrap().text;
    assert!(message.contains("cannot sort by this"), "{message}");
    assert!(model.rows().len() > 0);
}

#[test]
fn events_are_grouped_by_field_and_a_group_opens_its_events() {
    let mut model = model(Role::Admin);
    press(&mut model, "2/severity>=error<Enter>b");
    assert!(matches!(model.overlay, Some(Overlay::Menu(_))));
    press(&mut model, "h");
    let route = Route::EventGroups {
        field: "host".to_owned(),
        filter: "severity>=error".to_owned(),
    };
    assert_eq!(model.page.route, route);
    assert_eq!(model.rows().len(), 2);
    press(&mut model, "<Enter>");
    assert_eq!(model.page.route, Route::EVENTS);
    assert_eq!(model.page.list.filter, "severity>=error host=\"db 1\"");
    press(&mut model, "<Esc>j<Enter>");
    assert_eq!(model.page.list.filter, "severity>=error -has:host");
    press(&mut model, "<Esc>bn");
    assert_eq!(model.page.route.object_name(), "name");
    press(&mut model, "<Esc><Esc>");
    assert_eq!(
        (&model.page.route, &*model.page.list.filter),
        (&Route::EVENTS, "severity>=error")
    );
    press(&mut model, ":group dimensions.rack<Enter>");
    assert_eq!(model.page.route.object_name(), "dimensions.rack");
}

#[test]
fn pending_notifications_are_sorted_by_the_marked_column() {
    let mut model = model(Role::Admin);
    press(&mut model, "gp");
    let due = |name: &str, time: Option<&str>| {
        let json = json!({"name": name, "dueTime": time, "severity": "SEVERITY_ERROR"});
        Object {
            kind: Kind::Pending,
            json,
        }
    };
    let rows = vec![
        due("third", Some("2026-11-28T01:16:33Z")),
        due("first", Some("2026-11-28T01:13:44Z")),
        due("last", None),
        due("second", Some("2026-11-28T01:15:32.9Z")),
    ];
    let now_ms = model.now_ms;
    let pending = model.store.resources_mut(Kind::Pending);
    pending.record(Ok(rows), now_ms);
    adjust_cursors(&mut model);
    let order = |model: &Model| {
        let rows = model.rows();
        let ids = (0..rows.len()).map(|index| rows.id(index).to_owned());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(model.current_sort().map(|it| it.column), Some("Due"));
    assert_eq!(order(&model), "first second third last");
    press(&mut model, "S");
    assert_eq!(model.current_sort().map(|it| it.column), Some("Severity"));
}

#[test]
fn resource_without_a_name_is_titled_by_its_event() {
    let model = model(Role::Admin);
    let event = json!({"name": "id", "eventName": "disk", "ruleName": "night",
        "dimensions": {"host": "db-1"}});
    let digest = json!({"name": "id"});
    for (kind, json, expected) in [
        (Kind::Response, &event, "disk db-1"),
        (Kind::Pending, &event, "disk db-1 · night"),
        (Kind::Pending, &digest, "id"),
        (Kind::Group, &event, "night · all events of the rule"),
        (Kind::Rule, &event, "id"),
    ] {
        let json = json.clone();
        let shown = kind::displayed_name(&model, &Object { kind, json });
        assert_eq!(shown, expected, "{kind:?}");
    }
}

#[test]
fn passed_due_time_is_shown_as_due_now() {
    let mut model = model(Role::Admin);
    press(&mut model, "gp");
    let now = jiff::Timestamp::from_millisecond(model.now_ms).unwrap();
    let hold = json!({"kind": "HOLD_KIND_DELAY", "name": "night", "until": now.to_string()});
    let json = json!({"name": "held", "occurrenceId": "e1:1", "ruleName": "night",
        "dueTime": now.to_string(), "holds": [hold]});
    let kind = Kind::Pending;
    let now_ms = model.now_ms;
    let rows = vec![Object { kind, json }];
    model.store.resources_mut(kind).record(Ok(rows), now_ms);
    adjust_cursors(&mut model);
    let screen = |model: &Model| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        terminal.draw(|frame| view::draw(model, frame)).unwrap();
        terminal.backend().to_string()
    };
    let list = screen(&model);
    assert!(list.contains("▶ now "), "{list}");
    model.page.route = Route::Object(kind, "held".to_owned());
    let page = screen(&model);
    assert!(page.contains("delay of rule night, due now"), "{page}");
    assert!(
        page.contains("evaluated") && page.matches("due now").count() == 2,
        "{page}"
    );
}

#[test]
fn alt_gr_types_its_character() {
    let mut model = model(Role::Admin);
    press(&mut model, "4/a<A-@><A-[>ę");
    let typed = |model: &Model| {
        let field = model.page.list.typing.as_ref();
        field.map(|field| field.text().to_owned())
    };
    assert_eq!(typed(&model).as_deref(), Some("a@[ę"));
    // A letter with Alt is a key, and types nothing.
    press(&mut model, "<A-x>");
    assert_eq!(typed(&model).as_deref(), Some("a@[ę"));
}
