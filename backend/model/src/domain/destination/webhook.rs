//! Settings of a webhook other than its URL, body and headers.

use std::collections::BTreeMap;

use crate::domain::{Clause, Secret};

/// The HTTP method of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebhookMethod {
    /// `POST`.
    #[default]
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

/// The authentication of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A bearer token.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// A token from the OAuth 2 client credentials grant.
    OAuth2 {
        /// The token endpoint.
        token_url: String,
        /// The client id.
        client_id: String,
        /// The client secret.
        client_secret: Secret,
        /// The requested scope; may be empty.
        scope: String,
        /// The requested audience; may be empty.
        audience: String,
        /// Further parameters of the token request.
        params: BTreeMap<String, String>,
    },
    /// A TLS client certificate.
    Mtls {
        /// The certificate chain, in PEM.
        certificate: String,
        /// The private key, in PEM.
        private_key: Secret,
    },
}

/// The request for a closed event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnClear {
    /// The URL; empty means the same URL.
    pub url: String,
    /// The HTTP method.
    pub method: WebhookMethod,
    /// The template of the body; empty means the standard document.
    pub payload: String,
}

/// A template variable mapped from another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueMap {
    /// The source variable.
    pub from: String,
    /// The replacement for each value.
    pub map: BTreeMap<String, String>,
    /// The replacement for any other value.
    pub default: String,
}

/// Conditions for a response to count as accepted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expect {
    /// The accepted statuses; empty means 200 to 299.
    pub statuses: Vec<u16>,
    /// A condition on the body of the response.
    pub body: Option<Clause>,
    /// A condition on the body of an error response that shows a misconfigured destination.
    pub destination: Option<Clause>,
}
