//! Clients.

use crate::domain::{
    CertificateName, Client, Dialect, KeyScope, Name, PreviousKey, Rates, RecordId, Role,
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClientV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(enumeration = "RoleV1", tag = "3")]
    role: i32,
    #[prost(bytes = "vec", tag = "4")]
    key_hash: Vec<u8>,
    #[prost(int64, tag = "5")]
    create_ms: i64,
    #[prost(int64, optional, tag = "6")]
    last_used_ms: Option<i64>,
    #[prost(uint32, optional, tag = "7")]
    requests_per_second: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    events_per_second: Option<u32>,
    #[prost(string, repeated, tag = "9")]
    dialects: Vec<String>,
    #[prost(int64, optional, tag = "10")]
    expire_ms: Option<i64>,
    #[prost(string, tag = "11")]
    last_used_from: String,
    #[prost(bytes = "vec", tag = "12")]
    previous_hash: Vec<u8>,
    #[prost(int64, tag = "13")]
    previous_until_ms: i64,
    #[prost(string, repeated, tag = "14")]
    scope_tags: Vec<String>,
    #[prost(string, repeated, tag = "15")]
    scope_sources: Vec<String>,
    #[prost(string, repeated, tag = "16")]
    certificates: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum RoleV1 {
    Unknown = 0,
    Ingest = 1,
    Viewer = 2,
    Operator = 3,
    Editor = 4,
    Admin = 5,
}

impl From<&Client> for ClientV1 {
    fn from(client: &Client) -> Self {
        let role = match client.role {
            Role::Ingest => RoleV1::Ingest,
            Role::Viewer => RoleV1::Viewer,
            Role::Operator => RoleV1::Operator,
            Role::Editor => RoleV1::Editor,
            Role::Admin => RoleV1::Admin,
        };
        Self {
            id: client.id.to_bytes().into(),
            name: client.name.as_str().into(),
            role: role.into(),
            key_hash: client.key_hash.into(),
            create_ms: client.create_ms,
            last_used_ms: client.last_used_ms,
            requests_per_second: client.rates.requests_per_second,
            events_per_second: client.rates.events_per_second,
            dialects: client.dialects.iter().map(|it| it.word().into()).collect(),
            expire_ms: client.expire_ms,
            last_used_from: client
                .last_used_from
                .map_or_else(String::new, |it| it.to_string()),
            previous_hash: client
                .previous
                .as_ref()
                .map_or_else(Vec::new, |it| it.hash.into()),
            previous_until_ms: client.previous.as_ref().map_or(0, |it| it.until_ms),
            scope_tags: client.scope.tags.iter().cloned().collect(),
            scope_sources: client.scope.sources.iter().cloned().collect(),
            certificates: client
                .certificates
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
        }
    }
}

impl ClientV1 {
    /// What others may know of it: not what its key is found by.
    pub(crate) fn without_key(client: &Client) -> Self {
        Self {
            key_hash: Vec::new(),
            previous_hash: Vec::new(),
            ..client.into()
        }
    }

    pub(crate) fn into_bare_client(self) -> Option<Client> {
        let bare = Self {
            key_hash: vec![0; 32],
            ..self
        };
        bare.into_client()
    }

    pub(crate) fn into_client(self) -> Option<Client> {
        let role = match RoleV1::try_from(self.role).ok()? {
            RoleV1::Unknown => return None,
            RoleV1::Ingest => Role::Ingest,
            RoleV1::Viewer => Role::Viewer,
            RoleV1::Operator => Role::Operator,
            RoleV1::Editor => Role::Editor,
            RoleV1::Admin => Role::Admin,
        };
        let previous = match &*self.previous_hash {
            [] => None,
            hash => Some(PreviousKey {
                hash: hash.try_into().ok()?,
                until_ms: self.previous_until_ms,
            }),
        };
        let dialects = self.dialects.iter().map(|word| Dialect::of_word(word));
        let certificates = self.certificates.iter();
        let certificates = certificates.map(|text| CertificateName::parse(text).ok());
        Some(Client {
            scope: KeyScope {
                tags: self.scope_tags.into_iter().collect(),
                sources: self.scope_sources.into_iter().collect(),
            },
            certificates: certificates.collect::<Option<_>>()?,
            dialects: dialects.collect::<Option<_>>()?,
            id: RecordId::from_bytes(self.id.try_into().ok()?),
            name: Name::parse(&self.name).ok()?,
            role,
            rates: Rates {
                requests_per_second: self.requests_per_second,
                events_per_second: self.events_per_second,
            },
            key_hash: self.key_hash.try_into().ok()?,
            create_ms: self.create_ms,
            last_used_ms: self.last_used_ms,
            last_used_from: self.last_used_from.parse().ok(),
            expire_ms: self.expire_ms,
            previous,
        })
    }
}
