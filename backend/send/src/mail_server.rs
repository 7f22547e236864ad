//! The mail server that all mails are sent through.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::config::SmtpConfig;

pub(crate) struct MailServer {
    pub(super) config: SmtpConfig,
    pub(super) tls: Arc<ClientConfig>,
}

impl std::fmt::Debug for MailServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(formatter)
    }
}
