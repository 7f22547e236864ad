//! Import of receivers: each integration becomes a destination.

mod presets;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        fields::{Fields, invalid_field_error},
        imported::ImportOutput,
    },
    duration,
    go_template::{self, Language},
};
use crate::error::ImportError;

const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1_000..=30_000;
const LIST: &str = "_configs";
/// Members of `global` with secrets and addresses of receivers that are converted from presets.
const GLOBAL_SECRETS: [&str; 5] = [
    "opsgenie_api_key",
    "rocketchat_token",
    "rocketchat_token_id",
    "telegram_bot_token",
    "victorops_api_key",
];
const GLOBAL_URLS: [&str; 6] = [
    "jira_api_url",
    "opsgenie_api_url",
    "rocketchat_api_url",
    "telegram_api_url",
    "victorops_api_url",
    "webex_api_url",
];

#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) destinations: Vec<Destination>,
    /// Whether the receiver has no integrations and so notifies no one.
    pub(crate) is_silent: bool,
}

pub(crate) struct Destination {
    pub(crate) name: String,
    pub(crate) send_resolved: bool,
}

pub(crate) fn import_receivers(
    fields: &mut Fields,
    global: &mut Fields,
    imported: &mut ImportOutput,
) -> Result<BTreeMap<String, Receiver>, ImportError> {
    let global = Global::read(global)?;
    let mut receivers = BTreeMap::new();
    for mut receiver in fields.take_objects("receivers")? {
        let name = receiver.take_text("name")?;
        let name =
            name.ok_or_else(|| invalid_field_error(&receiver.path_of("name"), "is required"))?;
        let mut made = Receiver {
            is_silent: true,
            ..Receiver::default()
        };
        let lists = receiver.field_names().into_iter();
        for list in lists.filter(|list| list.ends_with(LIST)) {
            for mut config in receiver.take_objects(&list)? {
                made.is_silent = false;
                let kind = list.trim_end_matches(LIST);
                let mut writer = Writer {
                    receiver: &name,
                    kind,
                    global: &global,
                    imported: &mut *imported,
                };
                if let Some((default, body)) = writer.convert_destination(&mut config)? {
                    let send_resolved = config.take_flag("send_resolved")?.unwrap_or(default);
                    let name = writer.add(body, &mut config)?;
                    made.destinations.push(Destination {
                        name,
                        send_resolved,
                    });
                    config.finish(imported);
                }
            }
        }
        receiver.finish(imported);
        receivers.insert(name, made);
    }
    if global.http.is_some() {
        let what = "applies only to webhooks without an `http_config`";
        imported.add_note("global.http_config", what);
    }
    Ok(receivers)
}

struct Global {
    http: Option<Value>,
    slack: Option<(String, Secret)>,
    slack_token: Option<(String, Secret)>,
    pagerduty_url: Option<String>,
    secrets: BTreeMap<&'static str, (String, Secret)>,
    urls: BTreeMap<&'static str, String>,
}

#[derive(Clone)]
enum Secret {
    Value(String),
    File(String),
}

impl Global {
    fn read(global: &mut Fields) -> Result<Self, ImportError> {
        let (mut secrets, mut urls) = (BTreeMap::new(), BTreeMap::new());
        for name in GLOBAL_SECRETS {
            secrets.extend(read_secret(global, name)?.map(|it| (name, it)));
        }
        for name in GLOBAL_URLS {
            urls.extend(global.take_text(name)?.map(|it| (name, it)));
        }
        Ok(Self {
            secrets,
            urls,
            http: global.take_value("http_config"),
            slack: read_secret(global, "slack_api_url")?,
            slack_token: read_secret(global, "slack_app_token")?,
            pagerduty_url: global.take_text("pagerduty_url")?,
        })
    }
}

/// Reads a secret with its path: the field of this name, or the one with the suffix `_file`.
fn read_secret(fields: &mut Fields, name: &str) -> Result<Option<(String, Secret)>, ImportError> {
    let value = fields.take_text(name)?.map(Secret::Value);
    let file = format!("{name}_file");
    if let Some(value) = value {
        return Ok(Some((fields.path_of(name), value)));
    }
    Ok(fields
        .take_text(&file)?
        .map(|path| (fields.path_of(&file), Secret::File(path))))
}

struct Writer<'a> {
    receiver: &'a str,
    kind: &'a str,
    global: &'a Global,
    imported: &'a mut ImportOutput,
}

/// Whether the integration sends closings by default, and the fields of the destination.
type ConvertedDestination = Option<(bool, Value)>;

impl Writer<'_> {
    fn convert_destination(
        &mut self,
        config: &mut Fields,
    ) -> Result<ConvertedDestination, ImportError> {
        match self.kind {
            "webhook" => self.convert_webhook(config),
            "email" => self.convert_email(config),
            "slack" => self.convert_slack(config),
            "pagerduty" => self.convert_pagerduty(config),
            "msteams" | "msteamsv2" => {
                let url = self.required_secret(config, "webhook_url", "url")?;
                Ok(Some((true, json!({"type": {"msteams": {"url": url}}}))))
            }
            _ => self.convert_with_preset(config),
        }
    }

    fn add(&mut self, mut body: Value, config: &mut Fields) -> Result<String, ImportError> {
        let name = self.imported.unique_name("destination", self.receiver);
        body["name"] = json!(name);
        body["description"] = json!(format!("Alertmanager: {}", config.path));
        if let Some(ms) = duration::read_field(config, "timeout")?.filter(|ms| *ms > 0) {
            let limited = ms.clamp(*TIMEOUT_MS.start(), *TIMEOUT_MS.end());
            if limited != ms {
                let what = format!(
                    "{} instead of {}",
                    duration::to_wire(limited),
                    duration::to_wire(ms)
                );
                self.imported.add_note(&config.path_of("timeout"), &what);
            }
            body["delivery"] = json!({"timeout": duration::to_wire(limited)});
        }
        self.imported.add("destination", body);
        Ok(name)
    }

    fn secret_value(&mut self, (path, secret): (String, Secret), word: &str) -> Value {
        match secret {
            Secret::File(file) => json!({"fromFile": file}),
            Secret::Value(value) => {
                let words = ["destination", self.receiver, self.kind, word];
                self.imported.secret_reference(&path, &words, value)
            }
        }
    }

    fn required_secret(
        &mut self,
        config: &mut Fields,
        name: &str,
        word: &str,
    ) -> Result<Value, ImportError> {
        let found = read_secret(config, name)?;
        let found =
            found.ok_or_else(|| invalid_field_error(&config.path_of(name), "is required"))?;
        Ok(self.secret_value(found, word))
    }

    fn convert_webhook(
        &mut self,
        config: &mut Fields,
    ) -> Result<ConvertedDestination, ImportError> {
        let url = self.required_secret(config, "url", "url")?;
        let mut webhook = json!({"secretUrl": url});
        let payload = config.take_value("payload");
        let payload = payload.map(|it| go_template::convert_json(&it));
        let converted = payload.transpose().unwrap_or_else(|why| {
            let why = format!("the Go template is not converted: it {why}");
            self.imported
                .record_omission(&config.path_of("payload"), &why);
            None
        });
        let Some(payload) = converted else {
            let what =
                "the body has this service's format, not Alertmanager's; see the topic «webhook»";
            self.imported.add_note(&config.path, what);
            self.convert_http(config, &mut webhook)?;
            return Ok(Some((true, json!({"type": {"webhook": webhook}}))));
        };
        webhook["payload"] = json!(payload);
        self.convert_http(config, &mut webhook)?;
        let body = json!({"templateLanguage": "JINJA", "type": {"webhook": webhook}});
        Ok(Some((true, body)))
    }

    /// Applies `http_config`, or the one in `global`, to a webhook.
    fn convert_http(
        &mut self,
        config: &mut Fields,
        webhook: &mut Value,
    ) -> Result<(), ImportError> {
        let own = config.has("http_config");
        let http = if own {
            Some(config.take_object("http_config")?)
        } else {
            let shared = self.global.http.clone();
            shared
                .map(|it| Fields::from_value("global.http_config", it))
                .transpose()?
        };
        if let Some(mut http) = http {
            self.convert_authentication(&mut http, webhook)?;
            http.finish(self.imported);
        }
        Ok(())
    }

    fn convert_authentication(
        &mut self,
        http: &mut Fields,
        webhook: &mut Value,
    ) -> Result<(), ImportError> {
        if http.has("basic_auth") {
            let mut basic = http.take_object("basic_auth")?;
            if let Some(username) = basic.take_text("username")? {
                let password = self.required_secret(&mut basic, "password", "password")?;
                webhook["auth"] = json!({"basic": {"username": username, "password": password}});
            }
            basic.finish(self.imported);
        }
        if let Some(token) = read_secret(http, "bearer_token")? {
            webhook["auth"] = json!({"bearer": {"token": self.secret_value(token, "token")}});
        }
        if http.has("authorization") {
            let mut authorization = http.take_object("authorization")?;
            let kind = authorization
                .take_text("type")?
                .unwrap_or_else(|| "Bearer".to_owned());
            if kind.eq_ignore_ascii_case("bearer") {
                let token = self.required_secret(&mut authorization, "credentials", "token")?;
                webhook["auth"] = json!({"bearer": {"token": token}});
            } else {
                let found = read_secret(&mut authorization, "credentials")?;
                let (path, found) = found.ok_or_else(|| {
                    invalid_field_error(&authorization.path_of("credentials"), "is required")
                })?;
                let what = format!("the header value is `{kind}`, a space and the credentials");
                self.imported.add_note(&authorization.path, &what);
                let header = match found {
                    Secret::Value(value) => Secret::Value(format!("{kind} {value}")),
                    file @ Secret::File(_) => file,
                };
                let header = self.secret_value((path, header), "authorization");
                webhook["headers"] = json!({"authorization": header});
            }
            authorization.finish(self.imported);
        }
        if http.has("oauth2") {
            self.convert_oauth2(http.take_object("oauth2")?, webhook)?;
        }
        if http.has("tls_config") {
            let mut tls = http.take_object("tls_config")?;
            if let (Some(certificate), Some(key)) =
                (tls.take_text("cert_file")?, tls.take_text("key_file")?)
            {
                webhook["auth"] = json!({"mtls": {
                    "certificate": {"fromFile": certificate}, "privateKey": {"fromFile": key},
                }});
            }
            let why = "certificate authorities are set in `egress.ca_file` of bellwether.toml";
            tls.finish_with_reason(self.imported, why);
        }
        Ok(())
    }

    fn convert_oauth2(
        &mut self,
        mut oauth2: Fields,
        webhook: &mut Value,
    ) -> Result<(), ImportError> {
        let id = oauth2.take_text("client_id")?;
        let id =
            id.ok_or_else(|| invalid_field_error(&oauth2.path_of("client_id"), "is required"))?;
        let token_url = oauth2.take_text("token_url")?;
        let token_url = token_url
            .ok_or_else(|| invalid_field_error(&oauth2.path_of("token_url"), "is required"))?;
        let secret = self.required_secret(&mut oauth2, "client_secret", "client_secret")?;
        let scopes = oauth2.take_texts("scopes")?.join(" ");
        let mut auth = json!({"clientId": id, "clientSecret": secret, "tokenUrl": token_url});
        if !scopes.is_empty() {
            auth["scope"] = json!(scopes);
        }
        let mut params = serde_json::Map::new();
        for (name, value) in oauth2.take_pairs("endpoint_params")? {
            if name == "audience" {
                auth["audience"] = json!(value);
            } else {
                params.insert(name, json!(value));
            }
        }
        if !params.is_empty() {
            auth["params"] = Value::Object(params);
        }
        webhook["auth"] = json!({"oauth2": auth});
        oauth2.finish(self.imported);
        Ok(())
    }

    fn convert_email(&mut self, config: &mut Fields) -> Result<ConvertedDestination, ImportError> {
        let to = config.take_text("to")?;
        let to = to.ok_or_else(|| invalid_field_error(&config.path_of("to"), "is required"))?;
        if is_template(&to) {
            self.imported.record_omission(
                &config.path,
                "`to` is a template; templates are not supported here",
            );
            return Ok(None);
        }
        let mut email = json!({"to": to});
        if let Some(from) = config.take_text("from")? {
            email["from"] = json!(from);
        }
        let server = [
            "smarthost",
            "hello",
            "auth_username",
            "auth_password",
            "auth_password_file",
            "auth_secret",
            "auth_secret_file",
            "auth_identity",
            "require_tls",
            "tls_config",
        ];
        for name in server {
            if config.take_value(name).is_some() {
                let why = "the mail server is set in section `[smtp]` of bellwether.toml";
                self.imported.record_omission(&config.path_of(name), why);
            }
        }
        Ok(Some((false, json!({"type": {"email": email}}))))
    }

    /// Returns a `slack` destination for a bot token, or a webhook for an incoming webhook.
    fn convert_slack(&mut self, config: &mut Fields) -> Result<ConvertedDestination, ImportError> {
        let channel = config.take_text("channel")?;
        let mut token = read_secret(config, "app_token")?;
        let url = read_secret(config, "api_url")?;
        // A receiver with credentials uses a bot token; an incoming webhook requires no
        // credentials.
        let mut http = config.take_object("http_config")?;
        let mut authorization = http.take_object("authorization")?;
        token = token.or(read_secret(&mut authorization, "credentials")?);
        authorization.take_value("type");
        authorization.finish(self.imported);
        http.finish(self.imported);
        let token = token.or_else(|| match url {
            Some(_) => None,
            None => self.global.slack_token.clone(),
        });
        if let (Some(token), Some(channel)) = (token, &channel) {
            if is_template(channel) {
                let why = "is a Go template; replace it with a fixed channel and import again";
                return Err(invalid_field_error(&config.path_of("channel"), why));
            }
            let mut slack = json!({"channel": channel, "token": self.secret_value(token, "token")});
            if config.take_flag("update_message")? == Some(true) {
                slack["updateFirst"] = json!(true);
            }
            return Ok(Some((false, json!({"type": {"slack": slack}}))));
        }
        let Some(url) = url.or_else(|| self.global.slack.clone()) else {
            return Err(invalid_field_error(
                &config.path_of("api_url"),
                "is required unless `global.slack_api_url` is set",
            ));
        };
        let channel = channel.map(|it| {
            let channel = go_template::convert_json_string(&it, Language::Mustache);
            let channel =
                channel.map_err(|why| template_error(&config.path_of("channel"), &why))?;
            Ok(format!("\"channel\": {channel}, "))
        });
        let channel = channel.transpose()?;
        let payload = format!(
            "{{{}\"text\": \"{{{{event.severity}}}}{{{{#clear}}}}, {{{{event.status}}}}{{{{/clear}}}}: \
             {{{{headline}}}} {{{{link}}}}\"}}",
            channel.unwrap_or_default()
        );
        let url = self.secret_value(url, "url");
        let what = "converted to a webhook; the type `slack` needs a bot token";
        self.imported.add_note(&config.path, what);
        Ok(Some((
            false,
            json!({"type": {"webhook": {"secretUrl": url, "payload": payload}}}),
        )))
    }

    fn convert_pagerduty(
        &mut self,
        config: &mut Fields,
    ) -> Result<ConvertedDestination, ImportError> {
        let Some(key) = read_secret(config, "routing_key")? else {
            let why = "uses PagerDuty's Events API v1; create an integration for Events API v2";
            self.imported.record_omission(&config.path, why);
            return Ok(None);
        };
        let own = config
            .take_text("url")?
            .map(|url| (config.path_of("url"), url));
        let shared = self.global.pagerduty_url.clone();
        let url = own.or_else(|| Some(("global.pagerduty_url".to_owned(), shared?)));
        if let Some((path, _)) = url.filter(|(_, url)| !url.contains("//events.pagerduty.com/")) {
            self.imported
                .record_omission(&path, "the address of PagerDuty's Events API is fixed");
        }
        let mut pagerduty = json!({"routingKey": self.secret_value(key, "routing_key")});
        for name in ["class", "component", "group"] {
            let Some(text) = config.take_text(name)? else {
                continue;
            };
            match go_template::convert_text(&text, Language::Mustache) {
                Ok(text) => pagerduty[name] = json!(text),
                Err(why) => {
                    let why = format!("the Go template is not converted: it {why}");
                    self.imported.record_omission(&config.path_of(name), &why);
                }
            }
        }
        Ok(Some((true, json!({"type": {"pagerduty": pagerduty}}))))
    }
}

fn template_error(path: &str, why: &str) -> ImportError {
    let why = format!(
        "is a Go template that is not converted, because it {why}; replace it with a fixed value \
         and import again"
    );
    invalid_field_error(path, &why)
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}
