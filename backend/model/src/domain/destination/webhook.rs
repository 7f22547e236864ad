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
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnClear {
    /// The URL; empty means the URL of the webhook.
    pub url: String,
    pub method: WebhookMethod,
    /// The template of the body; empty means the standard document.
    pub payload: String,
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
