//! Receivers without a destination type: webhooks, from presets.

use serde_json::{Value, json};

use super::{
    super::go_template::{self, Language},
    ConvertedDestination, Secret, Writer, read_secret, template_error,
};
use crate::{
    error::ImportError,
    fields::{Fields, invalid_field_error},
    preset::Preset,
};

/// The body of a destination, made from a preset.
struct PresetDraft(Value);

impl PresetDraft {
    fn new(preset: &str) -> Self {
        let preset = Preset::find(preset).expect("every name is listed");
        let mut body = preset.document();
        if let Some(fields) = body.as_object_mut() {
            fields.retain(|name, _| ["type", "templateLanguage"].contains(&name.as_str()));
        }
        Self(body)
    }

    fn webhook(&mut self) -> &mut Value {
        &mut self.0["type"]["webhook"]
    }

    fn with_url(self, url: &str) -> Self {
        self.with_address("url", json!(url))
    }

    fn with_secret_url(self, url: Value) -> Self {
        self.with_address("secretUrl", url)
    }

    fn with_address(mut self, name: &str, url: Value) -> Self {
        if let Some(webhook) = self.webhook().as_object_mut() {
            webhook.retain(|name, _| !["url", "secretUrl"].contains(&name.as_str()));
            webhook.insert(name.to_owned(), url);
        }
        self
    }

    fn with_header(mut self, name: &str, value: Value) -> Self {
        self.webhook()["headers"][name] = value;
        self
    }

    /// Removes the preset's header, since `http_config` authenticates the requests.
    fn without_authorization(mut self) -> Self {
        if let Some(headers) = self.webhook()["headers"].as_object_mut() {
            headers.remove("authorization");
        }
        self
    }

    fn with_payload(mut self, change: impl FnOnce(&str) -> String) -> Self {
        let payload = &mut self.webhook()["payload"];
        *payload = json!(change(payload.as_str().unwrap_or_default()));
        self
    }

    fn language(&self) -> Language {
        match self.0["templateLanguage"].as_str() {
            Some("JINJA") => Language::Jinja,
            _ => Language::Mustache,
        }
    }

    /// Replaces a string of the preset's payload by a JSON string.
    fn replace(self, constant: &str, value: &str) -> Self {
        let constant = json!(constant).to_string();
        self.with_payload(|payload| payload.replacen(&constant, value, 1))
    }

    /// Adds a field with a JSON value to the payload, which is a JSON object.
    fn with_field(self, name: &str, value: &str) -> Self {
        self.with_payload(|payload| payload.replacen('{', &format!("{{\"{name}\": {value}, "), 1))
    }
}

fn base_url(url: &str) -> String {
    format!("{}/", url.trim_end_matches('/'))
}

/// Reads a field that may be a Go template. Returns it as a JSON string.
fn json_text(
    config: &mut Fields,
    name: &str,
    draft: &PresetDraft,
) -> Result<Option<String>, ImportError> {
    let path = config.path_of(name);
    let text = config.take_nonempty_text(name)?;
    let text = text.map(|text| go_template::convert_json_string(&text, draft.language()));
    text.transpose().map_err(|why| template_error(&path, &why))
}

/// Reads a required field like [`json_text`].
fn required_json_text(
    config: &mut Fields,
    name: &str,
    draft: &PresetDraft,
) -> Result<String, ImportError> {
    let text = json_text(config, name, draft)?;
    text.ok_or_else(|| invalid_field_error(&config.path_of(name), "is required"))
}

impl Writer<'_> {
    pub(super) fn convert_with_preset(
        &mut self,
        config: &mut Fields,
    ) -> Result<ConvertedDestination, ImportError> {
        let draft = match self.kind {
            "discord" => {
                let url = self.required_secret(config, "webhook_url", "url")?;
                PresetDraft::new("discord").with_secret_url(url)
            }
            "mattermost" => {
                let url = self.required_secret(config, "webhook_url", "url")?;
                let draft = PresetDraft::new("mattermost").with_secret_url(url);
                match json_text(config, "channel", &draft)? {
                    Some(channel) => draft.with_field("channel", &channel),
                    None => draft,
                }
            }
            "incidentio" => self.convert_incident_io(config)?,
            "jira" => self.convert_jira(config)?,
            "opsgenie" => self.convert_opsgenie(config)?,
            "pushover" => self.convert_pushover(config)?,
            "rocketchat" => self.convert_rocket_chat(config)?,
            "sns" => self.convert_sns(config)?,
            "telegram" => self.convert_telegram(config)?,
            "victorops" => self.convert_splunk_on_call(config)?,
            "webex" => self.convert_webex(config)?,
            kind => {
                let why = match kind {
                    "wechat" => {
                        "a WeChat application requires a token exchange; a group robot is in the \
                         preset `wecom`"
                    }
                    _ => "no matching destination type; try a webhook",
                };
                self.imported.record_omission(&config.path, why);
                return Ok(None);
            }
        };
        let send_resolved = !matches!(self.kind, "jira" | "rocketchat");
        Ok(Some((send_resolved, draft.0)))
    }

    fn convert_incident_io(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let url = self.required_secret(config, "url", "url")?;
        let mut draft = PresetDraft::new("incident-io");
        draft = match read_secret(config, "alert_source_token")? {
            Some(token) => {
                let value =
                    self.composed_secret(token, "authorization", |it| format!("Bearer {it}"));
                draft.with_header("authorization", value)
            }
            None => draft.without_authorization(),
        };
        self.convert_http(config, draft.webhook())?;
        Ok(draft.with_secret_url(url))
    }

    fn convert_jira(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let url = self.url(config, "jira_api_url", "")?;
        // Only version 2 of the API has plain-text descriptions.
        let url = url.replace("/rest/api/3/", "/rest/api/2/");
        let mut draft = PresetDraft::new("jira-issue")
            .with_url(&format!("{url}issue"))
            .without_authorization();
        for (name, preset) in [("project", "OPS"), ("issue_type", "Task")] {
            let value = required_json_text(config, name, &draft)?;
            draft = draft.replace(preset, &value);
        }
        self.convert_http(config, draft.webhook())?;
        config.take_value("send_resolved");
        let what = "each opening creates an issue, and repetitions are comments; to close issues, set \
                    `sendUpdates` of the rule and the ids of the transitions in `onUpdate` and \
                    `onClear`";
        self.imported.add_note(&config.path, what);
        Ok(draft)
    }

    fn convert_opsgenie(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        const DEFAULT: &str = "https://api.opsgenie.com/";
        let key = self.secret_or_global(config, "api_key", "opsgenie_api_key")?;
        let key = self.composed_secret(key, "authorization", |it| format!("GenieKey {it}"));
        let mut draft = PresetDraft::new("opsgenie").with_header("authorization", key);
        let base = self.url(config, "opsgenie_api_url", DEFAULT)?;
        let url = draft.webhook()["url"].as_str().unwrap_or_default();
        let url = url.replacen(DEFAULT, &base, 1);
        Ok(draft.with_url(&url))
    }

    fn convert_pushover(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let mut required = |name| {
            let found = read_secret(config, name)?;
            found.ok_or_else(|| invalid_field_error(&config.path_of(name), "is required"))
        };
        let (user, token) = (required("user_key")?, required("token")?);
        let url = |token: &str, user: &str| {
            format!("https://api.pushover.net/1/messages.json?token={token}&user={user}")
        };
        let url = match (token, user) {
            ((path, Secret::Value(token)), (_, Secret::Value(user))) => {
                self.secret_value((path, Secret::Value(url(&token, &user))), "url")
            }
            ((path, _), _) => self.placeholder(&path, "url", &url("TOKEN", "USER")),
        };
        Ok(PresetDraft::new("pushover").with_secret_url(url))
    }

    /// Returns a destination that uses the REST API, as the receiver does; the preset uses an
    /// incoming integration.
    fn convert_rocket_chat(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let base = self.url(config, "rocketchat_api_url", "https://open.rocket.chat")?;
        let mut draft =
            PresetDraft::new("rocket-chat").with_url(&format!("{base}api/v1/chat.postMessage"));
        for (name, header) in [("token", "x-auth-token"), ("token_id", "x-user-id")] {
            let found = self.secret_or_global(config, name, &format!("rocketchat_{name}"))?;
            let value = self.secret_value(found, name);
            draft = draft.with_header(header, value);
        }
        let channel = required_json_text(config, "channel", &draft)?;
        Ok(draft.with_field("channel", &channel))
    }

    fn convert_sns(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let mut signing = config.take_object("sigv4")?;
        let secret = read_secret(&mut signing, "secret_key")?;
        for (name, is_set) in [
            ("region", signing.has("region")),
            ("access_key", signing.has("access_key")),
            ("secret_key", secret.is_some()),
        ] {
            if !is_set {
                let why = "is not set; set it in the destination's `auth.aws`";
                self.imported.record_omission(&signing.path_of(name), why);
            }
        }
        let region = signing.take_text("region")?;
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let key_id = signing.take_text("access_key")?;
        let key_id = key_id.unwrap_or_else(|| "ACCESS_KEY_ID".to_owned());
        let secret = secret.unwrap_or_else(|| {
            let unknown = Secret::Value("SECRET_ACCESS_KEY".to_owned());
            (signing.path_of("secret_key"), unknown)
        });
        let secret = self.secret_value(secret, "secret_key");
        signing.finish(self.imported);
        let default = format!("https://sns.{region}.amazonaws.com");
        let url = config.take_text("api_url")?.unwrap_or(default);
        let mut draft = PresetDraft::new("amazon-sns").with_url(&base_url(&url));
        draft.webhook()["auth"]["aws"] = json!({
            "accessKeyId": key_id, "secretAccessKey": secret, "region": region, "service": "sns",
        });
        let mut target = None;
        for (name, parameter) in [
            ("topic_arn", "TopicArn"),
            ("target_arn", "TargetArn"),
            ("phone_number", "PhoneNumber"),
        ] {
            let path = config.path_of(name);
            let Some(text) = config.take_nonempty_text(name)? else {
                continue;
            };
            let text = text
                .replace(':', "%3A")
                .replace('/', "%2F")
                .replace('+', "%2B");
            let text = go_template::convert_text(&text, draft.language())
                .map_err(|why| template_error(&path, &why))?;
            target = Some(format!("{parameter}={text}&Message="));
        }
        let target = target.ok_or_else(|| {
            let why = "is required unless `target_arn` or `phone_number` is set";
            invalid_field_error(&config.path_of("topic_arn"), why)
        })?;
        Ok(draft.with_payload(|payload| {
            let (start, rest) = payload.split_once("TopicArn=").unwrap_or((payload, ""));
            let (_, message) = rest.split_once("&Message=").unwrap_or_default();
            format!("{start}{target}{message}")
        }))
    }

    fn convert_telegram(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let token = self.secret_or_global(config, "bot_token", "telegram_bot_token")?;
        let base = self.url(config, "telegram_api_url", "https://api.telegram.org")?;
        let url = self.composed_secret(token, "url", |it| format!("{base}bot{it}/sendMessage"));
        let mut draft = PresetDraft::new("telegram").with_secret_url(url);
        let chat = config.take_text("chat_id")?;
        match (chat, config.take_value("chat_id_file")) {
            (Some(chat), _) => draft = draft.replace("@ops", &json!(chat).to_string()),
            (None, Some(_)) => {
                let why = "replace `@ops` in the destination's payload with the chat";
                self.imported
                    .record_omission(&config.path_of("chat_id_file"), why);
            }
            (None, None) => {
                return Err(invalid_field_error(
                    &config.path_of("chat_id"),
                    "is required",
                ));
            }
        }
        if let Some(thread) = config.take_value("message_thread_id") {
            draft = draft.with_field("message_thread_id", &thread.to_string());
        }
        Ok(draft)
    }

    fn convert_splunk_on_call(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let default = "https://alert.victorops.com/integrations/generic/20131114/alert";
        let key = self.secret_or_global(config, "api_key", "victorops_api_key")?;
        let base = self.url(config, "victorops_api_url", default)?;
        let draft = PresetDraft::new("splunk-on-call");
        let path = config.path_of("routing_key");
        let route = config.take_text("routing_key")?;
        let route = route.ok_or_else(|| invalid_field_error(&path, "is required"))?;
        let route = go_template::convert_text(&route, draft.language())
            .map_err(|why| template_error(&path, &why))?;
        let url = self.composed_secret(key, "url", |it| format!("{base}{it}/{route}"));
        Ok(draft.with_secret_url(url))
    }

    /// Returns a destination that uses the REST API with a bot's token; the preset uses an incoming
    /// webhook.
    fn convert_webex(&mut self, config: &mut Fields) -> Result<PresetDraft, ImportError> {
        let url = self.url(config, "webex_api_url", "https://webexapis.com/v1/messages")?;
        let draft = PresetDraft::new("webex");
        let room = required_json_text(config, "room_id", &draft)?;
        let mut draft = draft.with_field("roomId", &room);
        self.convert_http(config, draft.webhook())?;
        Ok(draft.with_url(url.trim_end_matches('/')))
    }

    fn secret_or_global(
        &mut self,
        config: &mut Fields,
        name: &str,
        global: &str,
    ) -> Result<(String, Secret), ImportError> {
        let own = read_secret(config, name)?;
        let found = own.or_else(|| self.global.secrets.get(global).cloned());
        let why = format!("is required unless `global.{global}` is set");
        found.ok_or_else(|| invalid_field_error(&config.path_of(name), &why))
    }

    /// Reads `api_url`, its counterpart in `global`, or the default.
    fn url(
        &mut self,
        config: &mut Fields,
        global: &str,
        default: &str,
    ) -> Result<String, ImportError> {
        let own = config.take_text("api_url")?;
        let shared = || self.global.urls.get(global).cloned();
        let url = own.or_else(shared).unwrap_or_else(|| default.to_owned());
        if url.is_empty() {
            return Err(invalid_field_error(
                &config.path_of("api_url"),
                "is required",
            ));
        }
        Ok(base_url(&url))
    }

    /// Returns a secret that contains the configured one. If the secret is in a file, its value is
    /// unknown, so the result refers to a variable.
    fn composed_secret(
        &mut self,
        (path, secret): (String, Secret),
        word: &str,
        compose: impl Fn(&str) -> String,
    ) -> Value {
        match secret {
            Secret::Value(value) => self.secret_value((path, Secret::Value(compose(&value))), word),
            Secret::File(_) => self.placeholder(&path, word, &compose("SECRET")),
        }
    }

    fn placeholder(&mut self, path: &str, word: &str, form: &str) -> Value {
        let what = format!("set the variable to `{form}`, with the content of the file");
        self.imported.add_note(path, &what);
        let words = ["destination", self.receiver, self.kind, word];
        self.imported.variable_reference(path, &words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import_alertmanager;

    fn import_receiver(
        kind: &str,
        config: &Value,
        global: &Value,
        with_secrets: bool,
    ) -> (Value, Vec<String>) {
        let list = format!("{kind}_configs");
        let file = json!({
            "route": {"receiver": "a"},
            "global": global,
            "receivers": [{"name": "a", list: [config]}],
        });
        let imported = import_alertmanager(file, with_secrets).unwrap();
        let mut documents = imported.documents().iter();
        let destination = documents.find(|(kind, _)| *kind == "destination");
        let body = destination.map_or(Value::Null, |(_, body)| body.clone());
        (body, imported.omitted_parts())
    }

    fn webhook_fields(kind: &str, config: &Value) -> Value {
        let (body, left_out) = import_receiver(kind, config, &Value::Null, true);
        assert_eq!(left_out, Vec::<String>::new(), "{kind}");
        body["type"]["webhook"].clone()
    }

    #[test]
    fn receiver_addresses_and_secrets_replace_the_placeholders_of_the_preset() {
        let basic = json!({"basic_auth": {"username": "ana", "password": "p"}});
        let bearer = json!({"authorization": {"credentials": "t"}});
        for (kind, config, pointer, expected) in [
            (
                "discord",
                json!({"webhook_url": "https://d/1"}),
                "/secretUrl",
                "https://d/1",
            ),
            (
                "incidentio",
                json!({"url": "https://i/1", "alert_source_token": "t"}),
                "/headers/authorization",
                "Bearer t",
            ),
            (
                "jira",
                json!({"api_url": "https://j/rest/api/3", "project": "WEB", "issue_type": "Bug",
                    "http_config": basic}),
                "/url",
                "https://j/rest/api/2/issue",
            ),
            (
                "opsgenie",
                json!({"api_key": "k"}),
                "/headers/authorization",
                "GenieKey k",
            ),
            (
                "pushover",
                json!({"user_key": "u", "token": "t"}),
                "/secretUrl",
                "https://api.pushover.net/1/messages.json?token=t&user=u",
            ),
            (
                "rocketchat",
                json!({"channel": "ops", "token": "t", "token_id": "i"}),
                "/url",
                "https://open.rocket.chat/api/v1/chat.postMessage",
            ),
            (
                "telegram",
                json!({"bot_token": "1:t", "chat_id": -100}),
                "/secretUrl",
                "https://api.telegram.org/bot1:t/sendMessage",
            ),
            (
                "victorops",
                json!({"api_key": "k", "routing_key": "web"}),
                "/secretUrl",
                "https://alert.victorops.com/integrations/generic/20131114/alert/k/web",
            ),
            (
                "webex",
                json!({"room_id": "r", "http_config": bearer}),
                "/auth/bearer/token",
                "t",
            ),
        ] {
            let found = webhook_fields(kind, &config);
            assert_eq!(found.pointer(pointer), Some(&json!(expected)), "{found}");
            let addresses = [&found["url"], &found["secretUrl"]];
            let present = addresses.iter().filter(|it| !it.is_null());
            assert_eq!(present.count(), 1, "{found}");
        }
    }

    #[test]
    fn constants_are_part_of_the_payload() {
        for (kind, config, part) in [
            (
                "mattermost",
                json!({"webhook_url": "https://m/1", "channel": "a\"b"}),
                r#"{"channel": "a\"b", "text": "#,
            ),
            (
                "telegram",
                json!({"bot_token": "t", "chat_id": -100, "message_thread_id": 7}),
                r#"{"message_thread_id": 7, "chat_id": "-100", "#,
            ),
            (
                "webex",
                json!({"room_id": "r"}),
                r#"{"roomId": "r", "text": "#,
            ),
            (
                "jira",
                json!({"api_url": "https://j", "project": "WEB", "issue_type": "Bug"}),
                r#"{"project": {"key": "WEB"}, "issuetype": {"name": "Bug"}, "#,
            ),
        ] {
            let payload = webhook_fields(kind, &config)["payload"].to_string();
            let payload: String = serde_json::from_str(&payload).unwrap();
            assert!(payload.contains(part), "{kind}: {payload}");
        }
    }

    #[test]
    fn sns_requests_are_signed_and_have_the_configured_target() {
        let signing = json!({"region": "eu-west-1", "access_key": "AK", "secret_key": "s"});
        for (field, target, expected) in [
            (
                "topic_arn",
                "arn:aws:sns:eu-west-1:1:t",
                "&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A1%3At&Message={{event.severity}}",
            ),
            (
                "phone_number",
                "+15550000001",
                "&PhoneNumber=%2B15550000001&Message={{event.severity}}",
            ),
        ] {
            let found = webhook_fields("sns", &json!({"sigv4": signing, field: target}));
            assert_eq!(found["url"], "https://sns.eu-west-1.amazonaws.com/");
            assert_eq!(found["auth"]["aws"]["accessKeyId"], "AK");
            assert_eq!(found["auth"]["aws"]["region"], "eu-west-1");
            let payload = found["payload"].as_str().unwrap();
            assert!(payload.contains(expected), "{payload}");
        }
    }

    #[test]
    fn global_settings_and_files_are_used() {
        let global = json!({"opsgenie_api_key": "k", "opsgenie_api_url": "https://o.example"});
        let (body, _) = import_receiver("opsgenie", &json!({}), &global, true);
        let webhook = &body["type"]["webhook"];
        assert_eq!(webhook["headers"]["authorization"], "GenieKey k");
        let url = webhook["url"].as_str().unwrap();
        assert!(url.starts_with("https://o.example/v2/alerts"), "{url}");
        // The content of the file is unknown, so the result refers to a variable.
        let config = json!({"bot_token_file": "/run/token", "chat_id": 1});
        let (body, _) = import_receiver("telegram", &config, &Value::Null, true);
        let url = &body["type"]["webhook"]["secretUrl"];
        assert_eq!(
            *url,
            json!({"fromEnv": "BELLWETHER_SECRET_DESTINATION_A_TELEGRAM_URL"})
        );
    }

    #[test]
    fn receivers_that_sign_or_exchange_tokens_are_omitted() {
        for kind in ["wechat", "surprise"] {
            let (body, left_out) = import_receiver(kind, &json!({"a": 1}), &Value::Null, true);
            assert_eq!(body, Value::Null, "{kind}");
            assert_eq!(left_out[0], format!("receivers[0].{kind}_configs[0]"));
        }
    }

    #[test]
    fn missing_or_templated_fields_are_errors() {
        for (kind, config, error) in [
            (
                "telegram",
                json!({"bot_token": "t"}),
                "chat_id: is required",
            ),
            (
                "opsgenie",
                json!({}),
                "api_key: is required unless `global.opsgenie_api_key` is set",
            ),
            (
                "victorops",
                json!({"api_key": "k", "routing_key": "{{ .A }}"}),
                "routing_key: is a Go template that is not converted, because it uses `.A`",
            ),
            (
                "jira",
                json!({"project": "A", "issue_type": "B"}),
                "api_url: is required",
            ),
        ] {
            let list = format!("{kind}_configs");
            let file = json!({"route": {"receiver": "a"},
                "receivers": [{"name": "a", list: [config]}]});
            let failure = import_alertmanager(file, false).unwrap_err().to_string();
            assert!(failure.contains(error), "{failure}");
        }
    }
}
