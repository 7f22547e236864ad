//! Conversion of destinations from and to the wire, where secrets are masked.

use std::{collections::BTreeMap, time::Duration};

use bellwether_proto::v1::{self, destination_type::Type, webhook_auth::Auth as WireAuth};

use super::{is_credential, is_plain_header, is_secret_header};
use crate::{
    domain::{
        Budget, DeliverySettings, DestinationKind, Secret, Severity,
        destination::{
            Auth, Email, EventTemplates, Expect, FollowUp, Header, HeaderValue, Keep, MailPriority,
            MsTeams, PagerDuty, ServiceNow, Slack, ValueMap, Webhook, WebhookMethod,
        },
    },
    error::Violation,
    limits::BUDGET_CRITICAL_SHARE_DEFAULT,
    ops::wire::{query, time::duration, to_i32},
};

/// Names on the wire; the first is the default.
const METHODS: [(&str, WebhookMethod); 4] = [
    ("POST", WebhookMethod::Post),
    ("PUT", WebhookMethod::Put),
    ("PATCH", WebhookMethod::Patch),
    ("DELETE", WebhookMethod::Delete),
];
const PRIORITIES: [(&str, MailPriority); 4] = [
    ("NORMAL", MailPriority::Normal),
    ("HIGH", MailPriority::High),
    ("LOW", MailPriority::Low),
    ("SEVERITY", MailPriority::BySeverity),
];

/// Returns the value with a name, or the default if the name is empty or unknown. An unknown name
/// is a violation.
fn parse_name<T: Copy>(
    names: &[(&str, T); 4],
    name: &str,
    field: String,
    violations: &mut Vec<Violation>,
) -> T {
    let known = names.iter().find(|(known, _)| *known == name);
    if known.is_none() && !name.is_empty() {
        let names = names.map(|(name, _)| name).join(", ");
        violations.push(Violation::new(field, format!("is not one of {names}")));
    }
    known.unwrap_or(&names[0]).1
}

fn name_of<T: Copy + PartialEq>(names: &[(&str, T)], value: T) -> String {
    let found = names.iter().find(|(_, it)| *it == value);
    found.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// Converts the destination type; `None` if a violation was added. Only use the result if there are
/// no violations.
pub(super) fn destination_type(
    wire: Option<v1::DestinationType>,
    violations: &mut Vec<Violation>,
) -> Option<DestinationKind> {
    let Some(kind) = wire.and_then(|wire| wire.r#type) else {
        violations.push(Violation::new(
            "type",
            "is required: exactly one of webhook, email, slack, msteams, pagerduty, servicenow, \
             event",
        ));
        return None;
    };
    Some(match kind {
        Type::Webhook(wire) => DestinationKind::Webhook(webhook_from_wire(wire, violations)),
        Type::Email(wire) => DestinationKind::Email(email_from_wire(wire, violations)),
        Type::Slack(wire) => DestinationKind::Slack(Slack {
            channel: wire.channel,
            token: Secret::new(wire.token),
            blocks: wire.blocks,
            update_first: wire.update_first,
            broadcast_replies: wire.broadcast_replies,
        }),
        Type::Msteams(wire) => DestinationKind::MsTeams(MsTeams {
            url: Secret::new(wire.url),
        }),
        Type::Pagerduty(wire) => DestinationKind::PagerDuty(PagerDuty {
            routing_key: Secret::new(wire.routing_key),
            class: wire.class,
            component: wire.component,
            group: wire.group,
            custom_details: wire.custom_details,
            links: wire.links,
            images: wire.images,
        }),
        Type::Servicenow(wire) => DestinationKind::ServiceNow(ServiceNow {
            instance_url: wire.instance_url,
            client_id: wire.client_id,
            client_secret: Secret::new(wire.client_secret),
            token_url: wire.token_url,
            refresh_token: Secret::new(wire.refresh_token),
        }),
        Type::Event(wire) => DestinationKind::Event(event_from_wire(wire, violations)),
    })
}

fn email_from_wire(wire: v1::Email, violations: &mut Vec<Violation>) -> Email {
    let field = "type.email.priority".into();
    let priority = parse_name(&PRIORITIES, &wire.priority, field, violations);
    Email {
        to: wire.to,
        cc: wire.cc,
        bcc: wire.bcc,
        from: wire.from,
        reply_to: wire.reply_to,
        list_id: wire.list_id,
        priority,
        subject: wire.subject,
        body: wire.body,
    }
}

#[expect(clippy::too_many_lines, reason = "one field after the other")]
fn webhook_from_wire(wire: v1::Webhook, violations: &mut Vec<Violation>) -> Webhook {
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

fn event_from_wire(wire: v1::EventDestination, violations: &mut Vec<Violation>) -> EventTemplates {
    let severity = Severity::from_number(wire.severity).unwrap_or_else(|| {
        violations.push(Violation::new(
            "type.event.severity",
            "is required: SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR or \
             SEVERITY_CRITICAL",
        ));
        Severity::Info
    });
    EventTemplates {
        name_template: wire.name_template,
        type_template: wire.type_template,
        summary_template: wire.summary_template,
        severity,
    }
}

pub(super) fn delivery_settings_from_wire(
    wire: Option<v1::DeliverySettings>,
    violations: &mut Vec<Violation>,
) -> DeliverySettings {
    let wire = wire.unwrap_or_default();
    let budget = wire.budget.map(|it| budget_from_wire(it, violations));
    let mut count = |field: &str, count: i32| match u32::try_from(count) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(_negative) => {
            violations.push(Violation::new(format!("delivery.{field}"), "is negative"));
            None
        }
    };
    DeliverySettings {
        max_in_flight: count("maxInFlight", wire.max_in_flight),
        max_per_minute: count("maxPerMinute", wire.max_per_minute),
        max_attempts: count("maxAttempts", wire.max_attempts),
        budget,
        timeout: wire.timeout.and_then(|timeout| {
            let duration = Duration::try_from(timeout);
            duration
                .map_err(|_negative| {
                    violations.push(Violation::new("delivery.timeout", "is not 1s to 30s"));
                })
                .ok()
        }),
    }
}

/// Converts a message budget. Values out of range are reported by the validation of the
/// destination.
fn budget_from_wire(wire: v1::MessageBudget, violations: &mut Vec<Violation>) -> Budget {
    let mut number = |field: &str, number: i32| {
        u32::try_from(number).unwrap_or_else(|_negative| {
            let field = format!("delivery.budget.{field}");
            violations.push(Violation::new(field, "is negative"));
            1
        })
    };
    let share = wire
        .critical_share
        .unwrap_or_else(|| i32::try_from(BUDGET_CRITICAL_SHARE_DEFAULT).unwrap_or(i32::MAX));
    Budget {
        messages: number("messages", wire.messages),
        critical_share: number("criticalShare", share),
        // Missing and negative values become zero, which is below the minimum.
        per: wire
            .per
            .and_then(|per| Duration::try_from(per).ok())
            .unwrap_or_default(),
    }
}

#[expect(clippy::too_many_lines, reason = "one type after the other")]
pub(super) fn destination_type_to_wire(kind: DestinationKind) -> Type {
    match kind {
        DestinationKind::Webhook(webhook) => Type::Webhook(v1::Webhook {
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
        }),
        DestinationKind::Email(email) => Type::Email(v1::Email {
            to: email.to,
            cc: email.cc,
            bcc: email.bcc,
            from: email.from,
            reply_to: email.reply_to,
            list_id: email.list_id,
            // The default has no name.
            priority: name_of(&PRIORITIES[1..], email.priority),
            subject: email.subject,
            body: email.body,
        }),
        DestinationKind::Slack(slack) => Type::Slack(v1::Slack {
            channel: slack.channel,
            token: slack.token.to_string(),
            blocks: slack.blocks,
            update_first: slack.update_first,
            broadcast_replies: slack.broadcast_replies,
        }),
        DestinationKind::MsTeams(teams) => Type::Msteams(v1::MsTeams {
            url: teams.url.to_string(),
        }),
        DestinationKind::PagerDuty(pagerduty) => Type::Pagerduty(v1::PagerDuty {
            routing_key: pagerduty.routing_key.to_string(),
            class: pagerduty.class,
            component: pagerduty.component,
            group: pagerduty.group,
            custom_details: pagerduty.custom_details,
            links: pagerduty.links,
            images: pagerduty.images,
        }),
        DestinationKind::ServiceNow(servicenow) => Type::Servicenow(v1::ServiceNow {
            instance_url: servicenow.instance_url,
            client_id: servicenow.client_id,
            client_secret: servicenow.client_secret.to_string(),
            token_url: servicenow.token_url,
            refresh_token: servicenow.refresh_token.to_string(),
        }),
        DestinationKind::Event(event) => Type::Event(v1::EventDestination {
            name_template: event.name_template,
            type_template: event.type_template,
            summary_template: event.summary_template,
            severity: event.severity as i32,
        }),
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

pub(super) fn settings_to_wire(settings: DeliverySettings) -> v1::DeliverySettings {
    let number = |count: Option<u32>| count.map_or(0, to_i32);
    v1::DeliverySettings {
        timeout: settings.timeout.map(duration),
        max_in_flight: number(settings.max_in_flight),
        max_per_minute: number(settings.max_per_minute),
        max_attempts: number(settings.max_attempts),
        budget: settings.budget.map(|it| v1::MessageBudget {
            messages: to_i32(it.messages),
            per: Some(duration(it.per)),
            critical_share: Some(to_i32(it.critical_share)),
        }),
    }
}
