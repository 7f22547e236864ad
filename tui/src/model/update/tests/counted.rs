//! Tests of how often open events are counted. Counting many events is expensive for the service.

use super::*;

/// Responds to the calls that count, each after a delay, and returns the number of calls.
fn respond_to_counts(model: &mut Model, mut effects: Vec<Effect>, took_ms: i64) -> usize {
    let mut calls = 0;
    while let Some(effect) = effects.pop() {
        let Effect::Send(Command::Call(ticket, call)) = effect else {
            continue;
        };
        let found = match call.method {
            "GetOverview" | "GetStatistics" => Ok(Vec::new()),
            "GroupEvents" => {
                calls += 1;
                model.now_ms += took_ms;
                answer(&call)
            }
            _ => answer(&call),
        };
        effects.extend(update(
            model,
            Msg::Server(ServerUpdate::CallResult(ticket, found)),
        ));
    }
    calls
}

fn pause(took_ms: i64) -> i64 {
    let mut model = model(Role::Viewer);
    let mut begun = Vec::new();
    for _ in 0..600 {
        model.now_ms += 1_000;
        // Change the counts of the tabs.
        model.store.overview.revision += 1;
        let before_ms = model.now_ms;
        let effects = update(&mut model, Msg::Tick);
        if respond_to_counts(&mut model, effects, took_ms) > 0 {
            begun.push((before_ms, model.now_ms));
        }
    }
    let pauses = begun.windows(2).map(|two| two[1].0 - two[0].1);
    pauses.min().unwrap() / 1_000
}

#[test]
fn count_interval_grows_with_count_duration() {
    // Events are counted when the counts of the tabs are read, which is every 5 s.
    assert_eq!(pause(0), 10);
    // The interval is doubled, because events are counted twice: by name and by host.
    assert!(pause(1_000) >= 20, "{}", pause(1_000));
    assert!(pause(5_000) >= 100, "{}", pause(5_000));
}

/// Responds to the calls of a method among the effects, and returns the next effects.
fn respond_to_calls(
    model: &mut Model,
    effects: &[Effect],
    method: &str,
    answer: &[u8],
) -> Vec<Effect> {
    let tickets = effects.iter().filter_map(|effect| match effect {
        Effect::Send(Command::Call(ticket, call)) => (call.method == method).then_some(*ticket),
        _ => None,
    });
    let tickets: Vec<_> = tickets.collect();
    let answer = |ticket| ServerUpdate::CallResult(ticket, Ok(answer.to_vec()));
    let follow = |ticket| update(model, Msg::Server(answer(ticket)));
    tickets.into_iter().flat_map(follow).collect()
}

#[test]
fn event_total_is_requested_after_the_first_page() {
    let mut model = model(Role::Admin);
    let many = |next| {
        let mut page = found((0..5).map(occurrence).collect(), next);
        page.page_info.as_mut().unwrap().total_count = None;
        page.encode_to_vec()
    };
    let count = v1::CountEventsResponse {
        count: Some(20_346),
        ..v1::CountEventsResponse::default()
    };
    let count = count.encode_to_vec();
    press(&mut model, "2/severity>=warning");
    let effects = update(&mut model, Msg::Key(keymap::parse("<Enter>").unwrap()[0]));
    let effects = respond_to_calls(&mut model, &effects, "SearchEvents", &many("more"));
    assert_eq!(model.store.events.total.value, None);
    respond_to_calls(&mut model, &effects, "CountEvents", &count);
    assert_eq!(model.store.events.total.value, Some(20_346));
    // Later pages and complete lists request no total.
    let effects = update(&mut model, Msg::Key(keymap::parse("G").unwrap()[0]));
    let effects = respond_to_calls(&mut model, &effects, "SearchEvents", &many(""));
    assert_eq!(effects, []);
    assert_eq!(model.store.events.total.value, Some(20_346));

    // The total of another filter is discarded.
    press(&mut model, "/severity>=error");
    let effects = update(&mut model, Msg::Key(keymap::parse("<Enter>").unwrap()[0]));
    let effects = respond_to_calls(&mut model, &effects, "SearchEvents", &many("more"));
    press(&mut model, "/severity>=info<Enter>");
    let total = model.store.events.total.value;
    respond_to_calls(&mut model, &effects, "CountEvents", &count);
    assert_eq!(model.store.events.total.value, total);
}

/// Opens a list of 20,346 events by the service's count, of which only the first page is loaded.
fn partly_held() -> Model {
    let mut model = model(Role::Admin);
    press(&mut model, "2");
    let now_ms = model.now_ms;
    let events = &mut model.store.events;
    events.next = "more".to_owned();
    events.joined = true;
    events.total.record(Ok(20_346), now_ms);
    model
}

fn change(model: &mut Model) {
    let generation = model.store.events.generation;
    let changed = ServerUpdate::Watched {
        generation,
        rows: vec![row(9)],
        left: Vec::new(),
        token: "token".to_owned(),
        gap: false,
    };
    handle_server_update(model, changed);
}

fn counts(effects: &[Effect]) -> usize {
    let is_count = |effect: &&Effect| matches!(effect, Effect::Send(Command::Call(_, call)) if call.method == "CountEvents");
    effects.iter().filter(is_count).count()
}

#[test]
fn total_of_a_live_list_is_recounted_after_a_change() {
    let mut model = partly_held();
    model.now_ms += limits::LIVE_MS;
    // If nothing has changed, the count is correct, however old it is.
    assert_eq!(counts(&update(&mut model, Msg::Tick)), 0);
    assert_eq!(model.counts_age_ms(), None);
    change(&mut model);
    let effects = update(&mut model, Msg::Tick);
    assert_eq!(counts(&effects), 1);
    // While a count is in progress, no other count is requested.
    change(&mut model);
    assert_eq!(counts(&update(&mut model, Msg::Tick)), 0);
    let counted = v1::CountEventsResponse {
        count: Some(20_347),
        ..v1::CountEventsResponse::default()
    };
    respond_to_calls(
        &mut model,
        &effects,
        "CountEvents",
        &counted.encode_to_vec(),
    );
    assert_eq!(model.store.events.total.value, Some(20_347));
    // The tab shows the same number.
    let badge = |model: &Model| {
        let mut tabs = tabs::visible_tabs(model).into_iter();
        tabs.find_map(|it| it.badge)
    };
    assert_eq!(badge(&model).as_deref(), Some("20k"));
    press(&mut model, "/severity>=info<Enter>");
    assert_ne!(badge(&model).as_deref(), Some("20k"));
}

#[test]
fn slow_count_is_repeated_less_often_and_shows_its_age() {
    let mut model = partly_held();
    change(&mut model);
    model.now_ms += limits::LIVE_MS;
    let effects = update(&mut model, Msg::Tick);
    let requested_ms = model.now_ms;
    model.now_ms += limits::LIVE_OLD_MS;
    assert_eq!(
        model.counts_age_ms(),
        Some(limits::LIVE_MS + limits::LIVE_OLD_MS)
    );
    adjust_cursors(&mut model);
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| view::draw(&model, frame)).unwrap();
    let screen = terminal.backend().to_string();
    assert!(screen.contains("/20,346 (4 s old)"), "{screen}");
    let counted = v1::CountEventsResponse {
        count: Some(20_347),
        ..v1::CountEventsResponse::default()
    };
    respond_to_calls(
        &mut model,
        &effects,
        "CountEvents",
        &counted.encode_to_vec(),
    );
    assert_eq!(model.counts_age_ms(), None);
    let took_ms = model.now_ms - requested_ms;
    change(&mut model);
    model.now_ms += took_ms * limits::COUNTED_PAUSE - 1;
    assert_eq!(counts(&update(&mut model, Msg::Tick)), 0);
    model.now_ms += 1;
    assert_eq!(counts(&update(&mut model, Msg::Tick)), 1);
}

#[test]
fn counts_of_every_list_show_their_age_if_the_service_changed_since() {
    for keys in [
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "0",
        "gp",
        ":group host<Enter>",
    ] {
        let mut model = model(Role::Admin);
        press(&mut model, keys);
        let at_ms = model.now_ms;
        model.store.deliveries.record(Ok(Vec::new()), at_ms);
        assert_eq!(model.counts_age_ms(), None, "{keys}");
        model.now_ms += limits::OLD_MS;
        let at_ms = model.now_ms;
        model.store.changed_ms = Some(0);
        assert_eq!(model.counts_age_ms(), None, "{keys}");
        model.store.changed_ms = Some(at_ms);
        assert_eq!(model.counts_age_ms(), Some(limits::OLD_MS), "{keys}");
    }
}
