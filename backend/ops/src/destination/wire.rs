//! Conversion of the settings of deliveries from and to the wire.

use std::time::Duration;

use bellwether_proto::v1;

use crate::{
    domain::{Budget, DeliverySettings},
    error::Violation,
    limits::BUDGET_CRITICAL_SHARE_DEFAULT,
    wire::{time::duration, to_i32},
};

pub(super) fn settings_from_wire(
    wire: Option<v1::DeliverySettings>,
    violations: &mut Vec<Violation>,
) -> DeliverySettings {
    let wire = wire.unwrap_or_default();
    let budget = wire.budget.map(|it| budget_from_wire(it, violations));
    let mut count = |field: &str, count: i32| match u32::try_from(count) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(_negative) => {
            violations.push(Violation::new(format!("delivery.{field}"), "is negative"));
            None
        }
    };
    DeliverySettings {
        max_in_flight: count("maxInFlight", wire.max_in_flight),
        max_per_minute: count("maxPerMinute", wire.max_per_minute),
        max_attempts: count("maxAttempts", wire.max_attempts),
        budget,
        timeout: wire.timeout.and_then(|timeout| {
            let duration = Duration::try_from(timeout);
            duration
                .map_err(|_negative| {
                    violations.push(Violation::new("delivery.timeout", "is not 1s to 30s"));
                })
                .ok()
        }),
    }
}

/// Converts a message budget. Values out of range are reported by the validation of the
/// destination.
fn budget_from_wire(wire: v1::MessageBudget, violations: &mut Vec<Violation>) -> Budget {
    let mut number = |field: &str, number: i32| {
        u32::try_from(number).unwrap_or_else(|_negative| {
            let field = format!("delivery.budget.{field}");
            violations.push(Violation::new(field, "is negative"));
            1
        })
    };
    let share = wire
        .critical_share
        .unwrap_or_else(|| i32::try_from(BUDGET_CRITICAL_SHARE_DEFAULT).unwrap_or(i32::MAX));
    Budget {
        messages: number("messages", wire.messages),
        critical_share: number("criticalShare", share),
        // Missing and negative values become zero, which is below the minimum.
        per: wire
            .per
            .and_then(|per| Duration::try_from(per).ok())
            .unwrap_or_default(),
    }
}

pub(super) fn settings_to_wire(settings: DeliverySettings) -> v1::DeliverySettings {
    let number = |count: Option<u32>| count.map_or(0, to_i32);
    v1::DeliverySettings {
        timeout: settings.timeout.map(duration),
        max_in_flight: number(settings.max_in_flight),
        max_per_minute: number(settings.max_per_minute),
        max_attempts: number(settings.max_attempts),
        budget: settings.budget.map(|it| v1::MessageBudget {
            messages: to_i32(it.messages),
            per: Some(duration(it.per)),
            critical_share: Some(to_i32(it.critical_share)),
        }),
    }
}
