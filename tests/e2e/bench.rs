//! The test bench of the console: a destination is created, tested, fixed, tested again and saved
//! in one form.

use bellwether_tests::{
    eventually::eventually_blocking,
    receiver::{Receiver, Reply},
    terminal::Terminal,
    world::World,
};
use serde_json::json;

fn console(world: &World, size: (u16, u16)) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    let arguments = ["--connect", &address, "--key-file", key];
    Terminal::of_size(size, world.folder(), &arguments, &[])
}

/// Starts a receiver that requires a token.
async fn guarded() -> Receiver {
    Receiver::with_rule(|request| {
        let is_right = request.header("authorization") == "Bearer qzxv-right";
        Reply::status(if is_right { 200 } else { 401 })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_is_created_tested_and_fixed_next_to_its_request() {
    let world = World::start();
    let receiver = guarded().await;
    let mut console = console(&world, (150, 44));
    console.shows(&["● connected"]);
    console.press("4");
    console.shows(&["No destinations yet"]);
    console.press("n");
    console.shows(&["New destination", "[body] headers curl"]);
    console.press(&format!(
        "hook\t\t{}\t\t\tx-team: ops\t",
        receiver.url("/a")
    ));
    // The request is shown before anything is sent, with the typed header masked.
    console.press("\x1br");
    let screen = console.shows(&[
        "POST http://127.0.0.1",
        "content-type: application/json",
        "x-team: ********",
        "not tested yet",
    ]);
    assert!(!screen.contains("x-team: ops"), "{screen}");
    assert_eq!(receiver.count(), 0);
    console.press("\x14");
    // After the failure, the section about authentication is expanded and has the focus.
    console.shows(&[
        "✗ 401",
        "tested just now",
        "check the authentication",
        "▶  Bearer token",
    ]);
    console.shows(&["connect", "first byte"]);
    console.press("qzxv-right");
    console.shows(&["changed since the test"]);
    console.press("\x14");
    console.shows(&["✓ 401 → 200", "test 2 of 2", "header authorization"]);
    // A single key shows the previous test.
    console.press("\x1bt");
    console.shows(&["test 1 of 2", "check the authentication"]);
    console.press("\x1by");
    console.shows(&["copied the request as curl"]);
    console.press("\x13");
    console.shows(&["Create destination hook?"]);
    console.press("y");
    console.shows(&["destination hook created"]);
    let stored = world
        .rest()
        .get("/v1/notification/destinations/hook")
        .await
        .ok();
    assert_eq!(
        stored["destination"]["type"]["webhook"]["auth"]["bearer"]["token"],
        "********"
    );
    assert_eq!(receiver.count(), 2);
    console.press("q");
    assert!(console.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn narrow_screen_shows_the_test_result_below_the_form() {
    let world = World::start();
    let rest = world.rest();
    let mail = json!({"name": "team", "type": {"email": {"to": "ops@example.com"}}});
    rest.post("/v1/notification/destinations", &mail).await.ok();
    let mut console = console(&world, (80, 24));
    console.shows(&["● connected"]);
    console.press("4");
    console.shows(&["team"]);
    console.press("e");
    console.shows(&["Edit destination team"]);
    console.press("\x14");
    console.shows(&["tested just now ✗"]);
    console.press("\x1bb");
    // Mail cannot be sent without a mail server, but the request is shown.
    let screen = console.shows(&["Response", "smtp.host"]);
    assert!(!screen.contains("Description"), "{screen}");
    console.press("\x1bb");
    console.shows(&["Request", "ops@example.com"]);
    console.press("\x1bb");
    console.shows(&["Description"]);
    console.press("\x1b");
    eventually_blocking("the list", || {
        console.screen().contains("1/1").then_some(())
    });
    console.press("q");
    assert!(console.ended().success());
}
