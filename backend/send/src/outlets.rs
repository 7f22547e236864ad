//! Resources shared by all attempts, such as clients and caches.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    dial::Dialer, http::HttpClient, mail_server::MailServer, renderers::Renderers, sink::EventSink,
    tokens::TokenCache,
};
use crate::{clock::Clock, config::ProviderConfig, domain::SharedSettings, message::Links};

#[derive(Debug)]
pub(crate) struct AttemptResources {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dialer: Dialer,
    pub(super) http: HttpClient,
    pub(super) providers: ProviderConfig,
    pub(super) mail_server: Option<MailServer>,
    /// Timeout for a mail server's reply to DATA.
    pub(super) mail_answer_timeout: Duration,
    pub(super) tokens: TokenCache,
    pub(super) sink: Option<Arc<dyn EventSink>>,
    pub(super) settings: watch::Receiver<Arc<SharedSettings>>,
    /// Targets of links: those in sent messages, and those shown to readers.
    pub(super) links: Links,
    pub(super) masked_links: Links,
    pub(super) renderers: Renderers,
}
