//! Destinations, and the health of their deliveries.

use std::time::Duration;

use super::webhook::WebhookExtras;
use crate::{
    domain::{
        Budget, DeliverySettings, Destination, DestinationKind, Health, HealthState,
        destination::{
            AttemptSummary, Auth, Email, EventTemplates, Header, HeaderValue, MailPriority,
            MsTeams, PagerDuty, RejectedRecipient, RepeatedRejections, ServiceNow, Slack, Webhook,
        },
    },
    record::table::{
        Reader, Secrets, Table, TakeField, Unreadable, Writer, field::message, numbers, record,
    },
};

record! {
    Destination as it {
        1 id, 2 name, 3 description, 4 tags, 5 kind,
        6 timeout_ms = it.delivery.timeout.map_or(0, to_milliseconds),
        7 max_in_flight as OptionalForm = it.delivery.max_in_flight,
        8 max_per_minute as OptionalForm = it.delivery.max_per_minute,
        9 max_attempts as OptionalForm = it.delivery.max_attempts,
        10 revision, 11 create_ms, 12 update_ms,
        13 budget = it.delivery.budget,
        14 template_language,
    } with {
        delivery: DeliverySettings {
            timeout: (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms)),
            max_in_flight,
            max_per_minute,
            max_attempts,
            budget,
        },
    }
}

record! {
    Budget as it {
        1 messages, 2 per_ms = to_milliseconds(it.per), 3 critical_share,
    } with { per: Duration::from_millis(per_ms) }
}

pub(super) fn to_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A destination type: its name and its fields. Numbers are shared by all types, so that each has
/// one meaning.
impl Table for DestinationKind {
    fn write(&self, to: &mut Writer<'_>) {
        KindCode {
            word: kind_code(self),
        }
        .write(to);
        match self {
            Self::Webhook(webhook) => webhook.write(to),
            Self::Email(email) => email.write(to),
            Self::Slack(slack) => slack.write(to),
            Self::MsTeams(teams) => teams.write(to),
            Self::PagerDuty(pagerduty) => pagerduty.write(to),
            Self::ServiceNow(servicenow) => servicenow.write(to),
            Self::Event(event) => event.write(to),
        }
    }

    fn read(from: Reader<'_>) -> Result<Option<Self>, Unreadable> {
        check_types(from)?;
        let Some(KindCode { word }) = KindCode::read(from)? else {
            return Ok(None);
        };
        Ok(match word {
            1 => Webhook::read(from)?.map(Self::Webhook),
            2 => Email::read(from)?.map(Self::Email),
            3 => Slack::read(from)?.map(Self::Slack),
            4 => MsTeams::read(from)?.map(Self::MsTeams),
            5 => PagerDuty::read(from)?.map(Self::PagerDuty),
            6 => ServiceNow::read(from)?.map(Self::ServiceNow),
            7 => EventTemplates::read(from)?.map(Self::Event),
            _ => None,
        })
    }
}

message!(DestinationKind);

struct KindCode {
    word: i32,
}

record! { KindCode { 1 word } }

fn kind_code(kind: &DestinationKind) -> i32 {
    match kind {
        DestinationKind::Webhook(_) => 1,
        DestinationKind::Email(_) => 2,
        DestinationKind::Slack(_) => 3,
        DestinationKind::MsTeams(_) => 4,
        DestinationKind::PagerDuty(_) => 5,
        DestinationKind::ServiceNow(_) => 6,
        DestinationKind::Event(_) => 7,
    }
}

/// Rejects a field with the wrong wire type, even if it belongs to another destination type.
fn check_types(from: Reader<'_>) -> Result<(), Unreadable> {
    let mut from = Reader {
        secrets: Secrets::LeftOut,
        ..from
    };
    while let Some((tag, wire_type)) = from.read_key()? {
        let from = &mut from;
        match tag {
            1 | 3 | 21 => drop(<i32 as TakeField>::take(tag, wire_type, from)?),
            2 | 5 | 7..=10 | 14 | 16 | 18..=20 | 27 => drop(from.read_text(wire_type)?),
            6 | 11..=13 | 15 | 17 | 22 | 24..=26 | 28 | 30 => drop(from.read_bytes(wire_type)?),
            4 => drop(Header::read(from.read_message(wire_type)?)?),
            23 => drop(WebhookExtras::read(from.read_message(wire_type)?)?),
            29 => drop(MailExtras::read(from.read_message(wire_type)?)?),
            40 => drop(SlackExtras::read(from.read_message(wire_type)?)?),
            41 => drop(PagerDutyExtras::read(from.read_message(wire_type)?)?),
            _ => from.skip(tag, wire_type)?,
        }
    }
    Ok(())
}

record! {
    Webhook as it, secrets {
        2 url, 3 method, 4 headers, 5 payload,
        6 signing_key = secrets.seal(SIGNING_SECRET, &it.signing_secret),
        22 address = secrets.seal(SECRET_URL, &it.secret_url),
        23 more as NonEmptyForm = WebhookExtras {
            auth: it.auth.clone(),
            on_clear: it.on_clear.clone(),
            values: it.values.clone(),
            expect: it.expect.clone(),
            compress: it.compress,
            test_effect: it.test_effect.clone(),
            on_update: it.on_update.clone(),
            keep: it.keep.clone(),
        },
        24 password = seal_auth(it, 24, secrets),
        25 bearer = seal_auth(it, 25, secrets),
        26 client_secret = seal_auth(it, 26, secrets),
        28 private_key = seal_auth(it, 28, secrets),
        30 aws_key = seal_auth(it, 30, secrets),
    } => {
        let WebhookExtras {
            mut auth, on_clear, values, expect, compress, test_effect, on_update, keep,
        } = more;
        let sealed = [
            (24, password), (25, bearer), (26, client_secret), (28, private_key), (30, aws_key),
        ];
        if let Some(auth) = &mut auth {
            open_auth(auth, sealed, secrets)?;
        }
        Some(Self {
            url,
            secret_url: secrets.open(SECRET_URL, address)?,
            method,
            headers,
            payload,
            signing_secret: secrets.open(SIGNING_SECRET, signing_key)?,
            auth,
            on_clear,
            on_update,
            keep,
            values,
            expect,
            compress,
            test_effect,
        })
    }
}

const SECRET_URL: &str = "webhook.secret_url";
const SIGNING_SECRET: &str = "webhook.signing_secret";

fn secret_field(auth: &Auth) -> (u32, &'static str) {
    match auth {
        Auth::Basic { .. } => (24, "webhook.auth.basic.password"),
        Auth::Bearer { .. } => (25, "webhook.auth.bearer.token"),
        Auth::OAuth2 { .. } => (26, "webhook.auth.oauth2.client_secret"),
        Auth::Mtls { .. } => (28, "webhook.auth.mtls.private_key"),
        Auth::Aws { .. } => (30, "webhook.auth.aws.secret_access_key"),
    }
}

fn seal_auth(webhook: &Webhook, tag: u32, secrets: Secrets<'_>) -> Option<Vec<u8>> {
    let auth = webhook.auth.as_deref()?;
    let (place, name) = secret_field(auth);
    let (Auth::Basic {
        password: secret, ..
    }
    | Auth::Bearer { token: secret }
    | Auth::OAuth2 {
        client_secret: secret,
        ..
    }
    | Auth::Mtls {
        private_key: secret,
        ..
    }
    | Auth::Aws {
        secret_access_key: secret,
        ..
    }) = auth;
    (place == tag).then(|| secrets.seal(name, secret)).flatten()
}

fn open_auth(
    auth: &mut Auth,
    sealed: [(u32, Option<Vec<u8>>); 5],
    secrets: Secrets<'_>,
) -> Option<()> {
    let (tag, name) = secret_field(auth);
    let mut sealed = sealed.into_iter();
    let sealed = sealed.find_map(|(place, sealed)| sealed.filter(|_| place == tag));
    let (Auth::Basic {
        password: secret, ..
    }
    | Auth::Bearer { token: secret }
    | Auth::OAuth2 {
        client_secret: secret,
        ..
    }
    | Auth::Mtls {
        private_key: secret,
        ..
    }
    | Auth::Aws {
        secret_access_key: secret,
        ..
    }) = auth;
    *secret = secrets.open(name, sealed)?;
    Some(())
}

record! {
    Header as it, secrets {
        1 name,
        2 plain = match &it.value {
            HeaderValue::Plain(text) => text,
            HeaderValue::Secret(_) => "",
        },
        3 sealed = match &it.value {
            HeaderValue::Plain(_) => None,
            HeaderValue::Secret(secret) => {
                Some(secrets.seal(&header_secret(&it.name), secret).unwrap_or_default())
            }
        },
    } => decode_header(secrets, name, plain, sealed)
}

fn decode_header(
    secrets: Secrets<'_>,
    name: String,
    plain: String,
    sealed: Option<Vec<u8>>,
) -> Option<Header> {
    let value = match sealed {
        None => HeaderValue::Plain(plain),
        sealed => HeaderValue::Secret(secrets.open(&header_secret(&name), sealed)?),
    };
    Some(Header { name, value })
}

fn header_secret(header: &str) -> String {
    format!("webhook.headers.{header}")
}

record! {
    Email as it {
        7 to, 8 subject, 9 body, 27 cc,
        29 more as NonEmptyForm = MailExtras {
            bcc: it.bcc.clone(),
            from: it.from.clone(),
            reply_to: it.reply_to.clone(),
            list_id: it.list_id.clone(),
            priority: it.priority,
        },
    } => {
        let MailExtras { bcc, from, reply_to, list_id, priority } = more;
        Some(Self { to, cc, bcc, from, reply_to, list_id, priority, subject, body })
    }
}

struct MailExtras {
    bcc: String,
    from: String,
    reply_to: String,
    list_id: String,
    priority: MailPriority,
}

record! { MailExtras { 1 bcc, 2 from, 3 reply_to, 4 list_id, 5 priority } }

numbers! { MailPriority { 0 Normal, 1 High, 2 Low, 3 BySeverity } }

record! {
    Slack as it, secrets {
        10 channel,
        11 sealed = secrets.seal("slack.token", &it.token),
        40 more as NonEmptyForm = SlackExtras {
            blocks: it.blocks.clone(),
            update_first: it.update_first,
            broadcast_replies: it.broadcast_replies,
        },
    } => {
        let SlackExtras { blocks, update_first, broadcast_replies } = more;
        let token = secrets.open("slack.token", sealed)?;
        Some(Self { channel, token, blocks, update_first, broadcast_replies })
    }
}

struct SlackExtras {
    blocks: String,
    update_first: bool,
    broadcast_replies: bool,
}

record! { SlackExtras { 1 blocks, 2 update_first, 3 broadcast_replies } }

record! {
    MsTeams as it, secrets {
        12 sealed = secrets.seal("msteams.url", &it.url),
    } with { url: secrets.open("msteams.url", sealed)? }
}

record! {
    PagerDuty as it, secrets {
        13 sealed = secrets.seal("pagerduty.routing_key", &it.routing_key),
        41 more as NonEmptyForm = PagerDutyExtras {
            class: it.class.clone(),
            component: it.component.clone(),
            group: it.group.clone(),
            custom_details: it.custom_details.clone(),
            links: it.links.clone(),
            images: it.images.clone(),
        },
    } => {
        let PagerDutyExtras { class, component, group, custom_details, links, images } = more;
        let routing_key = secrets.open("pagerduty.routing_key", sealed)?;
        Some(Self { routing_key, class, component, group, custom_details, links, images })
    }
}

struct PagerDutyExtras {
    class: String,
    component: String,
    group: String,
    custom_details: String,
    links: String,
    images: String,
}

record! { PagerDutyExtras {
    1 class, 2 component, 3 group, 4 custom_details, 5 links, 6 images,
} }

record! {
    ServiceNow as it, secrets {
        2 instance_url, 14 client_id,
        15 sealed_secret = secrets.seal("servicenow.client_secret", &it.client_secret),
        16 token_url,
        17 sealed_token = secrets.seal("servicenow.refresh_token", &it.refresh_token),
    } with {
        client_secret: secrets.open("servicenow.client_secret", sealed_secret)?,
        refresh_token: secrets.open("servicenow.refresh_token", sealed_token)?,
    }
}

record! { EventTemplates { 18 name_template, 19 type_template, 20 summary_template, 21 severity } }

record! {
    Health as it {
        1 destination, 2 state, 3 since_ms, 4 failures, 5 last_error, 6 last_success_ms,
        7 took_ms as PackedForm = it.tried.iter().map(|it| it.took_ms).collect::<Vec<_>>(),
        8 delivered as PackedForm = it.tried.iter().map(|it| it.is_delivered).collect::<Vec<_>>(),
        9 refused, 10 requested_until_ms, 11 failing_since_ms,
        12 alike_kind = it.alike.kind,
        13 alike_messages = it.alike.messages,
    } with {
        tried: decode_attempts(took_ms, delivered),
        alike: RepeatedRejections { kind: alike_kind, messages: alike_messages },
    }
}

fn decode_attempts(took_ms: Vec<u32>, delivered: Vec<bool>) -> Vec<AttemptSummary> {
    let both = took_ms.into_iter().zip(delivered);
    let tried = |(took_ms, is_delivered)| AttemptSummary {
        took_ms,
        is_delivered,
    };
    both.map(tried).collect()
}

record! { RejectedRecipient { 1 address, 2 said, 3 is_permanent, 4 since_ms } }

numbers! { HealthState { 1 Healthy, 2 Failing, 3 Paused } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Secret;

    #[test]
    fn later_destination_fields_round_trip() {
        let text = |text: &str| text.to_owned();
        let mut kinds = vec![
            DestinationKind::Slack(Slack {
                channel: text("#ops"),
                token: Secret::default(),
                blocks: text("[]"),
                update_first: true,
                broadcast_replies: true,
            }),
            DestinationKind::PagerDuty(PagerDuty {
                routing_key: Secret::default(),
                class: text("a"),
                component: text("b"),
                group: text("c"),
                custom_details: text("{}"),
                links: text("[1]"),
                images: text("[2]"),
            }),
        ];
        let mut webhook = crate::samples::reaching_webhook().kind;
        webhook.for_each_secret(|_place, secret| *secret = Secret::default());
        if let DestinationKind::Webhook(webhook) = &mut webhook
            && let Some(Auth::OAuth2 {
                audience, params, ..
            }) = webhook.auth.as_deref_mut()
        {
            *audience = text("https://api.example/");
            *params = [(text("resource"), text("x"))].into();
        }
        let mut signed = webhook.clone();
        if let DestinationKind::Webhook(webhook) = &mut signed {
            webhook.auth = Some(Box::new(Auth::Aws {
                access_key_id: text("AK"),
                secret_access_key: Secret::default(),
                region: text("eu-central-1"),
                service: text("sns"),
            }));
        }
        kinds.extend([webhook, signed]);
        for kind in kinds {
            let mut to = Writer::new(Secrets::LeftOut);
            kind.write(&mut to);
            let from = Reader::new(&to.bytes, Secrets::LeftOut);
            assert_eq!(DestinationKind::read(from), Ok(Some(kind)));
        }
    }
}
