//! Lists of maximally large resources: pages are truncated, and can be continued.

use std::collections::BTreeSet;

use bellwether_proto::v1::{
    ListDestinationsRequest, destination_service_client::DestinationServiceClient,
};
use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Value, json};

const PATH: &str = "/v1/notification/destinations";
/// Default message limit of a gRPC client.
const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
const COUNT: usize = 20;

/// Returns a destination of about the maximum size: 50 headers of 8 KiB and a payload of 64 KiB.
fn large(number: usize) -> Value {
    let headers = (0..50).map(|at| (format!("x-{at}"), Value::from("v".repeat(8_100))));
    json!({
        "name": format!("d{number:02}"),
        "type": {"webhook": {
            "url": "http://127.0.0.1:9/",
            "headers": headers.collect::<serde_json::Map<_, _>>(),
            "payload": "p".repeat(64 * 1024),
        }},
    })
}

async fn with_large_destinations() -> (World, Rest) {
    let world = World::start();
    let rest = world.rest();
    for number in 0..COUNT {
        rest.post(PATH, &large(number)).await.ok();
    }
    (world, rest)
}

fn all() -> BTreeSet<String> {
    (0..COUNT).map(|number| format!("d{number:02}")).collect()
}

#[tokio::test]
async fn page_of_large_resources_is_short_and_can_be_continued() {
    let (world, rest) = with_large_destinations().await;
    let (mut token, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let answer = rest
            .get(&format!("{PATH}?pageSize=1000&pageToken={token}"))
            .await;
        let page = answer.ok();
        assert!(answer.body.len() <= MESSAGE_BYTES, "{}", answer.body.len());
        assert_eq!(page["totalSize"], json!(COUNT), "{token}");
        let items = page["destinations"].as_array().expect("a page");
        // A page is filled up to the limit, so it contains several items.
        assert!(items.len() >= 5 || page["nextPageToken"].is_null());
        seen.extend(
            items
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert!(pages > 1, "all of it fitted into one page");
    assert_eq!(seen.len(), COUNT, "each is seen once");
    assert_eq!(BTreeSet::from_iter(seen), all());

    // Pages fit the default message limit of a gRPC client.
    let mut client = DestinationServiceClient::new(world.grpc());
    let (mut token, mut seen) = (String::new(), BTreeSet::new());
    loop {
        let request = ListDestinationsRequest {
            page_size: 1_000,
            page_token: token,
            names: all().into_iter().collect(),
            ..ListDestinationsRequest::default()
        };
        let page = client
            .list_destinations(request)
            .await
            .unwrap()
            .into_inner();
        for destination in page.destinations {
            assert!(seen.insert(destination.name));
        }
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, all());
}
