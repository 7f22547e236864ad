//! Sign-ins of this user at services: stored per service, and renewed before they expire.

mod renew;
mod token_file;

use bellwether_process::{oidc::Provider, plain_file};
use rustls::pki_types::{CertificateDer, pem::PemObject};

pub(crate) use self::{
    renew::current_token,
    token_file::{SignIn, TokenFile},
};
use crate::{config::Settings, failure::Failure, tls::CERTIFICATES_BYTES_MAX};

/// Whether a sign-in is stored for this address and no key is set explicitly.
pub(crate) fn has_stored_sign_in(settings: &Settings, address: &str) -> bool {
    let token_file =
        TokenFile::for_settings(settings).and_then(|token_file| token_file.find(address));
    settings.key.is_default() && token_file.is_ok_and(|it| it.is_some())
}

/// Returns an OpenID Connect provider, trusted by the system's authorities and those of `tls_ca`.
pub(crate) fn connect_provider(issuer: &str, settings: &Settings) -> Result<Provider, Failure> {
    let mut authorities = Vec::new();
    if let Some(file) = &settings.tls.ca {
        let text = plain_file::read_file(file, CERTIFICATES_BYTES_MAX).map_err(|error| {
            let file = file.display();
            Failure::usage_error(format!("tls_ca: cannot read {file}: {error}"))
        })?;
        authorities.extend(CertificateDer::pem_slice_iter(&text).flatten());
    }
    Ok(Provider::new(issuer, &authorities))
}
