//! What signing in at services gave this user: kept for each, renewed before it ends.

mod renew;
mod token_file;

use bellwether_process::{oidc::Provider, plain_file};
use rustls::pki_types::{CertificateDer, pem::PemObject};

pub(crate) use self::{
    renew::token,
    token_file::{SignIn, TokenFile},
};
use crate::{config::Settings, failure::Failure, tls::CERTIFICATES_BYTES_MAX};

/// Whether a user signed in at that address, and no one gave a key.
pub(crate) fn is_kept(settings: &Settings, address: &str) -> bool {
    let kept = TokenFile::of(settings).and_then(|kept| kept.get(address));
    settings.key.is_unsaid() && kept.is_ok_and(|it| it.is_some())
}

/// A provider of identities, trusted by the machine's authorities and those of `tls_ca`.
///
/// # Errors
/// When those cannot be read.
pub(crate) fn provider(issuer: &str, settings: &Settings) -> Result<Provider, Failure> {
    let mut authorities = Vec::new();
    if let Some(file) = &settings.tls.ca {
        let text = plain_file::read(file, CERTIFICATES_BYTES_MAX).map_err(|error| {
            let file = file.display();
            Failure::usage(format!("tls_ca: cannot read {file}: {error}"))
        })?;
        authorities.extend(CertificateDer::pem_slice_iter(&text).flatten());
    }
    Ok(Provider::new(issuer, &authorities))
}
