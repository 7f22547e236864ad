//! Records of budgets and digests.

use std::time::Duration;

use super::{AT_MS, delivery, destinations, id, name, occurrence};
use crate::domain::{
    Budget, BudgetWindow, Delivery, DeliveryState, Destination, DigestContent, DigestItem,
    DigestMembership, DigestRow, Severity,
};

/// Returns the use of a message budget in a window.
pub fn budget_window() -> BudgetWindow {
    BudgetWindow {
        destination: id(21),
        until_ms: AT_MS + 600_000,
        sent: 8,
        held: Some(id(65)),
        digest: Some(id(66)),
        dead: vec![id(67)],
    }
}

pub fn budget_destination() -> Destination {
    let mut destination = destinations().swap_remove(1);
    destination.name = name("budgeted");
    destination.delivery.budget = Some(Budget {
        messages: 10,
        per: Duration::from_secs(600),
        critical_share: 20,
    });
    destination
}

/// Returns a delivery that is sent separately, regardless of the budget.
pub fn lone_delivery() -> Delivery {
    Delivery {
        folding: DigestMembership::Alone,
        ..delivery(910, DeliveryState::Pending { due_ms: 7 })
    }
}

pub fn folded_delivery() -> Delivery {
    Delivery {
        folding: DigestMembership::Into(id(66)),
        ..delivery(911, DeliveryState::Folded)
    }
}

pub fn digest_delivery() -> Delivery {
    let mut digest = delivery(912, DeliveryState::Delivered);
    let row = |rule_name: Option<&str>, severity| DigestRow {
        rule_name: rule_name.map(str::to_owned),
        severity,
        count: 2,
        clear_count: 1,
    };
    digest.rule = None;
    digest.event = None;
    digest.content.digest = Some(DigestContent {
        id: digest.id,
        start_ms: AT_MS,
        end_ms: AT_MS + 5,
        count: 4,
        clear_count: 2,
        rows: vec![
            row(Some("page"), Severity::Error),
            row(None, Severity::Warning),
        ],
        items: vec![DigestItem {
            rule_name: "page".into(),
            clear: true,
            at_ms: AT_MS + 5,
            occurrence: occurrence(1),
        }],
    });
    digest
}
