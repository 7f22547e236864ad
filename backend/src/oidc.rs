//! People who sign in at a provider of identities: their token shows who they are and what they may
//! do.

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
use browser::Browsers;
use keyring::Keyring;

/// A user whose token is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// `oidc:` and the name in the token.
    pub name: Name,
    /// Who it is to the provider, for ever.
    pub subject: String,
    /// What the person may do.
    pub role: Role,
    /// When the token ends, in milliseconds since 1970.
    pub ends_ms: i64,
}

/// Knows people by the tokens of one provider.
#[derive(Debug)]
pub struct SignIns {
    config: OidcConfig,
    clock: Arc<dyn Clock>,
    keyring: Keyring,
    browsers: Browsers,
}

impl SignIns {
    /// Takes the tokens of that provider, which is asked for its keys when the first one comes.
    pub fn new(config: OidcConfig, clock: Arc<dyn Clock>) -> Self {
        let provider = Provider::new(&config.issuer, config.authorities.certificates());
        Self {
            browsers: Browsers::new(provider.clone()),
            keyring: Keyring::new(provider),
            config,
            clock,
        }
    }

    /// The settings.
    pub fn config(&self) -> &OidcConfig {
        &self.config
    }

    /// Whether that can be a token, and is no key of a client.
    pub fn takes(shown: &str) -> bool {
        shown.split('.').count() == 3 && !shown.starts_with("bw_")
    }

    /// Whose token that is.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] when it is not good, [`Error::PermissionDenied`] when nothing in it
    /// gives a role, [`Error::Unavailable`] while the provider's keys are not known.
    pub async fn person(&self, shown: &str) -> Result<Person, Error> {
        let token = token::Token::read(shown)?;
        let key = self.keyring.find(token.key_id(), token.algorithm()).await?;
        token.verify(&key)?;
        claims::person(token.claims(), &self.config, self.clock.now_ms())
    }

    /// Keeps the provider's keys up to date until the service stops.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.keyring.follow() => {}
        }
    }
}

/// A token that is not good.
fn refused(why: &str) -> Error {
    Error::Unauthenticated(format!(
        "the token is invalid: {why}; sign in again, such as with `bellwether login`"
    ))
}

#[cfg(test)]
mod tests;
