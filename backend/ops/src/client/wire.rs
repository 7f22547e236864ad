//! Conversion of clients.

use bellwether_proto::v1;

use super::{ClientDraft, ClientEdit};
use crate::{
    domain::{Client, Rates, Role},
    from_domain::FromDomain,
    wire::time::{timestamp, to_millis},
};

fn role(wire: i32) -> Option<Role> {
    match v1::Role::try_from(wire).ok()? {
        v1::Role::Unspecified => None,
        v1::Role::Ingest => Some(Role::Ingest),
        v1::Role::Viewer => Some(Role::Viewer),
        v1::Role::Operator => Some(Role::Operator),
        v1::Role::Editor => Some(Role::Editor),
        v1::Role::Admin => Some(Role::Admin),
    }
}

impl From<v1::CreateClientRequest> for ClientDraft {
    fn from(wire: v1::CreateClientRequest) -> Self {
        Self {
            name: wire.name,
            role: role(wire.role),
            rates: rates(wire.requests_per_second, wire.events_per_second),
            dialects: wire.dialects,
            expire_ms: wire.expire_time.as_ref().map(to_millis),
            scope_tags: wire.scope_tags,
            scope_sources: wire.scope_sources,
            certificates: wire.certificates,
        }
    }
}

pub fn edit(wire: v1::UpdateClientRequest) -> (String, ClientEdit) {
    let texts = |wire: Option<v1::Texts>| wire.map(|it| it.values);
    let edit = ClientEdit {
        rates: Rates {
            requests_per_second: wire.requests_per_second,
            events_per_second: wire.events_per_second,
        },
        dialects: wire.dialects.map(|it| it.names),
        expire_ms: wire.expire_time.as_ref().map(to_millis),
        scope_tags: texts(wire.scope_tags),
        scope_sources: texts(wire.scope_sources),
        certificates: texts(wire.certificates),
    };
    (wire.name, edit)
}

/// Converts the rates of a new client, where zero means no limit.
fn rates(requests_per_second: u32, events_per_second: u32) -> Rates {
    let rate = |wire: u32| Some(wire).filter(|rate| *rate > 0);
    Rates {
        requests_per_second: rate(requests_per_second),
        events_per_second: rate(events_per_second),
    }
}

impl FromDomain<Client> for v1::Client {
    fn from_domain(client: Client) -> Self {
        Self {
            name: client.name.to_string(),
            role: client.role as i32,
            create_time: Some(timestamp(client.create_ms)),
            last_used_time: client.last_used_ms.map(timestamp),
            requests_per_second: client.rates.requests_per_second.unwrap_or(0),
            events_per_second: client.rates.events_per_second.unwrap_or(0),
            expire_time: client.expire_ms.map(timestamp),
            last_used_address: client
                .last_used_from
                .map_or_else(String::new, |it| it.to_string()),
            previous_key_expire_time: client.previous.map(|it| timestamp(it.until_ms)),
            dialects: client
                .dialects
                .iter()
                .map(|it| it.as_str().into())
                .collect(),
            scope_tags: client.scope.tags.into_iter().collect(),
            scope_sources: client.scope.sources.into_iter().collect(),
            certificates: client
                .certificates
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
        }
    }
}
