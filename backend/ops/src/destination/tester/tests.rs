//! Tests of the results and records of destination tests, with real sockets.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::net::TcpListener;

use super::{CompletedTest, SentTest, Test, TestSubject, TestTarget, Tester};
use crate::{
    delivery::Deliveries,
    domain::{
        Delivery, DeliverySettings, DeliveryState, Destination, DestinationKind, EventId,
        IncomingEvent, Outcome, Secret, Severity, TemplateLanguage,
        destination::{Header, HeaderValue, PagerDuty, Slack, Webhook},
    },
    error::Error,
    samples::{self, world},
    sending::{
        SenderParts,
        receiver::{Receiver, Reply},
    },
    store::{Direction, Index, Lane, engine::Range},
};

const CANARY: &str = "canary-secret";

type World = world::World<SenderParts>;

impl World {
    fn new() -> Self {
        let world = world::at_rest();
        let part = SenderParts::at(Arc::clone(&world.clock));
        world.with(part)
    }

    fn tester(&self) -> Tester {
        samples::tester(&self.store, self)
    }

    async fn test(&self, target: TestTarget, about: TestSubject) -> Result<Tested, Error> {
        let test = Test {
            target,
            message_language: TemplateLanguage::Mustache,
            message: "about {{event.summary}}".into(),
            about,
            contact: None,
        };
        let CompletedTest {
            opening, closing, ..
        } = self.tester().run_test(test).await?;
        let SentTest {
            delivery, attempt, ..
        } = opening;
        let deliveries = Deliveries::new(self.store.clone(), self.clock());
        let (stored, attempts) = deliveries.get(delivery.id).await?;
        assert_eq!(stored.state, delivery.state);
        assert_eq!(attempts, std::slice::from_ref(&attempt));
        let shown = format!("{attempt:?}");
        assert!(!shown.contains(CANARY), "a secret shows in {shown}");
        Ok(Tested {
            delivery,
            attempt,
            closing,
        })
    }
}

struct Tested {
    delivery: Delivery,
    attempt: crate::domain::Attempt,
    closing: Option<SentTest>,
}

fn webhook(url: String) -> DestinationKind {
    DestinationKind::Webhook(Webhook {
        url,
        headers: vec![Header {
            name: "authorization".into(),
            value: HeaderValue::Secret(Secret::new(format!("Bearer {CANARY}"))),
        }],
        ..Webhook::default()
    })
}

fn draft(kind: DestinationKind) -> TestTarget {
    TestTarget::Draft {
        name: String::new(),
        kind: Box::new(kind),
        language: TemplateLanguage::Mustache,
        settings: DeliverySettings::default(),
    }
}

#[tokio::test]
async fn every_response_maps_to_outcome_and_explanation() {
    use Outcome::{Delivered, Rejected, Unknown};
    let redirect = vec![("location", "http://127.0.0.1:1/".to_owned())];
    let busy = vec![("retry-after", "7".to_owned())];
    let text = |text: &str| text.to_owned();
    let cases = [
        (Reply::status(200), Delivered, "200 OK"),
        (
            Reply::Answer(403, Vec::new(), text("wrong token canary-secret")),
            Rejected,
            "403",
        ),
        (
            Reply::Answer(302, redirect, text("")),
            Rejected,
            "redirects are not followed",
        ),
        (Reply::Answer(429, busy, text("")), Rejected, "429"),
        (Reply::status(500), Rejected, "500"),
        (Reply::Hang, Unknown, "no response within 300ms"),
        (Reply::Close, Unknown, "closed without a response"),
        (Reply::Huge, Delivered, "200"),
    ];
    for (reply, outcome, said) in cases {
        let shown = format!("{reply:?}");
        let mut world = World::new();
        if matches!(reply, Reply::Hang) {
            world.config.delivery.timeout = Duration::from_millis(300);
        }
        let receiver = Receiver::start(move |_| reply.clone()).await;
        let tested = world
            .test(draft(webhook(receiver.url("/"))), TestSubject::Sample)
            .await;
        let Tested {
            delivery,
            attempt,
            closing,
        } = tested.unwrap();
        assert!(closing.is_none(), "{shown}");
        assert_eq!(attempt.outcome, Some(outcome), "{shown}");
        assert!(
            attempt.explanation.contains(said),
            "{shown}: {}",
            attempt.explanation
        );
        assert!(delivery.test);
        let state = if outcome == Delivered {
            DeliveryState::Delivered
        } else {
            DeliveryState::Dead
        };
        assert_eq!(delivery.state, state);
        assert_eq!(receiver.count(), 1, "{shown}: a test is one message");
        let request = attempt.transcript.request.expect(&shown);
        assert_eq!(request.headers["authorization"], "********");
        let body = attempt
            .transcript
            .response
            .map_or(0, |response| response.body.len());
        assert!(body <= 16 * 1024);
    }
}

#[tokio::test]
async fn unsent_request_has_no_transcript() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let mut world = World::new();
    let kind = webhook(format!("http://{closed}/"));
    let tested = world.test(draft(kind), TestSubject::Sample).await.unwrap();
    assert_eq!(tested.attempt.outcome, Some(Outcome::Unreachable));
    assert!(tested.attempt.explanation.contains("connection refused"));
    assert_eq!(tested.attempt.transcript.request, None);
    world.config.egress.allow.clear();
    let tested = world
        .test(draft(webhook(receiver.url("/"))), TestSubject::Sample)
        .await
        .unwrap();
    assert_eq!(tested.attempt.outcome, Some(Outcome::Blocked));
    assert!(tested.attempt.explanation.contains("127.0.0.0/8"));
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn slack_error_with_status_200_is_a_rejection() {
    let receiver =
        Receiver::start(|_| Reply::json(&json!({"ok": false, "error": "invalid_auth"}))).await;
    let mut world = World::new();
    world.config.providers.slack = receiver.url("");
    let kind = DestinationKind::Slack(Slack {
        channel: "#ops".into(),
        token: Secret::new(CANARY),
        ..Slack::default()
    });
    let tested = world.test(draft(kind), TestSubject::Sample).await.unwrap();
    assert_eq!(tested.attempt.outcome, Some(Outcome::Rejected));
    assert!(tested.attempt.explanation.contains("invalid_auth"));
    assert_eq!(tested.attempt.transcript.response.unwrap().status, 200);
}

#[tokio::test]
async fn stored_destination_is_tested_without_the_queue() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let world = World::new();
    let destination = Destination {
        template_language: TemplateLanguage::Mustache,
        id: samples::id("hook"),
        name: samples::name("hook"),
        description: String::new(),
        tags: Vec::new(),
        kind: webhook(receiver.url("/")),
        delivery: DeliverySettings::default(),
        revision: 1,
        create_ms: 0,
        update_ms: 0,
    };
    let event = samples::event("db-7");
    let mut changes = world.store.new_changes();
    changes.insert(&destination);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    let about = TestSubject::Incoming(Box::new(IncomingEvent {
        severity: Some(Severity::Critical),
        summary: "the cellar is wet".into(),
        ..event
    }));
    let tested = world
        .test(TestTarget::Stored("hook".into()), about)
        .await
        .unwrap();
    assert_eq!(tested.delivery.destination, destination.id);
    assert_eq!(tested.delivery.event, None);
    assert!(
        receiver.received_requests()[0]
            .body
            .contains("the cellar is wet")
    );
    let engine = world.store.engine();
    let all = Range::with_prefix(&[]);
    let due = engine
        .entries(Index::DeliveryByDue, all, Direction::Ascending, 1)
        .await
        .unwrap();
    assert!(due.is_empty());
}

#[tokio::test]
async fn unknown_destination_or_event_is_not_found() {
    let world = World::new();
    let nobody = world
        .test(TestTarget::Stored("nobody".into()), TestSubject::Sample)
        .await;
    assert!(matches!(nobody, Err(Error::NotFound(_))));
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let unknown = TestSubject::Stored(EventId::from_bytes([7; 20]));
    let unknown = world.test(draft(webhook(receiver.url("/"))), unknown).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))));
    assert_eq!(receiver.count(), 0);
}

async fn begun(world: &World, receiver: &Receiver) -> Delivery {
    while receiver.count() == 0 {
        tokio::task::yield_now().await;
    }
    let [delivery] = samples::all::<Delivery>(&world.store)
        .await
        .try_into()
        .unwrap();
    delivery
}

fn sample_test(kind: DestinationKind) -> Test {
    Test {
        target: draft(kind),
        message: String::new(),
        message_language: TemplateLanguage::Mustache,
        about: TestSubject::Sample,
        contact: None,
    }
}

#[tokio::test]
async fn abandoned_test_is_still_recorded() {
    let receiver = Receiver::start(|_| Reply::Hang).await;
    let mut world = World::new();
    world.config.delivery.timeout = Duration::from_millis(300);
    let tester = world.tester();
    let kind = webhook(receiver.url("/"));
    let begun = tokio::select! {
        ended = tester.run_test(sample_test(kind)) => panic!("the receiver hangs: {ended:?}"),
        begun = begun(&world, &receiver) => begun,
    };
    assert!(matches!(begun.state, DeliveryState::Leased { .. }));
    let deliveries = Deliveries::new(world.store.clone(), world.clock());
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let (delivery, attempts) = deliveries.get(begun.id).await.unwrap();
            if delivery.state == DeliveryState::Dead {
                return attempts;
            }
            tokio::task::yield_now().await;
        }
    });
    let [attempt] = ended.await.expect("it ends").try_into().unwrap();
    assert_eq!(attempt.outcome, Some(Outcome::Unknown));
}

/// Returns the event action and the deduplication key of each request to PagerDuty.
fn pagerduty_requests(receiver: &Receiver) -> Vec<(String, String)> {
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    let request = |body: &str| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        (text(&body["event_action"]), text(&body["dedup_key"]))
    };
    let received = receiver.received_requests();
    received.iter().map(|it| request(&it.body)).collect()
}

fn pagerduty() -> DestinationKind {
    DestinationKind::PagerDuty(PagerDuty {
        routing_key: Secret::new(CANARY),
        ..PagerDuty::default()
    })
}

#[tokio::test]
async fn incident_opened_by_a_test_is_closed() {
    let accepted = json!({"status": "success", "message": "ok", "dedup_key": "k"});
    let receiver = Receiver::start(move |_| Reply::Answer(202, Vec::new(), accepted.to_string()));
    let receiver = receiver.await;
    let mut world = World::new();
    world.config.providers.pagerduty = receiver.url("");
    let subject = samples::event("db-7");
    let real = subject.id();
    let about = TestSubject::Incoming(Box::new(subject));
    let tested = world.test(draft(pagerduty()), about).await.unwrap();
    let closing = tested.closing.unwrap();
    assert_eq!(closing.attempt.outcome, Some(Outcome::Delivered));
    assert!(closing.delivery.test && closing.delivery.id != tested.delivery.id);
    let requests = pagerduty_requests(&receiver);
    let actions: Vec<_> = requests.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(actions, ["trigger", "resolve"]);
    assert_eq!(requests[0].1, requests[1].1);
    assert!(!requests[0].1.contains(&real.to_string()), "{requests:?}");
    assert_eq!(samples::all::<Delivery>(&world.store).await.len(), 2);
}

#[tokio::test]
async fn rejected_test_closes_nothing() {
    let receiver = Receiver::start(|_| Reply::status(400)).await;
    let mut world = World::new();
    world.config.providers.pagerduty = receiver.url("");
    let tested = world.test(draft(pagerduty()), TestSubject::Sample).await;
    let tested = tested.unwrap();
    assert_eq!(tested.attempt.outcome, Some(Outcome::Rejected));
    assert!(tested.closing.is_none());
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn render_reports_the_lasting_effect_of_a_test() {
    let world = World::new();
    for (kind, is_lasting) in [
        (pagerduty(), true),
        (webhook("https://example.com/".into()), false),
    ] {
        let rendered = world.tester().render_test(sample_test(kind)).await.unwrap();
        assert_eq!(!rendered.lasting_effect.is_empty(), is_lasting);
    }
}
