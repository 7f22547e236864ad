//! Browser sign-in: the redirect to the provider, and the callback.

use std::{fmt, net::IpAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_process::{
    listen::{PermitError, Pool, network_key},
    oidc::{CodeRequest, Description, Provider, ProviderError},
};
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{Person, SignIns, invalid_token_error, token::Token};
use crate::{
    error::Error,
    limits::{BROWSER_SIGN_INS_MAX, PROVIDER_KEYS_INTERVAL},
};

/// The redirect to the provider, and the state that the browser stores until it returns.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInStart {
    pub address: String,
    pub state: String,
    /// Secret that proves that the returning browser is the same one.
    pub verifier: String,
}

impl fmt::Debug for SignInStart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SignInStart")
            .finish_non_exhaustive()
    }
}

/// A client of the provider that acts on behalf of browsers.
#[derive(Debug)]
pub(super) struct BrowserSignIns {
    provider: Provider,
    places: Arc<Pool<IpAddr>>,
    /// The provider's metadata and the time of its fetch. Locked during a fetch.
    described: tokio::sync::Mutex<Option<(Instant, Description)>>,
}

impl BrowserSignIns {
    pub(super) fn new(provider: Provider) -> Self {
        Self {
            provider,
            places: Pool::new(BROWSER_SIGN_INS_MAX),
            described: tokio::sync::Mutex::default(),
        }
    }

    async fn description(&self) -> Result<Description, Error> {
        let mut described = self.described.lock().await;
        if let Some((at, known)) = described.as_ref()
            && at.elapsed() < PROVIDER_KEYS_INTERVAL
        {
            return Ok(known.clone());
        }
        let found = self
            .provider
            .describe()
            .await
            .map_err(|error| refusal_error(&error))?;
        *described = Some((Instant::now(), found.clone()));
        Ok(found)
    }
}

impl SignIns {
    /// Starts the sign-in of a browser at an address. `state` derives the state parameter from the
    /// verifier that the browser stores.
    ///
    /// # Errors
    ///
    /// Returns [`Error::FailedPrecondition`] if browser sign-in is disabled, and
    /// [`Error::Unavailable`] if the provider does not respond or too many browsers sign in
    /// concurrently.
    pub async fn start(
        &self,
        address: Option<IpAddr>,
        state: impl FnOnce(&str) -> String,
    ) -> Result<SignInStart, Error> {
        let (_place, description) = self.acquire_slot(address).await?;
        let endpoint =
            required_endpoint(description.authorization_endpoint, "authorization_endpoint")?;
        let verifier = random_token();
        let state = state(&verifier);
        let request = CodeRequest {
            client_id: &self.config.client_id,
            scopes: &self.config.scopes,
            redirect_uri: &self.config.redirect_uri(),
            state: &state,
            challenge: &pkce_challenge(&verifier),
        };
        let address = request
            .address(&endpoint)
            .map_err(|error| refusal_error(&error))?
            .into();
        Ok(SignInStart {
            address,
            state,
            verifier,
        })
    }

    /// Completes a sign-in by a browser: returns the token that replaces a key from then on, and
    /// its user.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::start`] and [`Self::authenticate`], and
    /// [`Error::Unauthenticated`] if the provider rejects the code.
    pub async fn finish(
        &self,
        address: Option<IpAddr>,
        code: &str,
        verifier: &str,
    ) -> Result<(String, Person), Error> {
        let (_place, description) = self.acquire_slot(address).await?;
        let endpoint = required_endpoint(description.token_endpoint, "token_endpoint")?;
        let redirect_uri = self.config.redirect_uri();
        let client_id = &self.config.client_id;
        let provider = &self.browsers.provider;
        let tokens = provider.exchange_code(&endpoint, client_id, &redirect_uri, code, verifier);
        let tokens = tokens.await.map_err(|error| refusal_error(&error))?;
        // The token was received directly from the provider, so its claims about the sign-in are
        // valid without the signature.
        if let Some(token) = &tokens.id_token
            && Token::read(token)?.claims()["nonce"] != pkce_challenge(verifier)
        {
            return Err(invalid_token_error("issued for another sign-in (`nonce`)"));
        }
        let token = if self.config.accepts_access_token() {
            tokens.access_token
        } else {
            tokens.id_token
        };
        let token = token.ok_or_else(|| invalid_token_error("the provider returned no token"))?;
        let person = self.authenticate(&token).await?;
        Ok((token, person))
    }

    /// Waits for a slot, and returns it with the provider's metadata.
    async fn acquire_slot(
        &self,
        address: Option<IpAddr>,
    ) -> Result<(impl Drop + use<>, Description), Error> {
        if self.config.page.is_empty() {
            let why = "browser sign-in is disabled (`oidc.page`)";
            return Err(Error::FailedPrecondition(why.into()));
        }
        let mut place = self.browsers.places.new_permit(address.map(network_key));
        place.acquire(1).map_err(|full| {
            let why = match full {
                PermitError::All => "too many sign-ins in progress; try again",
                PermitError::Share => "too many sign-ins from this address in progress; try again",
            };
            Error::Unavailable(why.into())
        })?;
        Ok((place, self.browsers.description().await?))
    }
}

fn required_endpoint(endpoint: Option<String>, name: &str) -> Result<String, Error> {
    endpoint.ok_or_else(|| {
        Error::Unavailable(format!(
            "the identity provider does not support browser sign-in: it has no `{name}`"
        ))
    })
}

fn refusal_error(error: &ProviderError) -> Error {
    match error {
        ProviderError::Refused { .. } => Error::Unauthenticated(error.to_string()),
        ProviderError::Unreachable(_) | ProviderError::Unusable(_) => {
            Error::Unavailable(error.to_string())
        }
    }
}

/// Returns 256 random bits in URL-safe form.
fn random_token() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn pkce_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}
