//! Watches across backup and restore: a token from another life of the store is reported as a gap,
//! and never mistaken for a position in this life.

use std::{fs, path::Path};

use bellwether_proto::v1::{
    WatchEventsRequest, WatchEventsResponse, event_query_service_client::EventQueryServiceClient,
};
use bellwether_tests::{
    eventually::eventually,
    grpc,
    process::{self, Service},
    receiver::Receiver,
    rest::Rest,
    world::World,
};

use serde_json::json;

use crate::{journey, samples};

async fn send(rest: &Rest, hosts: impl Iterator<Item = String>) {
    for host in hosts {
        let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
        let body = samples::events(&[event]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    }
}

fn hosts(of: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{of}-{number}"))
}

struct Life {
    service: Service,
    key: String,
}

impl Life {
    fn start(home: &Path, data: &Path) -> Self {
        let data_name = data.to_str().expect("a name");
        let mut serve = process::command(home, ["serve", "--data-dir", data_name]);
        for listener in ["--grpc-listen", "--rest-listen"] {
            serve.args([listener, "127.0.0.1:0"]);
        }
        serve.env("BELLWETHER_EGRESS_ALLOW", "127.0.0.0/8");
        let key = fs::read_to_string(data.join("admin.key")).expect("a key");
        Self {
            service: Service::start(serve, &data.with_extension("log")),
            key: key.trim().to_owned(),
        }
    }

    fn rest(&self) -> Rest {
        Rest::new(self.service.address("rest"), Some(&self.key))
    }

    /// Returns the first message of a watch resumed from a token.
    async fn watch(&self, resume_token: &str) -> WatchEventsResponse {
        first(
            grpc::channel(self.service.address("grpc"), Some(&self.key)),
            resume_token,
        )
        .await
    }
}

pub(crate) async fn first(channel: grpc::Grpc, resume_token: &str) -> WatchEventsResponse {
    let mut client = EventQueryServiceClient::new(channel);
    let request = WatchEventsRequest {
        query: None,
        resume_token: resume_token.into(),
    };
    let mut news = client.watch_events(request).await.unwrap().into_inner();
    news.message().await.unwrap().expect("a first message")
}

fn restore(home: &Path, copy: &Path, into: &Path, flags: &[&str]) {
    let names = [copy, into].map(|path| path.to_str().expect("a name"));
    let mut command = process::command(home, ["restore", names[0], "--data-dir", names[1]]);
    command.args(flags);
    let output = process::run(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_token_of_another_store_reports_a_gap() {
    let mut world = World::start();
    let home = world.folder().to_owned();
    send(&world.rest(), hosts("before", 5)).await;
    let copy = home.join("copy");
    let copy_name = copy.to_str().expect("a name");
    let output = process::run(world.command(&["backup", copy_name, "--with-keys"]));
    assert!(output.status.success(), "the backup is made");
    send(&world.rest(), hosts("lost", 5)).await;
    let of_the_first = first(world.grpc(), "").await.resume_token;
    let goes_on = first(world.grpc(), &of_the_first).await;
    assert!(!goes_on.gap, "a token is valid until the restore");
    world.kill();

    // Restore the backup twice, as if the first restore had not helped.
    restore(&home, &copy, &home.join("second"), &[]);
    let second = Life::start(&home, &home.join("second"));
    assert!(second.watch(&of_the_first).await.gap);
    send(&second.rest(), hosts("second", 3)).await;
    let of_the_second = second.watch("").await.resume_token;
    second.service.kill();
    restore(&home, &copy, &home.join("third"), &[]);
    let third = Life::start(&home, &home.join("third"));
    // The log of the third life is longer than that of the second, so that every position in the
    // second log also exists in the third.
    send(&third.rest(), hosts("third", 10)).await;
    for token in [&of_the_first, &of_the_second] {
        let reported = third.watch(token).await;
        assert!(reported.gap, "changes in between are not skipped silently");
        assert!(!reported.resume_token.is_empty());
        assert!(!third.watch(&reported.resume_token).await.gap);
    }
    let of_the_third = third.watch("").await.resume_token;
    third.service.kill();
    // Return to the second life, whose log is shorter.
    let second = Life::start(&home, &home.join("second"));
    assert!(second.watch(&of_the_third).await.gap);
    let goes_on = second.watch(&of_the_second).await;
    assert!(!goes_on.gap, "its own token is still valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn drill_restore_sends_no_messages_until_ended() {
    let mut world = World::start();
    let home = world.folder().to_owned();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    send(&world.rest(), hosts("before", 1)).await;
    eventually("the first message", async || {
        (receiver.received().len() == 1).then_some(())
    })
    .await;
    let copy = home.join("copy");
    let copy_name = copy.to_str().expect("a name");
    let output = process::run(world.command(&["backup", copy_name, "--with-keys"]));
    assert!(output.status.success(), "the backup is made");
    world.kill();

    restore(&home, &copy, &home.join("drill"), &["--hold-deliveries"]);
    let drill = Life::start(&home, &home.join("drill"));
    send(&drill.rest(), hosts("during", 3)).await;
    let overview = drill.rest().get("/v1/overview").await.ok();
    assert!(overview["quietSinceTime"].is_string(), "{overview}");
    let path = "/v1/notification/deliveries";
    let deliveries = drill.rest().get(path).await.ok();
    let waiting = deliveries["deliveries"].as_array().expect("a list").iter();
    assert_eq!(waiting.filter(|it| it["state"] == "PENDING").count(), 3);
    assert_eq!(receiver.received().len(), 1);

    let ended = drill.rest().post("/v1/settings:setQuiet", &json!({})).await;
    assert!(ended.ok()["settings"]["quietSinceTime"].is_null());
    eventually("the waiting messages to be sent", async || {
        (receiver.received().len() == 4).then_some(())
    })
    .await;
}
