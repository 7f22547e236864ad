//! Conversion of webhooks from and to the wire, where secrets are masked.

use std::collections::BTreeMap;

use bellwether_proto::v1::{self, webhook_auth::Auth as WireAuth};

use super::check::{is_credential, is_plain_header, is_secret_header};
use crate::{
    domain::{
        Secret,
        destination::{
            Auth, Expect, FollowUp, Header, HeaderValue, Keep, ValueMap, Webhook, WebhookMethod,
        },
    },
    error::Violation,
    wire::{name_of, parse_name, query},
};

/// Names on the wire; the first is the default.
const METHODS: [(&str, WebhookMethod); 4] = [
    ("POST", WebhookMethod::Post),
    ("PUT", WebhookMethod::Put),
    ("PATCH", WebhookMethod::Patch),
    ("DELETE", WebhookMethod::Delete),
];

#[expect(clippy::too_many_lines, reason = "one field after the other")]
pub(super) fn from_wire(wire: v1::Webhook, violations: &mut Vec<Violation>) -> Webhook {
    let method = method_from_wire(&wire.method, "method", violations);
    let auth = wire
        .auth
        .and_then(|it| auth_from_wire(it, violations))
        .map(Box::new);
    let mut follow_up = |wire: Option<v1::WebhookOnClear>, field: &str| {
        wire.map(|it| {
            Box::new(FollowUp {
                method: method_from_wire(&it.method, &format!("{field}.method"), violations),
                gone: it.gone_clause.map(|it| {
                    let path = format!("type.webhook.{field}.goneClause");
                    query::clause(it, &path, violations)
                }),
                url: it.url,
                payload: it.payload,
            })
        })
    };
    let on_clear = follow_up(wire.on_clear, "onClear");
    let on_update = follow_up(wire.on_update, "onUpdate");
    let mut keep: BTreeMap<_, _> = wire.keep.into_iter().map(keep_from_wire).collect();
    for name in wire.keep_secret {
        if let Some(kept) = keep.get_mut(&name) {
            kept.is_secret = true;
        } else {
            let start: String = name.chars().take(100).collect();
            let field = format!("type.webhook.keepSecret[{start}]");
            violations.push(Violation::new(
                field,
                "is not the name of a value in `keep`",
            ));
        }
    }
    let expect = wire
        .expect
        .map(|it| Box::new(expect_from_wire(it, violations)));
    let value = |it: v1::ValueMap| ValueMap {
        from: it.from,
        map: it.map,
        default: it.default,
    };
    for name in &wire.plain_headers {
        let message = if !wire
            .headers
            .keys()
            .any(|other| other.eq_ignore_ascii_case(name))
        {
            "is not the name of a header in `headers`"
        } else if is_secret_header(name) {
            "is a credential header: its value is always secret"
        } else {
            continue;
        };
        let start: String = name.chars().take(100).collect();
        let field = format!("type.webhook.plainHeaders[{start}]");
        violations.push(Violation::new(field, message));
    }
    let is_plain = |name: &str| {
        let mut plain = wire.plain_headers.iter().map(String::as_str);
        plain.any(|plain| plain.eq_ignore_ascii_case(name)) || is_plain_header(name)
    };
    let header = |(name, value): (String, String)| Header {
        value: if is_plain(&name) && !is_credential(&value) {
            HeaderValue::Plain(value)
        } else {
            HeaderValue::Secret(Secret::new(value))
        },
        name,
    };
    Webhook {
        url: wire.url,
        secret_url: Secret::new(wire.secret_url),
        method,
        headers: wire.headers.into_iter().map(header).collect(),
        payload: wire.payload,
        signing_secret: Secret::new(wire.signing_secret),
        auth,
        on_clear,
        on_update,
        keep,
        values: wire
            .values
            .into_iter()
            .map(|(name, it)| (name, value(it)))
            .collect(),
        expect,
        compress: wire.compress,
        test_effect: wire.test_effect,
    }
}

pub(super) fn to_wire(webhook: Webhook) -> v1::Webhook {
    v1::Webhook {
        url: webhook.url,
        secret_url: webhook.secret_url.to_string(),
        method: name_of(&METHODS, webhook.method),
        auth: webhook.auth.map(|it| auth_to_wire(*it)),
        on_clear: webhook.on_clear.map(|it| follow_up_to_wire(*it)),
        on_update: webhook.on_update.map(|it| follow_up_to_wire(*it)),
        keep_secret: secret_names(&webhook.keep),
        keep: webhook
            .keep
            .into_iter()
            .map(|(name, it)| (name, it.from))
            .collect(),
        values: webhook.values.into_iter().map(value_to_wire).collect(),
        expect: webhook.expect.map(|it| v1::WebhookExpect {
            status: it.statuses.into_iter().map(i32::from).collect(),
            body_clause: it.body.as_ref().map(Into::into),
            destination_clause: it.destination.as_ref().map(Into::into),
        }),
        compress: webhook.compress,
        test_effect: webhook.test_effect,
        plain_headers: plain_header_lines(&webhook.headers),
        headers: webhook.headers.into_iter().map(header_to_wire).collect(),
        payload: webhook.payload,
        signing_secret: webhook.signing_secret.to_string(),
    }
}

fn keep_from_wire((name, from): (String, String)) -> (String, Keep) {
    let is_secret = false;
    (name, Keep { from, is_secret })
}

fn method_from_wire(text: &str, field: &str, violations: &mut Vec<Violation>) -> WebhookMethod {
    parse_name(&METHODS, text, format!("type.webhook.{field}"), violations)
}

fn auth_from_wire(wire: v1::WebhookAuth, violations: &mut Vec<Violation>) -> Option<Auth> {
    let Some(auth) = wire.auth else {
        violations.push(Violation::new(
            "type.webhook.auth",
            "is required: exactly one of basic, bearer, oauth2, mtls, aws",
        ));
        return None;
    };
    Some(match auth {
        WireAuth::Basic(wire) => Auth::Basic {
            username: wire.username,
            password: Secret::new(wire.password),
        },
        WireAuth::Bearer(wire) => Auth::Bearer {
            token: Secret::new(wire.token),
        },
        WireAuth::Oauth2(wire) => Auth::OAuth2 {
            token_url: wire.token_url,
            client_id: wire.client_id,
            client_secret: Secret::new(wire.client_secret),
            scope: wire.scope,
            audience: wire.audience,
            params: wire.params.into_iter().collect(),
        },
        WireAuth::Mtls(wire) => Auth::Mtls {
            certificate: wire.certificate,
            private_key: Secret::new(wire.private_key),
        },
        WireAuth::Aws(wire) => Auth::Aws {
            access_key_id: wire.access_key_id,
            secret_access_key: Secret::new(wire.secret_access_key),
            region: wire.region,
            service: wire.service,
        },
    })
}

fn expect_from_wire(wire: v1::WebhookExpect, violations: &mut Vec<Violation>) -> Expect {
    let mut clause = |wire: Option<v1::Clause>, name: &str| {
        let path = format!("type.webhook.expect.{name}");
        wire.map(|it| query::clause(it, &path, violations))
    };
    Expect {
        // Maps out-of-range values to an invalid status, which validation rejects.
        statuses: wire
            .status
            .into_iter()
            .map(|it| u16::try_from(it).unwrap_or(0))
            .collect(),
        body: clause(wire.body_clause, "bodyClause"),
        destination: clause(wire.destination_clause, "destinationClause"),
    }
}

fn follow_up_to_wire(follow_up: FollowUp) -> v1::WebhookOnClear {
    v1::WebhookOnClear {
        url: follow_up.url,
        method: name_of(&METHODS, follow_up.method),
        payload: follow_up.payload,
        gone_clause: follow_up.gone.as_ref().map(Into::into),
    }
}

fn secret_names(keep: &BTreeMap<String, Keep>) -> Vec<String> {
    let secret = keep.iter().filter(|(_, it)| it.is_secret);
    secret.map(|(name, _)| name.clone()).collect()
}

fn auth_to_wire(auth: Auth) -> v1::WebhookAuth {
    let auth = match auth {
        Auth::Basic { username, password } => WireAuth::Basic(v1::BasicAuth {
            username,
            password: password.to_string(),
        }),
        Auth::Bearer { token } => WireAuth::Bearer(v1::BearerAuth {
            token: token.to_string(),
        }),
        Auth::OAuth2 {
            token_url,
            client_id,
            client_secret,
            scope,
            audience,
            params,
        } => WireAuth::Oauth2(v1::OAuth2Auth {
            token_url,
            client_id,
            client_secret: client_secret.to_string(),
            scope,
            audience,
            params: params.into_iter().collect(),
        }),
        Auth::Mtls {
            certificate,
            private_key,
        } => WireAuth::Mtls(v1::MtlsAuth {
            certificate,
            private_key: private_key.to_string(),
        }),
        Auth::Aws {
            access_key_id,
            secret_access_key,
            region,
            service,
        } => WireAuth::Aws(v1::AwsAuth {
            access_key_id,
            secret_access_key: secret_access_key.to_string(),
            region,
            service,
        }),
    };
    v1::WebhookAuth { auth: Some(auth) }
}

fn value_to_wire((name, value): (String, ValueMap)) -> (String, v1::ValueMap) {
    let value = v1::ValueMap {
        from: value.from,
        map: value.map,
        default: value.default,
    };
    (name, value)
}

fn plain_header_lines(headers: &[Header]) -> Vec<String> {
    let is_plain = |header: &&Header| matches!(header.value, HeaderValue::Plain(_));
    let plain = headers.iter().filter(is_plain);
    plain.map(|header| header.name.clone()).collect()
}

fn header_to_wire(header: Header) -> (String, String) {
    let value = match header.value {
        HeaderValue::Plain(text) => text,
        HeaderValue::Secret(secret) => secret.to_string(),
    };
    (header.name, value)
}
