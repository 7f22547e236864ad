//! Signatures of requests with AWS Signature Version 4.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4::SigningParams,
};
use http::{HeaderName, HeaderValue, header};
use url::Url;

use crate::{AttemptContext, domain::Secret, http::HttpRequest, signature};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(super) struct AccessKey<'a> {
    pub(super) id: &'a str,
    pub(super) secret: &'a Secret,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// Adds the signature and its time to the headers. The headers `content-type` and `x-amz-…`, the
/// method, the address and the body are signed.
pub(super) fn sign_request(
    key: &AccessKey<'_>,
    attempt: &AttemptContext<'_>,
    request: &mut HttpRequest,
) -> Result<(), BoxError> {
    if !attempt.sends {
        let headers = &mut request.headers;
        headers.insert(header::AUTHORIZATION, signature::SET_WHEN_SENT);
        return Ok(());
    }
    let credentials = Credentials::new(key.id, key.secret.reveal(), None, None, "settings");
    let since_epoch =
        Duration::from_secs(u64::try_from(attempt.timestamp_seconds()).unwrap_or_default());
    let identity = credentials.into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(key.region)
        .name(key.service)
        .time(SystemTime::UNIX_EPOCH + since_epoch)
        .settings(SigningSettings::default())
        .build()?;
    let is_signed =
        |name: &HeaderName| name == header::CONTENT_TYPE || name.as_str().starts_with("x-amz-");
    let headers = request.headers.iter().filter(|(name, _)| is_signed(name));
    let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    // The address is sent in this form.
    let url = Url::parse(&request.url)?;
    let body = SignableBody::Bytes(&request.body);
    let signable = SignableRequest::new(request.method.as_str(), url.as_str(), headers, body)?;
    let (instructions, _signature) = sign(signable, &params.into())?.into_parts();
    let (headers, _query) = instructions.into_parts();
    for signed in headers {
        let mut value = HeaderValue::try_from(signed.value())?;
        value.set_sensitive(signed.sensitive());
        request
            .headers
            .insert(HeaderName::try_from(signed.name())?, value);
    }
    Ok(())
}
