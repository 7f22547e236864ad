//! What lies below an error: the libraries' own, of which the one that users can act on is
//! reported.

use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};

/// The first error of that type in the chain. What an I/O error wraps is not in its chain of
/// sources, so it is unwrapped.
pub fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = below(error);
    }
    None
}

/// The error at the bottom.
pub fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut last = error;
    while let Some(deeper) = below(last) {
        last = deeper;
    }
    last
}

fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => match io.get_ref() {
            Some(wrapped) => Some(wrapped),
            None => io.source(),
        },
        None => error.source(),
    }
}

/// Whether a server presents a certificate as its own that calls itself an authority.
pub fn is_authority_as_server(wrong: &CertificateError) -> bool {
    is_of_webpki(wrong, "CaUsedAsEndEntity")
}

/// Whether that is what the library below rustls says, of which rustls hands on the name alone.
fn is_of_webpki(wrong: &CertificateError, name: &str) -> bool {
    matches!(wrong, CertificateError::Other(OtherError(error)) if error.to_string() == name)
}

/// What the server said on a secure connection, of which HTTP/2 hands on the words alone.
pub fn alert(words: &str) -> Option<rustls::Error> {
    const TOLD: [AlertDescription; 7] = [
        AlertDescription::CertificateRequired,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::UnknownCA,
        AlertDescription::DecryptError,
        AlertDescription::BadCertificate,
        AlertDescription::CertificateUnknown,
    ];
    let mut alerts = TOLD.into_iter().map(rustls::Error::AlertReceived);
    alerts.find(|alert| alert.to_string() == words)
}

/// What is wrong with a secure connection to a server: what was found and what would be right.
/// `authorities` is the setting that can add an authority.
pub fn explain(error: &rustls::Error, authorities: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(wrong) => certificate(wrong, authorities),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS at that address".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate, and none was presented".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRevoked) => {
            "the server rejected the client certificate as revoked".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "the server rejected the client certificate as expired".into()
        }
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => "the server does not accept the client certificate".into(),
        other => other.to_string(),
    }
}

fn certificate(wrong: &CertificateError, authorities: &str) -> String {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet".into()
        }
        // The second: an authority here has that name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the server's certificate comes from an authority that is not trusted here; \
             `{authorities}` can add it"
        ),
        CertificateError::NotValidForName => {
            "the server's certificate is for another host name".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "the server's certificate names no host: it has no subject alternative name, and a common \
             name does not count; make it again with one, as `openssl req -x509 -addext \
             subjectAltName=DNS:HOST` does"
                .into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "the server's certificate is for another host name: {}",
            presented
                .iter()
                .map(|name| bare(name))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        wrong if is_authority_as_server(wrong) => format!(
            "the server presents the certificate of an authority as its own; add that certificate \
             to `{authorities}`, or create one with `-addext basicConstraints=CA:FALSE`"
        ),
        wrong if is_of_webpki(wrong, "UnsupportedCertVersion") => {
            "the server's certificate is of X.509 version 1, which holds no host names; make it again \
             with one, as `openssl req -x509 -addext subjectAltName=DNS:HOST` does"
                .into()
        }
        CertificateError::BadEncoding => "the server's certificate cannot be read".into(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not for servers: its extended key usage lacks `serverAuth`".into()
        }
        CertificateError::Revoked => "the server's certificate is revoked".into(),
        CertificateError::Other(OtherError(error)) => {
            format!("the server's certificate is not accepted: {}", words(&error.to_string()))
        }
        // rustls writes the others as the names of values.
        other => format!("the server's certificate is not accepted: {}", words(&other.to_string())),
    }
}

/// The name of a value as words: `MaximumPathDepthExceeded` is `maximum path depth exceeded`. What is around
/// it, or in it, is left out.
fn words(name: &str) -> String {
    let name = name.split(['(', '{', ' ']).next().unwrap_or_default();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// A name as the certificate holds it: rustls shows its kind around it.
fn bare(shown: &str) -> &str {
    let (_, name) = shown.rsplit_once('(').unwrap_or(("", shown));
    name.trim_end_matches(')').trim_matches('"')
}
