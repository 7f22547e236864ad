//! Conversion of destinations to the wire, with secrets masked.

use std::collections::BTreeMap;

use bellwether_proto::v1::{self, destination_type::Type, webhook_auth::Auth as WireAuth};

use crate::{
    domain::{
        DeliverySettings, DestinationKind,
        destination::{
            Auth, FollowUp, Header, HeaderValue, Keep, MailPriority, ValueMap, WebhookMethod,
        },
    },
    ops::wire::time::duration,
};

#[expect(clippy::too_many_lines, reason = "one type after the other")]
pub(super) fn destination_type_to_wire(kind: DestinationKind) -> Type {
    match kind {
        DestinationKind::Webhook(webhook) => Type::Webhook(v1::Webhook {
            url: webhook.url,
            secret_url: webhook.secret_url.to_string(),
            method: method_name(webhook.method),
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
            priority: priority_name(email.priority).into(),
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
        method: method_name(follow_up.method),
        payload: follow_up.payload,
        gone_clause: follow_up.gone.as_ref().map(Into::into),
    }
}

fn secret_names(keep: &BTreeMap<String, Keep>) -> Vec<String> {
    let secret = keep.iter().filter(|(_, it)| it.is_secret);
    secret.map(|(name, _)| name.clone()).collect()
}

fn method_name(method: WebhookMethod) -> String {
    match method {
        WebhookMethod::Post => "POST",
        WebhookMethod::Put => "PUT",
        WebhookMethod::Patch => "PATCH",
        WebhookMethod::Delete => "DELETE",
    }
    .into()
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
    let number =
        |count: Option<u32>| count.map_or(0, |count| i32::try_from(count).unwrap_or(i32::MAX));
    v1::DeliverySettings {
        timeout: settings.timeout.map(duration),
        max_in_flight: number(settings.max_in_flight),
        max_per_minute: number(settings.max_per_minute),
        max_attempts: number(settings.max_attempts),
        budget: settings.budget.map(|it| v1::MessageBudget {
            messages: number(Some(it.messages)),
            per: Some(duration(it.per)),
            critical_share: Some(number(Some(it.critical_share))),
        }),
    }
}

/// Returns the name of a priority; empty for the default.
fn priority_name(priority: MailPriority) -> &'static str {
    match priority {
        MailPriority::Normal => "",
        MailPriority::High => "HIGH",
        MailPriority::Low => "LOW",
        MailPriority::BySeverity => "SEVERITY",
    }
}
