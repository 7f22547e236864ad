//! Settings of a webhook other than its URL, body and headers.

use std::collections::BTreeMap;

use crate::domain::{Clause, Secret};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebhookMethod {
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    Basic {
        username: String,
        password: Secret,
    },
    Bearer {
        token: Secret,
    },
    /// A token from the OAuth 2 client credentials grant.
    OAuth2 {
        token_url: String,
        client_id: String,
        client_secret: Secret,
        /// The requested scope; may be empty.
        scope: String,
        /// The requested audience; may be empty.
        audience: String,
        params: BTreeMap<String, String>,
    },
    Mtls {
        certificate: String,
        private_key: Secret,
    },
    /// AWS Signature Version 4.
    Aws {
        access_key_id: String,
        secret_access_key: Secret,
        region: String,
        service: String,
    },
}

/// The request for a later message of a thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FollowUp {
    /// The URL; empty means the URL of the webhook.
    pub url: String,
    pub method: WebhookMethod,
    /// The template of the body; empty means the standard document.
    pub payload: String,
    /// The condition on a response that shows that there is no message to change.
    pub gone: Option<Clause>,
}

/// A value of a response that later messages of the thread can use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keep {
    /// A path in the JSON body, or `header:` and the name of a header.
    pub from: String,
    pub is_secret: bool,
}

/// The values kept from the responses to the messages of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptValues {
    /// Scheme, host and port of the receiver, which alone gets the values.
    pub origin: String,
    /// At most one per name.
    pub values: Vec<KeptValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptValue {
    pub name: String,
    pub text: Secret,
    pub is_secret: bool,
}

impl KeptValues {
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|it| it.name == name)
    }

    /// Returns the secret values, which no reader may see.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let secret = self.values.iter().filter(|it| it.is_secret);
        secret.map(|it| &it.text)
    }
}

/// A template variable mapped from another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueMap {
    /// The source variable.
    pub from: String,
    pub map: BTreeMap<String, String>,
    pub default: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expect {
    /// The accepted statuses; empty means 200 to 299.
    pub statuses: Vec<u16>,
    pub body: Option<Clause>,
    /// A condition on the body of an error response. If it matches, the destination is
    /// misconfigured.
    pub destination: Option<Clause>,
}
