//! Renewal of sign-in tokens before they expire.

use bellwether_process::oidc::ProviderError;
use jiff::{SignedDuration, Timestamp};

use super::{
    connect_provider,
    token_file::{SignIn, TokenFile},
};
use crate::{
    config::{SettingSource, Settings},
    failure::Failure,
};

/// Time before expiry at which tokens are renewed.
const SOON: SignedDuration = SignedDuration::from_secs(60);

/// Returns the token of the sign-in at this address; `None` if there is none.
pub(crate) async fn current_token(
    settings: &Settings,
    address: &str,
) -> Result<Option<String>, Failure> {
    if settings.sign_ins.is_none() {
        return Ok(None);
    }
    let token_file = TokenFile::for_settings(settings)?;
    match token_file.find(address)? {
        None => return Ok(None),
        Some(sign_in) if !expires_within(&sign_in, SOON) => return Ok(Some(sign_in.token)),
        Some(_) => {}
    }
    // Reads the file again: another command may have renewed the sign-in, and a refresh token can
    // be used only once.
    let lock = token_file.lock().await?;
    let Some(mut sign_in) = token_file.find(address)? else {
        return Ok(None);
    };
    if !expires_within(&sign_in, SOON) {
        return Ok(Some(sign_in.token));
    }
    match renew_sign_in(&mut sign_in, settings, address).await {
        Ok(()) => token_file.store(&lock, address, sign_in.clone())?,
        Err(_failure) if !expires_within(&sign_in, SignedDuration::ZERO) => {}
        Err(failure) => return Err(failure),
    }
    Ok(Some(sign_in.token))
}

fn expires_within(sign_in: &SignIn, span: SignedDuration) -> bool {
    sign_in.ends.duration_since(Timestamp::now()) <= span
}

async fn renew_sign_in(
    sign_in: &mut SignIn,
    settings: &Settings,
    address: &str,
) -> Result<(), Failure> {
    let login = login_hint(settings, address);
    let ended = || Failure::permission_denied(format!("your sign-in has expired; run `{login}`"));
    let Some(refresh_token) = &sign_in.refresh_token else {
        return Err(ended());
    };
    let provider = connect_provider(&sign_in.issuer, settings)?;
    let (endpoint, client_id) = (&sign_in.token_endpoint, &sign_in.client_id);
    let tokens = provider.refresh_tokens(endpoint, client_id, refresh_token);
    match tokens.await.map(|tokens| sign_in.apply(tokens)) {
        Ok(true) => Ok(()),
        Ok(false) | Err(ProviderError::Refused { .. }) => Err(ended()),
        Err(error) => Err(Failure::unreachable(format!(
            "your sign-in has expired and renewal failed: {error}; retry, or run `{login}`"
        ))),
    }
}

fn login_hint(settings: &Settings, address: &str) -> String {
    let named = settings.effective().get("connect").map(|it| &it.source);
    match (named, &settings.context) {
        (Some(SettingSource::Flag(flag)), Some(context)) if flag == "--context" => {
            format!("bellwether login --context {}", context.name)
        }
        (Some(SettingSource::Flag(_)), _) => format!("bellwether login --connect {address}"),
        _ => "bellwether login".to_owned(),
    }
}
