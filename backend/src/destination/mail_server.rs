//! The mail server that all mails go through.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::config::SmtpConfig;

/// The mail server, and how to verify its certificate.
pub(crate) struct MailServer {
    pub(super) config: SmtpConfig,
    pub(super) tls: Arc<ClientConfig>,
}

impl std::fmt::Debug for MailServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(formatter)
    }
}
