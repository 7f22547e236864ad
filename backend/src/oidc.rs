//! Sign-in of users through an identity provider. Their tokens contain their identity and role.

mod browser;
mod claims;
mod keyring;
mod token;

use std::sync::Arc;

use bellwether_process::oidc::Provider;
use tokio_util::sync::CancellationToken;

pub use self::browser::SignInStart;
use crate::{
    clock::Clock,
    config::OidcConfig,
    domain::{Name, Role},
    error::Error,
};
use browser::BrowserSignIns;
use keyring::Keyring;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// `oidc:` and the name in the token.
    pub name: Name,
    /// Permanent id of the user at the provider.
    pub subject: String,
    pub role: Role,
    /// Expiry of the token, in milliseconds since 1970.
    pub ends_ms: i64,
}

/// Sign-ins of users, who are authenticated by the tokens of one provider.
#[derive(Debug)]
pub struct SignIns {
    config: OidcConfig,
    clock: Arc<dyn Clock>,
    keyring: Keyring,
    browsers: BrowserSignIns,
}

impl SignIns {
    /// Creates the sign-ins for a provider, whose keys are fetched when the first token arrives.
    pub fn new(config: OidcConfig, clock: Arc<dyn Clock>) -> Self {
        let provider = Provider::new(&config.issuer, config.authorities.certificates());
        Self {
            browsers: BrowserSignIns::new(provider.clone()),
            keyring: Keyring::new(provider),
            config,
            clock,
        }
    }

    pub fn config(&self) -> &OidcConfig {
        &self.config
    }

    /// Whether a credential can be a token, as opposed to a client's key.
    pub fn is_token(shown: &str) -> bool {
        shown.split('.').count() == 3 && !shown.starts_with("bw_")
    }

    /// Returns the user of a token.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unauthenticated`] if the token is invalid, [`Error::PermissionDenied`] if
    /// it grants no role, and [`Error::Unavailable`] while the provider's keys are unknown.
    pub async fn authenticate(&self, shown: &str) -> Result<Person, Error> {
        let token = token::Token::read(shown)?;
        let key = self.keyring.find(token.key_id(), token.algorithm()).await?;
        token.verify(&key)?;
        claims::authorize(token.claims(), &self.config, self.clock.now_ms())
    }

    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        shutdown
            .run_until_cancelled(self.keyring.refresh_periodically())
            .await;
    }
}

fn invalid_token_error(why: &str) -> Error {
    Error::Unauthenticated(format!(
        "the token is invalid: {why}; sign in again, for example with `bellwether login`"
    ))
}

#[cfg(test)]
mod tests;
