//! What a webhook has beside an address, a body and headers.

use std::collections::BTreeMap;

use crate::domain::{Clause, Secret};

/// The method of a webhook.
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

/// How a webhook's request shows who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// A token by the client credentials grant of OAuth 2.
    OAuth2 {
        /// Where tokens come from.
        token_url: String,
        /// The client.
        client_id: String,
        /// What the client shows.
        client_secret: Secret,
        /// What the token is to be good for; may be empty.
        scope: String,
        /// The audience of the token; may be empty.
        audience: String,
        /// Further parameters of the request for a token.
        params: BTreeMap<String, String>,
    },
    /// A certificate, shown when the connection is made.
    Mtls {
        /// The certificate and those that it rests on, in PEM.
        certificate: String,
        /// Its key, in PEM.
        private_key: Secret,
    },
}

/// What is sent when an event was closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnClear {
    /// Where to; empty means the same address.
    pub url: String,
    /// The method.
    pub method: WebhookMethod,
    /// A template for the body; empty means the standard document.
    pub payload: String,
}

/// A variable built from another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueMap {
    /// The other variable.
    pub from: String,
    /// What stands for each of its values.
    pub map: BTreeMap<String, String>,
    /// What stands for every other value.
    pub default: String,
}

/// What an answer has to be for a message to be taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expect {
    /// Statuses; empty means 200 to 299.
    pub statuses: Vec<u16>,
    /// A condition on the answer's body.
    pub body: Option<Clause>,
}
