//! Validation of webhook settings.

use std::{
    collections::{BTreeMap, HashSet},
    ops::RangeInclusive,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderName, HeaderValue as WireValue,
    header::{AUTHORIZATION, CONTENT_TYPE},
};

use crate::{
    DestinationType as _, SettingsChecker,
    domain::{
        Clause, Secret,
        destination::{Auth, Expect, FollowUp, Header, HeaderValue, Webhook},
        secret::MASK,
    },
    limits::{
        HEADER_VALUE_BYTES_MAX, HEADERS_MAX, OAUTH_PARAMS_MAX, PEM_BYTES_MAX, SETTING_BYTES_MAX,
        STATUSES_MAX, VALUE_MAP_MAX, VALUE_NAME_MAX, VALUES_MAX,
    },
    matching::DocumentQuery,
    oauth,
    template::{AnyTemplate, KEPT_VALUES, OWN_VALUES, is_variable},
    tls::{self, Identity, IdentityError},
    webhook::{address, follow_up, header, is_template, keep},
};

const SIGNING_KEY_BYTES: RangeInclusive<usize> = 24..=64;
const SIGNING_SECRETS_MAX: usize = 2;

const TEST_EFFECT_CHARACTERS_MAX: usize = 100;

/// Headers set by the service or its HTTP client.
const FORBIDDEN_HEADERS: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const FORBIDDEN_PREFIX: &str = "webhook-";

pub(super) fn check(webhook: &Webhook, checks: &mut SettingsChecker<'_>) {
    match (webhook.url.is_empty(), webhook.secret_url.is_empty()) {
        (true, false) => address::check("secretUrl", webhook.secret_url.reveal(), "", checks),
        (false, false) => checks.add("secretUrl", "conflicts with `url`; set only one of them"),
        (_, true) => address::check("url", &webhook.url, &webhook.url, checks),
    }
    if webhook.headers.len() > HEADERS_MAX {
        let count = webhook.headers.len();
        checks.add(
            "headers",
            format!("has {count} headers; the limit is {HEADERS_MAX}"),
        );
    }
    let mut seen = HashSet::new();
    for header in webhook.headers.iter().take(HEADERS_MAX) {
        check_header(header, checks);
        if !seen.insert(header.name.to_ascii_lowercase()) {
            checks.add(
                &header::header_path(header),
                "is set twice, in different letter case",
            );
        }
    }
    check_auth(webhook, checks);
    for (name, follow_up) in webhook.follow_ups() {
        check_follow_up(webhook, &format!("{name}.url"), follow_up, checks);
        follow_up::check_names(name, follow_up, checks);
        check_clause(
            &format!("{name}.goneClause"),
            follow_up.gone.as_ref(),
            checks,
        );
    }
    if webhook
        .on_clear
        .as_ref()
        .is_some_and(|it| it.gone.is_some())
    {
        checks.add("onClear.goneClause", "is allowed only in `onUpdate`");
    }
    keep::check(webhook, checks);
    check_values(webhook, checks);
    if let Some(expect) = &webhook.expect {
        check_expect(expect, checks);
    }
    checks.check_one_line("testEffect", &webhook.test_effect);
    let characters = webhook.test_effect.chars().count();
    if characters > TEST_EFFECT_CHARACTERS_MAX {
        checks.add(
            "testEffect",
            format!("has {characters} characters; the limit is {TEST_EFFECT_CHARACTERS_MAX}"),
        );
    }
    if !webhook.signing_secret.is_empty() && !is_signing_secret(&webhook.signing_secret) {
        checks.add(
            "signingSecret",
            "is not `whsec_` followed by base64 of 24 to 64 bytes, or two of these separated by a space",
        );
    }
}

fn check_follow_up(
    webhook: &Webhook,
    field: &str,
    follow_up: &FollowUp,
    checks: &mut SettingsChecker<'_>,
) {
    if follow_up.url.is_empty() {
        return;
    }
    if address::is_relative(&follow_up.url) && is_template(webhook.address()) {
        return checks.add(
            field,
            "is relative to an address with variables; enter a complete URL",
        );
    }
    let url = address::resolve(webhook.address(), &follow_up.url);
    address::check(field, &url, &follow_up.url, checks);
    let is_same = address::origin(&url) == address::origin(webhook.address());
    if !is_same && webhook.keep.values().any(|it| it.is_secret) {
        checks.add(
            field,
            "has another scheme, host or port than the address; values in `keepSecret` are sent \
             only to the receiver that returned them",
        );
    }
}

fn check_auth(webhook: &Webhook, checks: &mut SettingsChecker<'_>) {
    let Some(auth) = webhook.auth.as_deref() else {
        return;
    };
    let mut headers = webhook.headers.iter();
    if headers.any(|it| it.name.eq_ignore_ascii_case(AUTHORIZATION.as_str())) {
        checks.add(
            "auth",
            "conflicts with the header `authorization`; set only one of them",
        );
    }
    match auth {
        Auth::Basic { username, password } => {
            checks.check_setting("auth.basic.username", username);
            if username.contains(':') {
                checks.add(
                    "auth.basic.username",
                    "contains a colon, which is not allowed",
                );
            }
            checks.check_secret("auth.basic.password", password);
        }
        Auth::Bearer { token } => {
            checks.check_secret("auth.bearer.token", token);
            if !token.is_empty() && WireValue::try_from(token.reveal()).is_err() {
                checks.add("auth.bearer.token", "is not allowed in a header");
            }
        }
        Auth::OAuth2 {
            token_url,
            client_id,
            client_secret,
            scope,
            audience,
            params,
        } => {
            checks.check_url("auth.oauth2.tokenUrl", token_url);
            checks.check_setting("auth.oauth2.clientId", client_id);
            checks.check_secret("auth.oauth2.clientSecret", client_secret);
            checks.check_one_line("auth.oauth2.scope", scope);
            checks.check_one_line("auth.oauth2.audience", audience);
            check_params(params, checks);
        }
        Auth::Mtls {
            certificate,
            private_key,
        } => check_mtls(webhook, certificate, private_key, checks),
        Auth::Aws {
            access_key_id,
            secret_access_key,
            region,
            service,
        } => {
            checks.check_setting("auth.aws.accessKeyId", access_key_id);
            checks.check_secret("auth.aws.secretAccessKey", secret_access_key);
            checks.check_setting("auth.aws.region", region);
            checks.check_setting("auth.aws.service", service);
            if webhook.compress {
                checks.add("compress", "is not allowed with `auth.aws`");
            }
        }
    }
}

fn check_params(params: &BTreeMap<String, String>, checks: &mut SettingsChecker<'_>) {
    const FIELD: &str = "auth.oauth2.params";
    if params.len() > OAUTH_PARAMS_MAX {
        let count = params.len();
        let message = format!("has {count} entries; the limit is {OAUTH_PARAMS_MAX}");
        checks.add(FIELD, message);
    }
    for (name, value) in params.iter().take(OAUTH_PARAMS_MAX) {
        let shown: String = name.chars().take(100).collect();
        let path = format!("{FIELD}[{shown}]");
        if name.trim().is_empty() {
            checks.add(&path, "has no name");
        } else if oauth::OWN_PARAMS.contains(&name.as_str()) {
            checks.add(&path, "is set by the service itself; remove it");
        }
        checks.check_one_line(&path, name);
        checks.check_one_line(&path, value);
    }
}

fn check_mtls(
    webhook: &Webhook,
    certificate: &str,
    private_key: &Secret,
    checks: &mut SettingsChecker<'_>,
) {
    const CERTIFICATE: &str = "auth.mtls.certificate";
    const KEY: &str = "auth.mtls.privateKey";
    if !webhook.address().starts_with("https:") {
        checks.add("auth.mtls", "can only be used with an `https` address");
    }
    let mut is_whole = true;
    for (field, text) in [(CERTIFICATE, certificate), (KEY, private_key.reveal())] {
        let bytes = text.len();
        if text.trim().is_empty() {
            checks.add(field, "is required: in PEM");
        } else if bytes > PEM_BYTES_MAX {
            let message = format!("is {bytes} bytes; the limit is {PEM_BYTES_MAX}");
            checks.add(field, message);
        }
        is_whole &= !text.trim().is_empty() && bytes <= PEM_BYTES_MAX;
    }
    if !is_whole {
        return;
    }
    let identity = Identity {
        certificate: certificate.to_owned(),
        private_key: private_key.clone(),
    };
    match tls::check_identity(&identity) {
        Ok(()) => {}
        Err(IdentityError::Certificate) => {
            checks.add(CERTIFICATE, "contains no certificate in PEM format");
        }
        Err(IdentityError::Key) => {
            checks.add(
                KEY,
                "contains no usable private key in PEM format; it must be unencrypted",
            );
        }
        Err(IdentityError::Pair) => checks.add(KEY, "is not the key of the certificate"),
    }
}

fn check_values(webhook: &Webhook, checks: &mut SettingsChecker<'_>) {
    if webhook.values.len() > VALUES_MAX {
        let count = webhook.values.len();
        checks.add(
            "values",
            format!("has {count} entries; the limit is {VALUES_MAX}"),
        );
    }
    for (name, value) in webhook.values.iter().take(VALUES_MAX) {
        let shown: String = name.chars().take(VALUE_NAME_MAX).collect();
        let path = format!("values[{shown}]");
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > VALUE_NAME_MAX || !name.chars().all(is_word) {
            checks.add(
                &path,
                format!("needs a name of 1 to {VALUE_NAME_MAX} letters, digits and `_`"),
            );
        }
        let is_custom = [OWN_VALUES, KEPT_VALUES]
            .iter()
            .any(|it| value.from.starts_with(it));
        if !is_variable(&value.from) || is_custom {
            checks.add(
                &format!("{path}.from"),
                "is not a message variable such as `event.severity`",
            );
        }
        if value.map.len() > VALUE_MAP_MAX {
            let count = value.map.len();
            checks.add(
                &format!("{path}.map"),
                format!("has {count} values; the limit is {VALUE_MAP_MAX}"),
            );
        }
        let texts = value.map.iter().flat_map(|(from, to)| [from, to]);
        let longest = texts.chain([&value.default]).map(String::len).max();
        if longest.is_some_and(|bytes| bytes > SETTING_BYTES_MAX) {
            checks.add(
                &path,
                format!("contains a value of more than {SETTING_BYTES_MAX} bytes"),
            );
        }
    }
    for (field, source) in webhook.templates() {
        // Invalid templates are reported elsewhere.
        let template = AnyTemplate::parse_with(checks.language, source, checks.snippets);
        let Ok(template) = template else {
            continue;
        };
        let required = template.names_under(OWN_VALUES);
        if let Some(missing) = required
            .iter()
            .find(|it| !webhook.values.contains_key(**it))
        {
            checks.add(
                &field,
                format!("uses `values.{missing}`, which `values` does not define"),
            );
        }
    }
}

fn check_expect(expect: &Expect, checks: &mut SettingsChecker<'_>) {
    if expect.statuses.len() > STATUSES_MAX {
        let count = expect.statuses.len();
        checks.add(
            "expect.status",
            format!("has {count} entries; the limit is {STATUSES_MAX}"),
        );
    }
    if expect.statuses.iter().any(|it| !(100..=599).contains(it)) {
        checks.add(
            "expect.status",
            "contains an invalid HTTP status; expected 100 to 599",
        );
    }
    let clauses = [
        ("expect.bodyClause", &expect.body),
        ("expect.destinationClause", &expect.destination),
    ];
    for (field, clause) in clauses {
        check_clause(field, clause.as_ref(), checks);
    }
}

fn check_clause(field: &str, clause: Option<&Clause>, checks: &mut SettingsChecker<'_>) {
    let violations = clause.map(DocumentQuery::compile);
    for violation in violations.and_then(Result::err).into_iter().flatten() {
        let path = match violation.field.as_str() {
            "" => field.to_owned(),
            inside => format!("{field}.{inside}"),
        };
        checks.add(&path, violation.description);
    }
}

fn check_header(header: &Header, checks: &mut SettingsChecker<'_>) {
    let path = header::header_path(header);
    let Ok(name) = HeaderName::try_from(header.name.as_str()) else {
        return checks.add(&path, "is not the name of an HTTP header");
    };
    if FORBIDDEN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(FORBIDDEN_PREFIX) {
        return checks.add(&path, "is set by the service itself");
    }
    if matches!(&header.value, HeaderValue::Plain(text) if text == MASK) {
        return checks.add(
            &path,
            "is the mask of a stored value; enter the actual value",
        );
    }
    let value = header::header_text(header);
    if matches!(header.value, HeaderValue::Secret(_)) && value.is_empty() {
        return checks.add(&path, "has no value, and none is stored");
    }
    if name == CONTENT_TYPE && is_template(value) {
        return checks.add(
            &path,
            "contains variables, which are not allowed in `content-type`",
        );
    }
    if header.name.len() + value.len() > HEADER_VALUE_BYTES_MAX {
        checks.add(
            &path,
            format!("is larger than {HEADER_VALUE_BYTES_MAX} bytes"),
        );
    } else if WireValue::try_from(header::render_without_variables(checks.language, value)).is_err()
        || value.trim() != value
    {
        checks.add(
            &path,
            "has a value with control characters, or white space around it",
        );
    }
}

/// Whether a header's value is never secret: it describes the body.
pub(super) fn is_plain_header(name: &str) -> bool {
    name.eq_ignore_ascii_case(CONTENT_TYPE.as_str())
}

/// Whether headers with this name are always secret, regardless of the settings.
pub(super) fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "authorization",
        "authentication",
        "cookie",
        "token",
        "secret",
        "password",
        "passwd",
        "credential",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    let is_key = |word: &str| matches!(word, "key" | "apikey" | "auth");
    PARTS.iter().any(|part| name.contains(part)) || name.split(['-', '_', '.']).any(is_key)
}

/// Whether a header's value looks like a credential: an HTTP authentication scheme with a
/// parameter, a JSON web token, or a token with a well-known prefix.
pub fn is_credential(value: &str) -> bool {
    const SCHEMES: [&str; 11] = [
        "apikey",
        "aws4-hmac-sha256",
        "basic",
        "bearer",
        "digest",
        "geniekey",
        "negotiate",
        "oauth",
        "splunk",
        "ssws",
        "token",
    ];
    const PREFIXES: [&str; 13] = [
        "AKIA",
        "dop_v1_",
        "ghp_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "hvs.",
        "rk_live_",
        "sk-",
        "sk_live_",
        "whsec_",
        "xapp-",
        "xox",
    ];
    let value = value.trim();
    let scheme = value.split_once(char::is_whitespace).map(|(word, _)| word);
    let is_scheme = scheme.is_some_and(|it| SCHEMES.contains(&it.to_ascii_lowercase().as_str()));
    let is_web_token = value.starts_with("eyJ") && value.matches('.').count() == 2;
    is_scheme || is_web_token || PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

fn is_signing_secret(secrets: &Secret) -> bool {
    let secrets: Vec<_> = secrets.reveal().split(' ').collect();
    let is_one = |secret: &str| {
        let key = secret.strip_prefix("whsec_");
        key.and_then(|key| STANDARD.decode(key).ok())
            .is_some_and(|key| SIGNING_KEY_BYTES.contains(&key.len()))
    };
    secrets.len() <= SIGNING_SECRETS_MAX && secrets.into_iter().all(is_one)
}
