//! What a webhook has beside an address, a body and headers. Its secrets stand with the others.

use std::collections::BTreeMap;

use super::query::ClauseV1;
use crate::domain::{
    Secret,
    destination::{Auth, Expect, OnClear, ValueMap, Webhook, WebhookMethod},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum MethodV1 {
    Post = 0,
    Put = 1,
    Patch = 2,
    Delete = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WebhookV1 {
    #[prost(message, optional, tag = "1")]
    auth: Option<AuthV1>,
    #[prost(message, optional, tag = "2")]
    on_clear: Option<OnClearV1>,
    #[prost(btree_map = "string, message", tag = "3")]
    values: BTreeMap<String, ValueMapV1>,
    #[prost(message, optional, tag = "4")]
    expect: Option<ExpectV1>,
    #[prost(bool, tag = "5")]
    compress: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AuthV1 {
    #[prost(enumeration = "AuthKindV1", tag = "1")]
    kind: i32,
    /// The user name, or the client.
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    token_url: String,
    #[prost(string, tag = "4")]
    scope: String,
    #[prost(string, tag = "5")]
    certificate: String,
    #[prost(string, tag = "6")]
    audience: String,
    #[prost(btree_map = "string, string", tag = "7")]
    params: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum AuthKindV1 {
    Unknown = 0,
    Basic = 1,
    Bearer = 2,
    OAuth2 = 3,
    Mtls = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OnClearV1 {
    #[prost(string, tag = "1")]
    url: String,
    #[prost(enumeration = "MethodV1", tag = "2")]
    method: i32,
    #[prost(string, tag = "3")]
    payload: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ValueMapV1 {
    #[prost(string, tag = "1")]
    from: String,
    #[prost(btree_map = "string, string", tag = "2")]
    map: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    default: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExpectV1 {
    #[prost(uint32, repeated, tag = "1")]
    statuses: Vec<u32>,
    #[prost(message, optional, tag = "2")]
    body: Option<ClauseV1>,
}

impl From<WebhookMethod> for MethodV1 {
    fn from(method: WebhookMethod) -> Self {
        match method {
            WebhookMethod::Post => Self::Post,
            WebhookMethod::Put => Self::Put,
            WebhookMethod::Patch => Self::Patch,
            WebhookMethod::Delete => Self::Delete,
        }
    }
}

impl From<MethodV1> for WebhookMethod {
    fn from(method: MethodV1) -> Self {
        match method {
            MethodV1::Post => Self::Post,
            MethodV1::Put => Self::Put,
            MethodV1::Patch => Self::Patch,
            MethodV1::Delete => Self::Delete,
        }
    }
}

/// What was read.
#[derive(Debug)]
pub(super) struct More {
    pub(super) auth: Option<Box<Auth>>,
    pub(super) on_clear: Option<Box<OnClear>>,
    pub(super) values: BTreeMap<String, ValueMap>,
    pub(super) expect: Option<Box<Expect>>,
    pub(super) compress: bool,
}

impl WebhookV1 {
    /// What is beyond the first form of a webhook; none when nothing is.
    pub(super) fn new(webhook: &Webhook) -> Option<Self> {
        let value = |value: &ValueMap| ValueMapV1 {
            from: value.from.clone(),
            map: value.map.clone(),
            default: value.default.clone(),
        };
        let values = webhook.values.iter();
        let record = Self {
            auth: webhook.auth.as_deref().map(AuthV1::from),
            on_clear: webhook.on_clear.as_ref().map(|it| OnClearV1 {
                url: it.url.clone(),
                method: MethodV1::from(it.method).into(),
                payload: it.payload.clone(),
            }),
            values: values.map(|(name, it)| (name.clone(), value(it))).collect(),
            expect: webhook.expect.as_ref().map(|it| ExpectV1 {
                statuses: it.statuses.iter().copied().map(u32::from).collect(),
                body: it.body.as_ref().map(ClauseV1::from),
            }),
            compress: webhook.compress,
        };
        (record != Self::default()).then_some(record)
    }

    pub(super) fn into_more(self) -> Option<More> {
        let on_clear = match self.on_clear {
            None => None,
            Some(record) => Some(Box::new(OnClear {
                url: record.url,
                method: MethodV1::try_from(record.method).ok()?.into(),
                payload: record.payload,
            })),
        };
        let expect = match self.expect {
            None => None,
            Some(record) => Some(Box::new(Expect {
                statuses: record
                    .statuses
                    .into_iter()
                    .map(|it| u16::try_from(it).ok())
                    .collect::<Option<_>>()?,
                body: match record.body {
                    None => None,
                    Some(clause) => Some(clause.into_query()?.clause),
                },
            })),
        };
        let value = |it: ValueMapV1| ValueMap {
            from: it.from,
            map: it.map,
            default: it.default,
        };
        let values = self.values.into_iter();
        Some(More {
            auth: match self.auth {
                None => None,
                Some(record) => Some(Box::new(record.into_auth()?)),
            },
            on_clear,
            values: values.map(|(name, it)| (name, value(it))).collect(),
            expect,
            compress: self.compress,
        })
    }
}

impl From<&Auth> for AuthV1 {
    fn from(auth: &Auth) -> Self {
        let mut record = Self::default();
        let kind = match auth {
            Auth::Basic { username, .. } => {
                record.name.clone_from(username);
                AuthKindV1::Basic
            }
            Auth::Bearer { .. } => AuthKindV1::Bearer,
            Auth::OAuth2 {
                token_url,
                client_id,
                scope,
                audience,
                params,
                ..
            } => {
                record.name.clone_from(client_id);
                record.token_url.clone_from(token_url);
                record.scope.clone_from(scope);
                record.audience.clone_from(audience);
                record.params.clone_from(params);
                AuthKindV1::OAuth2
            }
            Auth::Mtls { certificate, .. } => {
                record.certificate.clone_from(certificate);
                AuthKindV1::Mtls
            }
        };
        record.set_kind(kind);
        record
    }
}

impl AuthV1 {
    fn into_auth(self) -> Option<Auth> {
        Some(match AuthKindV1::try_from(self.kind).ok()? {
            AuthKindV1::Unknown => return None,
            AuthKindV1::Basic => Auth::Basic {
                username: self.name,
                password: Secret::default(),
            },
            AuthKindV1::Bearer => Auth::Bearer {
                token: Secret::default(),
            },
            AuthKindV1::OAuth2 => Auth::OAuth2 {
                token_url: self.token_url,
                client_id: self.name,
                client_secret: Secret::default(),
                scope: self.scope,
                audience: self.audience,
                params: self.params,
            },
            AuthKindV1::Mtls => Auth::Mtls {
                certificate: self.certificate,
                private_key: Secret::default(),
            },
        })
    }
}
