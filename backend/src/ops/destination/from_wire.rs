//! Conversion of destinations from the wire.

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
    ops::wire::query,
};

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
    let priority = match &*wire.priority {
        "" | "NORMAL" => MailPriority::Normal,
        "HIGH" => MailPriority::High,
        "LOW" => MailPriority::Low,
        "SEVERITY" => MailPriority::BySeverity,
        _ => {
            violations.push(Violation::new(
                "type.email.priority",
                "is not one of NORMAL, HIGH, LOW, SEVERITY",
            ));
            MailPriority::Normal
        }
    };
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
    match text {
        "" | "POST" => WebhookMethod::Post,
        "PUT" => WebhookMethod::Put,
        "PATCH" => WebhookMethod::Patch,
        "DELETE" => WebhookMethod::Delete,
        _ => {
            violations.push(Violation::new(
                format!("type.webhook.{field}"),
                "is not one of POST, PUT, PATCH, DELETE",
            ));
            WebhookMethod::Post
        }
    }
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
