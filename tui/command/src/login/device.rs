//! Sign-in from a terminal with the device flow: the user enters a code in a browser on any
//! machine.

use std::io::Write;

use bellwether_language::text;
use bellwether_process::oidc::{DeviceCode, Provider, ProviderError, Tokens};
use tokio::time::{Duration, Instant, sleep};

use super::output_failure;
use crate::failure::Failure;

/// Increase of the polling interval when the provider requests it or is unreachable.
const SLOWER: Duration = Duration::from_secs(5);
const OFFLINE: &str = "offline_access";

pub(super) struct DeviceRequest<'a> {
    pub(super) provider: &'a Provider,
    pub(super) client_id: &'a str,
    pub(super) scopes: &'a str,
}

/// Prints the address and the code to enter, and waits for the sign-in. Returns the token endpoint
/// and the tokens.
pub(super) async fn sign_in(
    request: &DeviceRequest<'_>,
    out: &mut impl Write,
) -> Result<(String, Tokens), Failure> {
    let described = request
        .provider
        .describe()
        .await
        .map_err(provider_failure)?;
    let (Some(device_endpoint), Some(token_endpoint)) = (
        described.device_authorization_endpoint,
        described.token_endpoint,
    ) else {
        return Err(Failure::new(
            "the provider does not support sign-in from a terminal (it has no \
             `device_authorization_endpoint`); use a key",
        ));
    };
    let scopes = with_offline(request.scopes, &described.scopes_supported);
    let code = request
        .provider
        .device_code(&device_endpoint, request.client_id, &scopes)
        .await
        .map_err(provider_failure)?;
    print_code(&code, out).map_err(|error| output_failure(&error))?;
    let tokens = poll_tokens(request, &token_endpoint, &code).await?;
    Ok((token_endpoint, tokens))
}

/// Adds the scope for refresh tokens if the provider supports it.
fn with_offline(scopes: &str, supported: &[String]) -> String {
    let is_requested = scopes.split_whitespace().any(|it| it == OFFLINE);
    if is_requested || !supported.iter().any(|it| it == OFFLINE) {
        return scopes.to_owned();
    }
    format!("{scopes} {OFFLINE}")
}

fn print_code(code: &DeviceCode, out: &mut impl Write) -> std::io::Result<()> {
    // The text comes from the provider.
    let user_code = text::escape_invisible(&code.user_code, false);
    let shown =
        |address: &dyn std::fmt::Display| text::escape_invisible(&address.to_string(), false);
    if let Some(address) = &code.full_address {
        let address = shown(address);
        writeln!(out, "To sign in, open {address}")?;
        writeln!(out, "and check that it shows the code {user_code}")?;
    } else {
        writeln!(out, "To sign in, open {}", shown(&code.address))?;
        writeln!(out, "and enter the code {user_code}")?;
    }
    out.flush()
}

async fn poll_tokens(
    request: &DeviceRequest<'_>,
    endpoint: &str,
    code: &DeviceCode,
) -> Result<Tokens, Failure> {
    let end = Instant::now() + code.life;
    let mut pause = code.interval;
    loop {
        sleep(pause).await;
        if Instant::now() >= end {
            return Err(expired_failure());
        }
        let provider = request.provider;
        let answer = provider.poll_tokens(endpoint, request.client_id, code);
        match answer.await {
            Ok(tokens) => return Ok(tokens),
            Err(ProviderError::Unreachable(_)) => pause += SLOWER,
            Err(ProviderError::Refused { code, .. }) if code == "slow_down" => pause += SLOWER,
            Err(ProviderError::Refused { code, .. }) if code == "authorization_pending" => {}
            Err(ProviderError::Refused { code, .. }) if code == "expired_token" => {
                return Err(expired_failure());
            }
            Err(ProviderError::Refused { code, .. }) if code == "access_denied" => {
                return Err(Failure::permission_denied(
                    "the provider declined the sign-in",
                ));
            }
            Err(other) => return Err(provider_failure(other)),
        }
    }
}

fn expired_failure() -> Failure {
    Failure::new("the code expired before anyone signed in; run `bellwether login` again")
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` requires"
)]
fn provider_failure(error: ProviderError) -> Failure {
    match &error {
        ProviderError::Unreachable(_) => Failure::unreachable(error.to_string()),
        _ => Failure::new(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_scope_is_added_if_the_provider_supports_it() {
        let has = [OFFLINE.to_owned()];
        assert_eq!(with_offline("openid", &[]), "openid");
        assert_eq!(with_offline("openid", &has), "openid offline_access");
        let request = "offline_access openid";
        assert_eq!(with_offline(request, &has), request);
    }
}
