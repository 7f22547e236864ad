//! The settings of the mail server.

use bellwether_backend::{
    config::{SmtpConfig, SmtpLogin, SmtpSecurity},
    domain::Secret,
};

use super::missing_error;
use crate::config::ConfigError;

#[derive(Debug, Clone, Default)]
pub(super) struct Smtp {
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) security: Option<SmtpSecurity>,
    pub(super) from: Option<String>,
    pub(super) hello: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) oauth: SmtpOAuth,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SmtpOAuth {
    pub(super) token_url: String,
    pub(super) client_id: String,
    pub(super) client_secret: Secret,
    pub(super) refresh_token: Secret,
    pub(super) scope: String,
}

impl Smtp {
    pub(super) fn config(&self) -> Result<Option<SmtpConfig>, ConfigError> {
        let (host, from) = match (&self.host, &self.from) {
            (Some(host), Some(from)) => (host.clone(), from.clone()),
            (Some(_), None) => return Err(missing_error("smtp.from", "smtp.host")),
            (None, Some(_)) => return Err(missing_error("smtp.host", "smtp.from")),
            (None, None) => return Ok(None),
        };
        let from = bellwether_backend::config::parse_mailbox(&from)
            .map_err(|wrong| ConfigError(format!("smtp.from: {wrong}")))?;
        let login = self.login()?;
        let security = self.security.unwrap_or(SmtpSecurity::StartTls);
        let port = self.port.unwrap_or(match security {
            SmtpSecurity::Tls => 465,
            SmtpSecurity::StartTls => 587,
            SmtpSecurity::None => 25,
        });
        Ok(Some(SmtpConfig {
            host,
            port,
            security,
            from,
            hello: self.hello.clone(),
            login,
        }))
    }

    fn login(&self) -> Result<Option<SmtpLogin>, ConfigError> {
        let SmtpOAuth {
            token_url,
            client_id,
            client_secret,
            refresh_token,
            scope,
        } = &self.oauth;
        let settings = [
            ("smtp.oauth_token_url", token_url.as_str()),
            ("smtp.oauth_client_id", client_id),
            ("smtp.oauth_client_secret", client_secret.reveal()),
            ("smtp.oauth_refresh_token", refresh_token.reveal()),
            ("smtp.oauth_scope", scope),
        ];
        let Some((given, _)) = settings.iter().find(|(_, value)| !value.is_empty()) else {
            return match (&self.user, &self.password) {
                (Some(user), Some(password)) => Ok(Some(SmtpLogin::Password {
                    user: user.clone(),
                    password: password.clone(),
                })),
                (Some(_), None) => Err(missing_error("smtp.password", "smtp.user")),
                (None, Some(_)) => Err(missing_error("smtp.user", "smtp.password")),
                (None, None) => Ok(None),
            };
        };
        if self.password.is_some() {
            return Err(ConfigError(format!(
                "smtp.password: conflicts with {given}; set only one of them"
            )));
        }
        let Some(user) = self.user.clone() else {
            return Err(missing_error("smtp.user", given));
        };
        if let Some((absent, _)) = settings[..3].iter().find(|(_, value)| value.is_empty()) {
            return Err(missing_error(absent, given));
        }
        Ok(Some(SmtpLogin::OAuth2 {
            user,
            token_url: token_url.clone(),
            client_id: client_id.clone(),
            client_secret: client_secret.clone(),
            refresh_token: refresh_token.clone(),
            scope: scope.clone(),
        }))
    }
}
