//! Deliveries, their attempts and the health of destinations.

use std::{collections::BTreeMap, time::Duration};

use super::{AT_MS, destinations, id, name, occurrence, trigger};
use crate::domain::{
    Attempt, Content, Delivery, DeliveryState, DigestMembership, Health, HealthState, Outcome,
    Secret, Severity, Status, TemplateLanguage, Transcript,
    delivery::Recipients,
    delivery::ReportedState,
    delivery::Request,
    delivery::Response,
    delivery::RuleContent,
    destination::{AttemptSummary, KeptValue, KeptValues, RejectedRecipient, RepeatedRejections},
};

/// Returns a delivery after one attempt.
pub fn delivery(number: u64, state: DeliveryState) -> Delivery {
    let rule_content = RuleContent {
        name: "page".into(),
        description: "tell the team".into(),
        message: "{{event.summary}}".into(),
        template_language: TemplateLanguage::Mustache,
        enabled: true,
        repeat_interval_seconds: 600,
        trigger_names: vec![name("disk")],
        destination_names: vec![name("to 0")],
    };
    let occurrence = occurrence(1);
    Delivery {
        id: id(60 + number),
        rule: Some(id(31)),
        destination: id(21),
        destination_name: "to 1".into(),
        event: Some(occurrence.event),
        state,
        test: false,
        attempts: 1,
        deferrals: 0,
        awaits_receiver: false,
        is_reduced: false,
        last_error: "answered 500".into(),
        create_ms: AT_MS + 1,
        end_ms: state.due_ms().is_none().then_some(AT_MS + 5),
        retry_of: Some(id(61)),
        origin: None,
        retried_as: None,
        folding: DigestMembership::Open,
        recipients: Recipients::default(),
        content: Content {
            clear: true,
            occurrence,
            rule: rule_content,
            trigger: Some(trigger("disk")),
            destination_kind: destinations().swap_remove(1).kind,
            template_language: TemplateLanguage::Mustache,
            group: None,
            thread: None,
            digest: None,
            contact: None,
            previous: None,
        },
        in_thread: false,
        behind: None,
        may_have_arrived: false,
        kept: KeptValues::default(),
    }
}

/// Returns a delivery whose response had a value to keep.
pub fn keeping_delivery(is_secret: bool) -> Delivery {
    let value = KeptValue {
        name: "issue".into(),
        text: Secret::new("OPS-1"),
        is_secret,
    };
    Delivery {
        in_thread: true,
        kept: KeptValues {
            origin: "https://example.com".into(),
            values: vec![value],
        },
        ..delivery(9, DeliveryState::Delivered)
    }
}

/// Returns a delivery that follows another one of the same rule and occurrence.
pub fn later_delivery() -> Delivery {
    let mut later = delivery(8, DeliveryState::Delivered);
    later.content.previous = Some(ReportedState {
        severity: Severity::Warning,
        status: Status::Closed,
    });
    later
}

/// Returns a delivery of a mail that the server accepted for some addresses and rejected for one.
pub fn partial_delivery() -> Delivery {
    Delivery {
        recipients: Recipients {
            reached: vec!["a@example.com".into(), "b@example.com".into()],
            refused: vec!["c@example.com".into()],
        },
        ..delivery(5, DeliveryState::Retry { due_ms: 3 })
    }
}

/// Returns a delivery that its receiver deferred, and whose full form was rejected.
pub fn deferred_delivery() -> Delivery {
    Delivery {
        attempts: 4,
        deferrals: 2,
        awaits_receiver: true,
        is_reduced: true,
        ..delivery(6, DeliveryState::Retry { due_ms: 4 })
    }
}

/// Returns a delivery that was sent again.
pub fn retried_delivery() -> Delivery {
    Delivery {
        retried_as: Some(id(62)),
        ..delivery(3, DeliveryState::Dead)
    }
}

pub fn attempt(delivery: u64, number: u32) -> Attempt {
    let headers = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    Attempt {
        delivery: id(60 + delivery),
        number,
        start_ms: AT_MS + 2,
        duration: Some(Duration::from_micros(1_234)),
        outcome: Some(Outcome::Rejected),
        explanation: "answered 500".into(),
        is_reduced: false,
        transcript: Transcript {
            request: Some(Request {
                method: "POST".into(),
                url: "https://example.com/hook".into(),
                headers: headers.clone(),
                body: "sent".into(),
            }),
            response: Some(Response {
                status: 500,
                headers,
                body: "came back".into(),
            }),
        },
    }
}

pub fn reduced_attempt() -> Attempt {
    Attempt {
        is_reduced: true,
        ..attempt(6, 4)
    }
}

pub fn health() -> Health {
    Health {
        destination: id(21),
        state: HealthState::Failing,
        since_ms: AT_MS + 3,
        failures: 2,
        last_error: "answered 500".into(),
        last_success_ms: None,
        tried: Vec::new(),
        refused: Vec::new(),
        requested_until_ms: None,
        failing_since_ms: None,
        alike: RepeatedRejections::default(),
    }
}

/// Returns the health of a destination whose receiver requested a pause.
pub fn asking_health() -> Health {
    Health {
        requested_until_ms: Some(AT_MS + 90_000),
        ..health()
    }
}

/// Returns the health of a destination that alternates between failing and responding.
pub fn alternating_health() -> Health {
    Health {
        state: HealthState::Healthy,
        failing_since_ms: Some(AT_MS + 1),
        ..health()
    }
}

/// Returns the health of a destination that rejects all messages with the same response.
pub fn alike_health() -> Health {
    Health {
        alike: RepeatedRejections {
            kind: "400".into(),
            messages: vec![id(61), id(62)],
        },
        ..health()
    }
}

/// Returns a delivery that may have arrived, and waits for another one to end.
pub fn behind_delivery() -> Delivery {
    Delivery {
        in_thread: true,
        behind: Some(id(61)),
        may_have_arrived: true,
        ..delivery(7, DeliveryState::Retry { due_ms: 3 })
    }
}

/// Returns a delivery that ended without success, and may have arrived.
pub fn uncertain_delivery() -> Delivery {
    Delivery {
        in_thread: true,
        may_have_arrived: true,
        ..delivery(8, DeliveryState::Dead)
    }
}

/// Returns the health of a mail destination with rejected addresses.
pub fn refusing_health() -> Health {
    let refused = |address: &str, said: &str, is_permanent| RejectedRecipient {
        address: address.into(),
        said: said.into(),
        is_permanent,
        since_ms: AT_MS + 3,
    };
    Health {
        refused: vec![
            refused("a@example.com", "450 greylisted", false),
            refused("b@example.com", "550 no such user", true),
        ],
        ..health()
    }
}

/// Returns the health of a destination with stored attempts.
pub fn tried_health() -> Health {
    Health {
        last_success_ms: Some(AT_MS + 2),
        tried: vec![
            AttemptSummary {
                took_ms: 70,
                is_delivered: true,
            },
            AttemptSummary {
                took_ms: 30_000,
                is_delivered: false,
            },
        ],
        ..health()
    }
}
