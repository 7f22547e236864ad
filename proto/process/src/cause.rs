//! Searches a chain of library errors for the cause that a user can act on.

use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};

/// Returns the first error of type `T` in the chain. I/O errors are unwrapped, because the error in
/// one is not among its sources.
pub fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = inner_source(error);
    }
    None
}

pub fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut last = error;
    while let Some(deeper) = inner_source(last) {
        last = deeper;
    }
    last
}

fn inner_source<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => match io.get_ref() {
            Some(wrapped) => Some(wrapped),
            None => io.source(),
        },
        None => error.source(),
    }
}

/// Whether a server presented a CA certificate as its end-entity certificate.
pub fn is_authority_as_server(wrong: &CertificateError) -> bool {
    is_webpki_error(wrong, "CaUsedAsEndEntity")
}

/// Whether the error is the `webpki` error with this name. rustls passes such errors on as text
/// only.
fn is_webpki_error(wrong: &CertificateError, name: &str) -> bool {
    matches!(wrong, CertificateError::Other(OtherError(error)) if error.to_string() == name)
}

/// Returns the TLS alert in the text of an HTTP/2 error that has no source.
pub fn find_alert(words: &str) -> Option<rustls::Error> {
    const EXPLAINED_ALERTS: [AlertDescription; 7] = [
        AlertDescription::CertificateRequired,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::UnknownCA,
        AlertDescription::DecryptError,
        AlertDescription::BadCertificate,
        AlertDescription::CertificateUnknown,
    ];
    let mut alerts = EXPLAINED_ALERTS
        .into_iter()
        .map(rustls::Error::AlertReceived);
    alerts.find(|alert| alert.to_string() == words)
}

/// Describes a TLS error with a remedy. `authorities` is the setting that can add an authority.
pub fn explain_error(error: &rustls::Error, authorities: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(wrong) => explain_certificate(wrong, authorities),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS at that address".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate, but none was presented".into()
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
        ) => "the server rejected the client certificate".into(),
        other => other.to_string(),
    }
}

fn explain_certificate(wrong: &CertificateError, authorities: &str) -> String {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet".into()
        }
        // `BadSignature`: a trusted authority has that name, but a different key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the server's certificate comes from an authority that is not trusted here; \
             `{authorities}` can add it"
        ),
        CertificateError::NotValidForName => {
            "the server's certificate is for another host name".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "the server's certificate has no host name: it lacks a subject alternative name, and \
             the common name is ignored; recreate it with one, such as with `openssl req -x509 \
             -addext subjectAltName=DNS:HOST`"
                .into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "the server's certificate is for another host name: {}",
            presented
                .iter()
                .map(|name| subject_name(name))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        wrong if is_authority_as_server(wrong) => format!(
            "the server uses a CA certificate as its server certificate; add that certificate \
             to `{authorities}`, or create one with `-addext basicConstraints=CA:FALSE`"
        ),
        wrong if is_webpki_error(wrong, "UnsupportedCertVersion") => {
            "the server's certificate has X.509 version 1, which has no host names; recreate it \
             with one, such as with `openssl req -x509 -addext subjectAltName=DNS:HOST`"
                .into()
        }
        CertificateError::BadEncoding => "the server's certificate is malformed".into(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not for servers: its extended key usage lacks `serverAuth`"
                .into()
        }
        CertificateError::Revoked => "the server's certificate is revoked".into(),
        CertificateError::Other(OtherError(error)) => {
            format!(
                "the server's certificate is invalid: {}",
                split_words(&error.to_string())
            )
        }
        // rustls prints other errors as variant names.
        other => format!(
            "the server's certificate is invalid: {}",
            split_words(&other.to_string())
        ),
    }
}

/// Splits a variant name into words: `MaximumPathDepthExceeded` becomes `maximum path depth
/// exceeded`. Fields and brackets are dropped.
fn split_words(name: &str) -> String {
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

/// Returns a name of the certificate, without the type that rustls prints around it.
fn subject_name(shown: &str) -> &str {
    let (_, name) = shown.rsplit_once('(').unwrap_or(("", shown));
    name.trim_end_matches(')').trim_matches('"')
}
