//! Tests of the frequency with which open events are counted. If there are many, counting is
//! expensive for the service.

use super::*;

/// Responds to the counting calls, each after a delay; returns their number.
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
        // The counts of the tabs changed.
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
    // Together with the counts of the tabs, which are read every 5 s.
    assert_eq!(pause(0), 10);
    // Counted twice: by name and by host.
    assert!(pause(1_000) >= 20, "{}", pause(1_000));
    assert!(pause(5_000) >= 100, "{}", pause(5_000));
}

/// Responds to the calls of a method among the effects; returns the next effects.
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
    assert_eq!(model.store.events.total, None);
    respond_to_calls(&mut model, &effects, "CountEvents", &count);
    assert_eq!(model.store.events.total, Some(20_346));
    // Later pages and complete lists request no total.
    let effects = update(&mut model, Msg::Key(keymap::parse("G").unwrap()[0]));
    let effects = respond_to_calls(&mut model, &effects, "SearchEvents", &many(""));
    assert_eq!(effects, []);
    assert_eq!(model.store.events.total, Some(20_346));

    // The total of another filter is discarded.
    press(&mut model, "/severity>=error");
    let effects = update(&mut model, Msg::Key(keymap::parse("<Enter>").unwrap()[0]));
    let effects = respond_to_calls(&mut model, &effects, "SearchEvents", &many("more"));
    press(&mut model, "/severity>=info<Enter>");
    let total = model.store.events.total;
    respond_to_calls(&mut model, &effects, "CountEvents", &count);
    assert_eq!(model.store.events.total, total);
}
