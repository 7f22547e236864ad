//! Subscriptions of Amazon SNS are confirmed at a test server for SNS, which is reached through a
//! proxy.

use bellwether_tests::{
    providers::{Answer, Rules, StandIn, certificates::Authority},
    receiver::Received,
    world::World,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const HOST: &str = "sns.us-east-1.amazonaws.com";
const CONFIRMATION: &str = "/?Action=ConfirmSubscription&Token=2336412f";

/// A test server for SNS, which accepts one token.
struct Sns;

impl Rules for Sns {
    fn judge(&mut self, request: &Received) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", CONFIRMATION) => Answer::accepted(200, "<ConfirmSubscriptionResponse/>"),
            _ => Answer::without_message(403, "invalid token"),
        }
    }
}

/// Starts a proxy that connects `CONNECT` requests for the host of SNS to `target`.
async fn proxy(target: String) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut running = JoinSet::new();
    running.spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            let wanted = format!("CONNECT {HOST}:443 ");
            assert!(head.starts_with(wanted.as_bytes()), "{head:?}");
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut server = TcpStream::connect(&target).await.unwrap();
            let _closed = copy_bidirectional(&mut client, &mut server).await;
        }
    });
    (address, running)
}

fn confirmation(path: &str) -> Value {
    json!({
        "Type": "SubscriptionConfirmation",
        "TopicArn": "arn:aws:sns:us-east-1:123456789012:alarms",
        "Message": "You have chosen to subscribe to the topic.",
        "SubscribeURL": format!("https://{HOST}{path}"),
    })
}

#[tokio::test]
async fn subscription_of_sns_is_confirmed() {
    let authority = Authority::new("ours");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    authority.write(&file);
    let sns = StandIn::start_tls(Sns, authority.server(HOST)).await;
    let target = sns.url("").replace("https://localhost", "127.0.0.1");
    let (proxy, _running) = proxy(target).await;
    let variables = vec![
        ("BELLWETHER_EGRESS_PROXY", proxy),
        ("BELLWETHER_EGRESS_PROXY_BY_NAME", "true".to_owned()),
        ("BELLWETHER_EGRESS_CA_FILE", file.display().to_string()),
    ];
    let world = World::with_variables(|_| {}, "", variables);
    let rest = world.rest();
    let mapping = super::example("aws-sns");
    rest.post("/v1/intake/mappings", &mapping).await.ok();
    let path = "/v1/intake/webhooks/aws-sns";
    let confirmed = rest.post(path, &confirmation(CONFIRMATION)).await;
    assert_eq!(confirmed.ok(), json!({"succeeded": 0, "dropped": 0}));
    assert_eq!(sns.accepted().len(), 1);
    // SNS repeats a confirmation that failed.
    let unknown = CONFIRMATION.replace("2336412f", "other");
    let failed = rest.post(path, &confirmation(&unknown)).await;
    assert_eq!(failed.status, 503, "{}", failed.text());
    assert!(failed.text().contains("403"), "{}", failed.text());
    assert!(!failed.text().contains("other"), "{}", failed.text());
    // Without the handshake, the confirmation is an ordinary document.
    let mut plain = mapping;
    plain["handshake"] = Value::Null;
    rest.put("/v1/intake/mappings/aws-sns", &plain).await.ok();
    let mapped = rest.post(path, &confirmation(CONFIRMATION)).await;
    assert_eq!(mapped.ok(), json!({"succeeded": 1, "dropped": 0}));
    assert_eq!(sns.requests(), 2);
}
