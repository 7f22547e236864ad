//! Import of receivers: each integration becomes a destination.

mod presets;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        fields::{Fields, invalid},
        imported::ImportOutput,
    },
    duration,
};
use crate::error::ImportError;

const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1_000..=30_000;
const LIST: &str = "_configs";
/// Secrets and addresses in `global` of receivers that are converted from presets.
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

pub(crate) fn read(
    fields: &mut Fields,
    global: &mut Fields,
    imported: &mut ImportOutput,
) -> Result<BTreeMap<String, Receiver>, ImportError> {
    let global = Global::read(global)?;
    let mut receivers = BTreeMap::new();
    for mut receiver in fields.objects("receivers")? {
        let name = receiver.text("name")?;
        let name = name.ok_or_else(|| invalid(&receiver.at("name"), "is required"))?;
        let mut made = Receiver {
            is_silent: true,
            ..Receiver::default()
        };
        let lists = receiver.names().into_iter();
        for list in lists.filter(|list| list.ends_with(LIST)) {
            for mut config in receiver.objects(&list)? {
                made.is_silent = false;
                let kind = list.trim_end_matches(LIST);
                let mut writer = Writer {
                    receiver: &name,
                    kind,
                    global: &global,
                    imported: &mut *imported,
                };
                if let Some((default, body)) = writer.destination(&mut config)? {
                    let send_resolved = config.flag("send_resolved")?.unwrap_or(default);
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
        let what = "is used only for webhooks without an `http_config`";
        imported.note("global.http_config", what);
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
            secrets.extend(secret(global, name)?.map(|it| (name, it)));
        }
        for name in GLOBAL_URLS {
            urls.extend(global.text(name)?.map(|it| (name, it)));
        }
        Ok(Self {
            secrets,
            urls,
            http: global.take("http_config"),
            slack: secret(global, "slack_api_url")?,
            slack_token: secret(global, "slack_app_token")?,
            pagerduty_url: global.text("pagerduty_url")?,
        })
    }
}

/// Reads a secret with its path: the field of this name, or the one with the suffix `_file`.
fn secret(fields: &mut Fields, name: &str) -> Result<Option<(String, Secret)>, ImportError> {
    let value = fields.text(name)?.map(Secret::Value);
    let file = format!("{name}_file");
    if let Some(value) = value {
        return Ok(Some((fields.at(name), value)));
    }
    Ok(fields
        .text(&file)?
        .map(|path| (fields.at(&file), Secret::File(path))))
}

struct Writer<'a> {
    receiver: &'a str,
    kind: &'a str,
    global: &'a Global,
    imported: &'a mut ImportOutput,
}

/// Whether closings are sent by default, and the fields of the destination.
type Converted = Option<(bool, Value)>;

impl Writer<'_> {
    fn destination(&mut self, config: &mut Fields) -> Result<Converted, ImportError> {
        match self.kind {
            "webhook" => self.webhook(config),
            "email" => self.email(config),
            "slack" => self.slack(config),
            "pagerduty" => self.pagerduty(config),
            "msteams" | "msteamsv2" => {
                let url = self.required_secret(config, "webhook_url", "url")?;
                Ok(Some((true, json!({"type": {"msteams": {"url": url}}}))))
            }
            _ => self.preset(config),
        }
    }

    fn add(&mut self, mut body: Value, config: &mut Fields) -> Result<String, ImportError> {
        let name = self.imported.name("destination", self.receiver);
        body["name"] = json!(name);
        body["description"] = json!(format!("Alertmanager: {}", config.path));
        if let Some(ms) = duration::read_field(config, "timeout")?.filter(|ms| *ms > 0) {
            let limited = ms.clamp(*TIMEOUT_MS.start(), *TIMEOUT_MS.end());
            if limited != ms {
                let what = format!(
                    "{} instead of {}",
                    duration::wire(limited),
                    duration::wire(ms)
                );
                self.imported.note(&config.at("timeout"), &what);
            }
            body["delivery"] = json!({"timeout": duration::wire(limited)});
        }
        self.imported.add("destination", body);
        Ok(name)
    }

    fn secret_value(&mut self, (path, secret): (String, Secret), word: &str) -> Value {
        match secret {
            Secret::File(file) => json!({"fromFile": file}),
            Secret::Value(value) => {
                let words = ["destination", self.receiver, self.kind, word];
                self.imported.secret(&path, &words, value)
            }
        }
    }

    fn required_secret(
        &mut self,
        config: &mut Fields,
        name: &str,
        word: &str,
    ) -> Result<Value, ImportError> {
        let found = secret(config, name)?;
        let found = found.ok_or_else(|| invalid(&config.at(name), "is required"))?;
        Ok(self.secret_value(found, word))
    }

    fn webhook(&mut self, config: &mut Fields) -> Result<Converted, ImportError> {
        let url = self.required_secret(config, "url", "url")?;
        let mut webhook = json!({"secretUrl": url});
        let what =
            "the body is this service's document, not Alertmanager's; see the topic «webhook»";
        self.imported.note(&config.path, what);
        self.http(config, &mut webhook)?;
        Ok(Some((true, json!({"type": {"webhook": webhook}}))))
    }

    /// Applies `http_config`, or that of `global`, to a webhook.
    fn http(&mut self, config: &mut Fields, webhook: &mut Value) -> Result<(), ImportError> {
        let own = config.has("http_config");
        let http = if own {
            Some(config.object("http_config")?)
        } else {
            let shared = self.global.http.clone();
            shared
                .map(|it| Fields::of("global.http_config", it))
                .transpose()?
        };
        if let Some(mut http) = http {
            self.authentication(&mut http, webhook)?;
            http.finish(self.imported);
        }
        Ok(())
    }

    fn authentication(
        &mut self,
        http: &mut Fields,
        webhook: &mut Value,
    ) -> Result<(), ImportError> {
        if http.has("basic_auth") {
            let mut basic = http.object("basic_auth")?;
            if let Some(username) = basic.text("username")? {
                let password = self.required_secret(&mut basic, "password", "password")?;
                webhook["auth"] = json!({"basic": {"username": username, "password": password}});
            }
            basic.finish(self.imported);
        }
        if let Some(token) = secret(http, "bearer_token")? {
            webhook["auth"] = json!({"bearer": {"token": self.secret_value(token, "token")}});
        }
        if http.has("authorization") {
            let mut authorization = http.object("authorization")?;
            let kind = authorization
                .text("type")?
                .unwrap_or_else(|| "Bearer".to_owned());
            if kind.eq_ignore_ascii_case("bearer") {
                let token = self.required_secret(&mut authorization, "credentials", "token")?;
                webhook["auth"] = json!({"bearer": {"token": token}});
            } else {
                let found = secret(&mut authorization, "credentials")?;
                let (path, found) = found
                    .ok_or_else(|| invalid(&authorization.at("credentials"), "is required"))?;
                let what =
                    format!("the value of the header is `{kind}`, a space and the credentials");
                self.imported.note(&authorization.path, &what);
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
            self.oauth2(http.object("oauth2")?, webhook)?;
        }
        if http.has("tls_config") {
            let mut tls = http.object("tls_config")?;
            if let (Some(certificate), Some(key)) = (tls.text("cert_file")?, tls.text("key_file")?)
            {
                webhook["auth"] = json!({"mtls": {
                    "certificate": {"fromFile": certificate}, "privateKey": {"fromFile": key},
                }});
            }
            let why = "certificate authorities are set in `egress.ca_file` of bellwether.toml";
            tls.finish_with(self.imported, why);
        }
        Ok(())
    }

    fn oauth2(&mut self, mut oauth2: Fields, webhook: &mut Value) -> Result<(), ImportError> {
        let id = oauth2.text("client_id")?;
        let id = id.ok_or_else(|| invalid(&oauth2.at("client_id"), "is required"))?;
        let token_url = oauth2.text("token_url")?;
        let token_url = token_url.ok_or_else(|| invalid(&oauth2.at("token_url"), "is required"))?;
        let secret = self.required_secret(&mut oauth2, "client_secret", "client_secret")?;
        let scopes = oauth2.texts("scopes")?.join(" ");
        let mut auth = json!({"clientId": id, "clientSecret": secret, "tokenUrl": token_url});
        if !scopes.is_empty() {
            auth["scope"] = json!(scopes);
        }
        let mut params = serde_json::Map::new();
        for (name, value) in oauth2.pairs("endpoint_params")? {
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

    fn email(&mut self, config: &mut Fields) -> Result<Converted, ImportError> {
        let to = config.text("to")?;
        let to = to.ok_or_else(|| invalid(&config.at("to"), "is required"))?;
        if is_template(&to) {
            self.imported
                .leave_out(&config.path, "`to` is a template; addresses are fixed here");
            return Ok(None);
        }
        let mut email = json!({"to": to});
        if let Some(from) = config.text("from")? {
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
            if config.take(name).is_some() {
                let why = "the mail server is set in section `[smtp]` of bellwether.toml";
                self.imported.leave_out(&config.at(name), why);
            }
        }
        Ok(Some((false, json!({"type": {"email": email}}))))
    }

    /// Returns a `slack` destination for a bot token, or a webhook for an incoming webhook.
    fn slack(&mut self, config: &mut Fields) -> Result<Converted, ImportError> {
        let channel = config.text("channel")?;
        let mut token = secret(config, "app_token")?;
        let url = secret(config, "api_url")?;
        // With credentials, the receiver uses a bot token; an incoming webhook requires none.
        let mut http = config.object("http_config")?;
        let mut authorization = http.object("authorization")?;
        token = token.or(secret(&mut authorization, "credentials")?);
        authorization.take("type");
        authorization.finish(self.imported);
        http.finish(self.imported);
        let token = token.or_else(|| match url {
            Some(_) => None,
            None => self.global.slack_token.clone(),
        });
        if let (Some(token), Some(channel)) = (token, &channel) {
            let token = self.secret_value(token, "token");
            return Ok(Some((
                false,
                json!({"type": {"slack": {"channel": channel, "token": token}}}),
            )));
        }
        let Some(url) = url.or_else(|| self.global.slack.clone()) else {
            return Err(invalid(
                &config.at("api_url"),
                "is required, or `global.slack_api_url`",
            ));
        };
        let channel = channel.map(|it| format!("\"channel\": {}, ", json!(it)));
        let payload = format!(
            "{{{}\"text\": \"{{{{event.severity}}}}{{{{#clear}}}}, {{{{event.status}}}}{{{{/clear}}}}: \
             {{{{headline}}}} {{{{link}}}}\"}}",
            channel.unwrap_or_default()
        );
        let url = self.secret_value(url, "url");
        let what = "a webhook instead of the type `slack`, which needs a bot token";
        self.imported.note(&config.path, what);
        Ok(Some((
            false,
            json!({"type": {"webhook": {"secretUrl": url, "payload": payload}}}),
        )))
    }

    fn pagerduty(&mut self, config: &mut Fields) -> Result<Converted, ImportError> {
        let Some(key) = secret(config, "routing_key")? else {
            let why =
                "an integration of PagerDuty's Events API v1; create one for the Events API v2";
            self.imported.leave_out(&config.path, why);
            return Ok(None);
        };
        let own = config.text("url")?.map(|url| (config.at("url"), url));
        let shared = self.global.pagerduty_url.clone();
        let url = own.or_else(|| Some(("global.pagerduty_url".to_owned(), shared?)));
        if let Some((path, _)) = url.filter(|(_, url)| !url.contains("//events.pagerduty.com/")) {
            self.imported
                .leave_out(&path, "the address of PagerDuty's Events API is fixed");
        }
        let mut pagerduty = json!({"routingKey": self.secret_value(key, "routing_key")});
        for name in ["class", "component", "group"] {
            match config.text(name)? {
                Some(text) if is_template(&text) => {
                    let why = "Go templates are not converted";
                    self.imported.leave_out(&config.at(name), why);
                }
                Some(text) => pagerduty[name] = json!(text),
                None => {}
            }
        }
        Ok(Some((true, json!({"type": {"pagerduty": pagerduty}}))))
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}
