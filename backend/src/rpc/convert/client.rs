//! Clients between the wire and the domain.

use bellwether_proto::v1;

use super::time::timestamp;
use crate::domain::{Client, Rates, Role};

/// Takes a role from the wire; none for a number that names no role.
pub fn role(wire: i32) -> Option<Role> {
    match v1::Role::try_from(wire).ok()? {
        v1::Role::Unspecified => None,
        v1::Role::Ingest => Some(Role::Ingest),
        v1::Role::Viewer => Some(Role::Viewer),
        v1::Role::Operator => Some(Role::Operator),
        v1::Role::Editor => Some(Role::Editor),
        v1::Role::Admin => Some(Role::Admin),
    }
}

/// Takes the rates of a new client from the wire, where zero stands for none.
pub fn rates(requests_per_second: u32, events_per_second: u32) -> Rates {
    let rate = |wire: u32| Some(wire).filter(|rate| *rate > 0);
    Rates {
        requests_per_second: rate(requests_per_second),
        events_per_second: rate(events_per_second),
    }
}

impl From<Role> for v1::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Ingest => Self::Ingest,
            Role::Viewer => Self::Viewer,
            Role::Operator => Self::Operator,
            Role::Editor => Self::Editor,
            Role::Admin => Self::Admin,
        }
    }
}

impl From<Client> for v1::Client {
    fn from(client: Client) -> Self {
        Self {
            name: client.name.to_string(),
            role: v1::Role::from(client.role).into(),
            create_time: Some(timestamp(client.create_ms)),
            last_used_time: client.last_used_ms.map(timestamp),
            requests_per_second: client.rates.requests_per_second.unwrap_or(0),
            events_per_second: client.rates.events_per_second.unwrap_or(0),
            expire_time: client.expire_ms.map(timestamp),
            last_used_address: client
                .last_used_from
                .map_or_else(String::new, |it| it.to_string()),
            previous_key_expire_time: client.previous.map(|it| timestamp(it.until_ms)),
            dialects: client.dialects.iter().map(|it| it.word().into()).collect(),
        }
    }
}
