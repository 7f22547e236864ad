//! The report of a node to the others: a digest of each section of its settings file, the settings
//! that are ignored in the file, and the destinations that the node cannot reach or can reach for
//! others.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use bellwether_backend_engine::Engine;

use super::Config;
use crate::domain::SettingDifference;

const DIGEST_BYTES: usize = 6;

/// The report of a node; contains no addresses, keys or passwords from its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Digest of each section of the settings file.
    pub sections: BTreeMap<String, String>,
    /// Shared settings whose value in the file differs from the stored value, which takes
    /// precedence.
    pub ignored: Vec<String>,
    /// On the leader: destinations that have not been reached for a while.
    #[serde(default)]
    pub unreached: Vec<String>,
    /// Destinations that the leader does not reach, but this node can connect to.
    #[serde(default)]
    pub reached: Vec<String>,
}

/// The report of this process, assembled by several modules. Clones share it.
#[derive(Debug, Clone)]
pub struct ReportPublisher {
    engine: Arc<dyn Engine>,
    report: Arc<Mutex<NodeReport>>,
}

impl ReportPublisher {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            report: Arc::default(),
        }
    }

    pub fn update(&self, change: impl FnOnce(&mut NodeReport)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let before = report.clone();
        change(&mut report);
        if *report != before {
            self.engine.cluster().publish_report(report.to_text());
        }
    }
}

impl NodeReport {
    pub fn add_settings(&mut self, config: &Config, ignored: &[SettingDifference]) {
        self.sections = config.sections();
        self.ignored = ignored.iter().map(ToString::to_string).collect();
    }

    pub fn to_text(&self) -> String {
        // Maps and lists of strings can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a report. Returns an empty report if the node published none or used another format.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns one digest of all sections; empty if there are none.
    pub fn digest(&self) -> String {
        if self.sections.is_empty() {
            return String::new();
        }
        hash_debug(&self.sections)
    }

    /// Returns the sections that differ from those of another node; empty if either node has no
    /// report.
    pub fn differing_sections(&self, other: &Self) -> Vec<String> {
        if self.sections.is_empty() || other.sections.is_empty() {
            return Vec::new();
        }
        let names = self.sections.keys().chain(other.sections.keys());
        let differs = |name: &&String| self.sections.get(*name) != other.sections.get(*name);
        let mut found: Vec<_> = names.filter(differs).cloned().collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Config {
    /// Returns a digest of each section that should be the same on all nodes.
    fn sections(&self) -> BTreeMap<String, String> {
        let egress = &self.egress;
        let sections: [(&str, &dyn Debug); 8] = [
            (
                "links",
                &(&self.link_base, &self.link_template, self.link_lifetime),
            ),
            ("delivery", &self.delivery),
            (
                "egress",
                &(
                    (&egress.allow, &egress.allow_names, &egress.authorities),
                    (&egress.proxy, egress.proxy_by_name, &egress.no_proxy),
                ),
            ),
            ("smtp", &self.smtp),
            ("providers", &self.providers),
            ("oidc", &self.oidc),
            ("senders", &self.logs),
            ("access", &(&self.origins, &self.hosts, &self.proxies)),
        ];
        let digests = sections.map(|(name, section)| (name.to_owned(), hash_debug(section)));
        digests.into()
    }
}

fn hash_debug(of: &dyn Debug) -> String {
    let mut context = Context::new(&SHA256);
    context.update(format!("{of:?}").as_bytes());
    let digest = context.finish();
    URL_SAFE_NO_PAD.encode(&digest.as_ref()[..DIGEST_BYTES])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn differing_sections_are_listed_except_own_addresses() {
        let one = Config::new("one");
        let mut two = Config::new("two");
        two.egress.own = vec![([127, 0, 0, 1], 5).into()];
        let of = |config: &Config| {
            let mut report = NodeReport::default();
            report.add_settings(config, &[]);
            report
        };
        let [report, same] = [of(&one), of(&two)];
        assert_eq!(report.differing_sections(&same), Vec::<String>::new());
        assert_eq!(report.digest(), same.digest());
        two.delivery.timeout = Duration::from_secs(1);
        two.link_base = "https://other.example.net".into();
        let other = NodeReport::parse(&of(&two).to_text());
        assert_eq!(report.differing_sections(&other), ["delivery", "links"]);
        assert_ne!(report.digest(), other.digest());
        let unknown = NodeReport::parse("of another version");
        assert_eq!(report.differing_sections(&unknown), Vec::<String>::new());
        assert_eq!(unknown.digest(), "");
    }
}
