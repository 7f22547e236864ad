//! Tests of views of events, and of the panel beside a list.

use super::*;

#[test]
fn views_can_be_cycled_selected_and_saved() {
    let mut model = model(Role::Admin);
    model.own_views = vec![
        View {
            name: "night".to_owned(),
            filter: "severity>=error".to_owned(),
            sort: "severity".to_owned(),
            includes_closed: true,
            columns: vec!["Seen".to_owned(), "Summary".to_owned()],
            ..View::default()
        },
        View {
            name: "hosts".to_owned(),
            group_by: "host".to_owned(),
            ..View::default()
        },
    ];
    let shown = |model: &Model| {
        let list = &model.page.list;
        let name = model.view().map(|view| view.name);
        (
            name,
            list.filter.clone(),
            model.store.events.filter.open_only,
        )
    };
    press(&mut model, "2");
    assert_eq!(shown(&model), (None, String::new(), true));
    press(&mut model, "<Tab>");
    let night = (
        Some("night".to_owned()),
        "severity>=error".to_owned(),
        false,
    );
    assert_eq!(shown(&model), night);
    let order = model.store.events.filter.order;
    assert_eq!(order.by, EventKey::Severity);
    // The view stored in the service is next, then all events. Views that group events are skipped.
    press(&mut model, "<Tab>");
    let shared = (Some("v".to_owned()), "severity=critical".to_owned(), true);
    assert_eq!(shown(&model), shared);
    press(&mut model, "<Tab>");
    assert_eq!(shown(&model), (None, String::new(), true));
    press(&mut model, ":view<Space>night<Enter>");
    assert_eq!(shown(&model), night);
    press(&mut model, "/<C-u>name=a<Enter>");
    assert_eq!(model.view(), None, "it is no longer that view");
    press(&mut model, "V3");
    let hosts = Route::EventGroups {
        field: "host".to_owned(),
        filter: String::new(),
    };
    assert_eq!(model.page.route, hosts);
    press(&mut model, "<Esc>V2<A-v>late<C-s>");
    let written = press(&mut model, "y");
    assert_eq!(methods(&written), ["CreateView"]);
    let view = &written[0].body["view"];
    let message = ["name", "filter", "sort", "description"].map(|it| view[it].as_str());
    assert_eq!(
        message,
        ["late", "severity>=error", "severity", "like night"].map(Some)
    );
    assert_eq!(view["includesClosed"], true);
}

#[test]
fn split_view_shows_the_selection_until_toggled_off() {
    let mut model = model(Role::Viewer);
    press(&mut model, "2|");
    assert!(model.is_split, "there is no room");
    let message = model.notice.clone().unwrap().text;
    assert!(message.contains("at least 140 columns"), "{message}");
    model.size.0 = 200;
    press(&mut model, "|");
    assert!(!model.is_split);
    press(&mut model, "3|");
    assert!(model.is_split);
}
