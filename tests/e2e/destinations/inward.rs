//! Addresses of internal networks in every notation, over REST and gRPC, also with proxy variables
//! set.

use bellwether_tests::{
    engine::Engine,
    process::{self, Service},
    receiver::Receiver,
    rest::Rest,
    wire::Wire,
    world::World,
};
use serde_json::json;
use tonic::Code;

use crate::samples;

/// Internal addresses in unusual notations.
const INWARD: [&str; 18] = [
    "http://10.0.0.1/",
    "http://10.1/",
    "http://167772161/",
    "http://0x0a000001/",
    "http://012.0.0.1/",
    "http://192.168.0.1:8080/a",
    "http://172.31.255.255/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://0.0.0.0/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:a00:1::]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
];
const VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

#[tokio::test(flavor = "multi_thread")]
async fn internal_addresses_are_blocked_despite_proxy_variables() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    world.terminate();
    let (receiver, proxy) = (Receiver::start().await, Receiver::start().await);
    let config = world.folder().join("bellwether.toml");
    let mut serve = process::command(world.folder(), ["serve", "--config"]);
    serve.arg(config);
    for name in VARIABLES {
        let address = if name == "NO_PROXY" {
            String::new()
        } else {
            proxy.url("/")
        };
        serve.env(name, &address).env(name.to_lowercase(), &address);
    }
    let service = Service::start(serve, &world.folder().join("log"));
    let key = world.admin_key();
    let wires = [
        Wire::Rest(Box::new(Rest::new(service.address("rest"), Some(&key)))),
        Wire::Grpc(bellwether_tests::grpc::channel(
            service.address("grpc"),
            Some(&key),
        )),
    ];
    for wire in wires {
        for address in INWARD {
            let draft = samples::webhook("inward", address);
            let stored = json!({"destination": draft});
            let refusal = wire
                .refused("DestinationService/CreateDestination", &stored)
                .await;
            let case = format!("{} {address}", wire.name());
            assert_eq!(refusal.code, Code::InvalidArgument, "{case}: {refusal:?}");
            assert!(
                refusal.message.contains("egress.allow"),
                "{case}: {refusal:?}"
            );
            let tested = wire.ok("DestinationService/TestDestination", &draft).await;
            assert_eq!(tested["outcome"], "OUTCOME_BLOCKED", "{case}: {tested}");
            let reported = tested["explanation"].as_str().unwrap();
            assert!(reported.contains("egress.allow"), "{case}: {tested}");
        }
        let here = samples::webhook("here", &receiver.url("/here"));
        let before = receiver.count();
        wire.ok("DestinationService/TestDestination", &here).await;
        assert!(
            receiver.count() > before,
            "{}: it arrived by another path",
            wire.name()
        );
    }
    assert_eq!(proxy.count(), 0, "the proxy was used");
}
