//! How a destination's deliveries fare, on its way out.

use bellwether_proto::v1::{DestinationHealth, destination_health::State};

use crate::domain::{Health, HealthState};

/// The health of a destination; one without attempts is healthy.
pub fn health(health: Option<&Health>) -> DestinationHealth {
    let Some(health) = health else {
        return DestinationHealth {
            state: State::Healthy.into(),
            ..DestinationHealth::default()
        };
    };
    let state = match health.state {
        HealthState::Healthy => State::Healthy,
        HealthState::Failing => State::Failing,
        HealthState::Paused => State::Paused,
    };
    DestinationHealth {
        state: state.into(),
        since: Some(super::time::timestamp(health.since_ms)),
        last_error: health.last_error.clone(),
    }
}
