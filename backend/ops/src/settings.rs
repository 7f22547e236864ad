//! Settings shared by all nodes. They are stored at the first start and edited through the API.

pub mod snippets;
mod watch;

use std::{sync::Arc, time::Duration};

use bellwether_backend_base::config::Config;
use bellwether_proto::v1;

use crate::{
    clock::Clock,
    commit::commit,
    domain::{KeyScope, Name, SettingDifference, Settings, SharedSettings, Snippets},
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{SETTING_TIME_MAX, TENANT_CHARACTERS_MAX, TOGETHER_FROM_MAX},
    message::check_snippets,
    resource::{AuthoredResource, Origin, Resource, ResourceDraft, Resources},
    store::{
        Changes, Lane, Store, Stored,
        audit::{Actor, run_as},
    },
    validate::Violations,
    wire::time::{duration, duration_to_ms, timestamp},
};

pub use watch::SettingsWatch;

pub type InstallationSettings = Resources<Settings>;

/// Author in the audit log for settings stored from a file at start.
pub(super) const FILE: &str = "settings file";

/// Returns the stored settings; `None` before the first start.
pub async fn read_stored(store: &Store) -> Result<Option<Stored<Settings>>, Error> {
    Ok(store.get(Settings::NAME.into()).await?)
}

pub async fn read_values(store: &Store) -> Result<SharedSettings, Error> {
    Ok(values_or_defaults(read_stored(store).await?.as_ref()))
}

pub fn values_or_defaults(stored: Option<&Stored<Settings>>) -> SharedSettings {
    stored.map(|it| it.value.values.clone()).unwrap_or_default()
}

/// Stores the file's settings if none are stored. In a store that only one process uses, the file
/// also applies at every later start; in a shared store, the stored settings apply.
#[expect(clippy::too_many_lines, reason = "one field after another")]
pub async fn store_initial(store: &Store, clock: &dyn Clock, config: &Config) -> Result<(), Error> {
    let (now_ms, is_shared) = (clock.now_ms(), store.engine().is_shared());
    let decide = async || {
        let mut changes = store.new_changes();
        let found = read_stored(store).await?;
        let before = found.as_ref().map(|it| it.value.values.clone());
        match found {
            None => changes.insert(&Settings {
                from_file: if is_shared {
                    Vec::new()
                } else {
                    config.given.clone()
                },
                ..initial_settings(config.shared.clone(), now_ms)?
            }),
            Some(_) if is_shared => {}
            Some(found) => {
                let next = merge_file_settings(&found.value, config);
                if next != found.value {
                    let origin = Origin::next_revision(&found.value, now_ms);
                    changes.update(&found, &apply_edit(next, origin));
                }
            }
        }
        Ok((changes, before))
    };
    let author = Actor {
        client: FILE.into(),
        address: None,
        agent: String::new(),
        method: "",
        time_ms: now_ms,
        scope: Arc::new(KeyScope::default()),
    };
    // The initial settings are not an edit.
    let (before, position) = match read_stored(store).await? {
        None => commit(store, Lane::Admin, decide).await?,
        Some(_) => run_as(author, commit(store, Lane::Admin, decide)).await?,
    };
    match before {
        None => {
            let SharedSettings {
                tenant,
                info_age_max,
                warning_age_max,
                error_age_max,
                event_retention,
                delivery_retention,
                audit_retention,
                together_from,
                templates,
                quiet_since_ms: _,
            } = &config.shared;
            tracing::info!(
                %tenant,
                info_age_max_seconds = info_age_max.as_secs(),
                warning_age_max_seconds = warning_age_max.as_secs(),
                error_age_max_seconds = error_age_max.as_secs(),
                event_retention_seconds = event_retention.as_secs(),
                delivery_retention_seconds = delivery_retention.as_secs(),
                audit_retention_seconds = audit_retention.as_secs(),
                together_from,
                templates = templates.len(),
                "stored the settings shared by all nodes"
            );
        }
        Some(before) if position.is_some() => {
            for it in read_values(store).await?.differences(&before) {
                let SettingDifference { key, here, there } = it;
                tracing::info!(setting = key, before = %there, now = %here, "a setting was changed by the settings file");
            }
        }
        Some(_) => {}
    }
    Ok(())
}

/// Creates settings to be stored for the first time.
///
/// # Errors
/// Returns an error only if [`Settings::NAME`] is not a valid name, which would be a bug.
pub fn initial_settings(values: SharedSettings, now_ms: i64) -> Result<Settings, Error> {
    let name = Name::parse(Settings::NAME).map_err(|message| Error::Internal(message.into()))?;
    let origin = Origin::new(now_ms);
    Ok(Settings {
        values,
        ..Settings::new_initial(origin.id, name, now_ms)
    })
}

/// Applies the file of the only node to the stored settings. Sets the values in the file, and
/// resets values that were in the file at the last start but no longer are.
fn merge_file_settings(stored: &Settings, config: &Config) -> Settings {
    let mut next = stored.clone();
    for key in &stored.from_file {
        next.values.copy_setting(key, &SharedSettings::default());
    }
    for key in &config.given {
        next.values.copy_setting(key, &config.shared);
    }
    next.from_file.clone_from(&config.given);
    next
}

fn apply_edit(settings: Settings, origin: Origin) -> Settings {
    Settings {
        revision: origin.revision,
        update_ms: origin.update_ms,
        ..settings
    }
}

fn ignored_differences(config: &Config, in_force: &SharedSettings) -> Vec<SettingDifference> {
    let mut differences = config.shared.differences(in_force);
    differences.retain(|it| config.given.iter().any(|key| key == it.key));
    differences
}

impl ResourceDraft for v1::Settings {
    fn name(&self) -> &str {
        if self.name.is_empty() {
            Settings::NAME
        } else {
            &self.name
        }
    }

    fn tags(&self) -> &[String] {
        &[]
    }

    fn etag(&self) -> &str {
        &self.etag
    }
}

impl Resource for Settings {
    const WORD: &'static str = "settings";

    fn id(&self) -> crate::domain::RecordId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &'static str {
        ""
    }

    fn tags(&self) -> &[String] {
        &[]
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn create_ms(&self) -> i64 {
        self.create_ms
    }

    fn update_ms(&self) -> i64 {
        self.update_ms
    }

    fn as_revision(&self) -> Option<crate::domain::RevisedResource> {
        None
    }
}

impl AuthoredResource for Settings {
    type Draft = v1::Settings;
    type View = v1::Settings;

    async fn from_draft(
        all: &InstallationSettings,
        draft: &v1::Settings,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        if ResourceDraft::name(draft) != Self::NAME {
            let message = format!("must be `{}`, the only settings object", Self::NAME);
            violations.add("name", message);
        }
        let mut values = draft_values(draft, &mut violations);
        values.quiet_since_ms = stored.and_then(|it| it.values.quiet_since_ms);
        let from_file = match stored {
            Some(stored) if !all.store.engine().is_shared() => {
                for it in stored.values.differences(&values) {
                    if stored.from_file.iter().any(|key| key == it.key) {
                        violations.add(field_name(it.key), format_difference(&it));
                    }
                }
                stored.from_file.clone()
            }
            _ => Vec::new(),
        };
        let before = stored.map(|it| &*it.values.templates);
        let before = before.cloned().unwrap_or_default();
        // If documents are applied together, the templates are checked once all documents are
        // staged.
        if before != *values.templates && !all.store.is_staged() {
            violations
                .extend(snippets::broken_templates(&all.store, &before, &values.templates).await?);
        }
        let name = Name::parse(Self::NAME).ok();
        let settings = name.map(|name| Self {
            id: origin.id,
            name,
            values,
            from_file,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(settings)?, all.store.new_changes()))
    }
}

impl InstallationSettings {
    pub async fn set_quiet(&self, is_quiet: bool) -> Result<v1::Settings, Error> {
        let decide = async || {
            let now_ms = self.clock.now_ms();
            let found = read_stored(&self.store).await?;
            let found = found.ok_or_else(|| Error::NotFound("no settings are stored".into()))?;
            let mut changes = self.store.new_changes();
            let mut next = found.value.clone();
            if is_quiet != next.values.is_quiet_mode() {
                next.values.quiet_since_ms = is_quiet.then_some(now_ms);
                next = apply_edit(next, Origin::next_revision(&found.value, now_ms));
                changes.update(&found, &next);
            }
            Ok((changes, next))
        };
        let (settings, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(v1::Settings::from_domain(settings))
    }
}

fn field_name(key: &str) -> &'static str {
    let mut all = SharedSettings::KEYS.iter();
    all.find(|(it, _)| *it == key)
        .map_or("", |(_, field)| field)
}

fn format_difference(it: &SettingDifference) -> String {
    format!(
        "is {} = {} in the settings file of this service, which applies at each start; change or \
         remove it there and restart",
        it.key, it.here
    )
}

/// Returns the values of a draft. Omitted values are set to their defaults.
#[expect(clippy::too_many_lines, reason = "one field after another")]
fn draft_values(draft: &v1::Settings, violations: &mut Violations) -> SharedSettings {
    let defaults = SharedSettings::default();
    let tenant = if draft.tenant.is_empty() {
        defaults.tenant
    } else {
        draft.tenant.clone()
    };
    let characters = tenant.chars().count();
    if characters > TENANT_CHARACTERS_MAX {
        let message = format!("has {characters} characters; the limit is {TENANT_CHARACTERS_MAX}");
        violations.add("tenant", message);
    }
    let together_from = draft
        .release_together_from
        .unwrap_or(defaults.together_from);
    if together_from > TOGETHER_FROM_MAX {
        let message = format!("is {together_from}; expected 0 to {TOGETHER_FROM_MAX}");
        violations.add("releaseTogetherFrom", message);
    }
    violations.extend(check_snippets(&draft.templates));
    let mut length = |field: &str, given: Option<&prost_types::Duration>, default, least_ms| {
        let Some(given) = given else { return default };
        let most_ms = i64::try_from(SETTING_TIME_MAX.as_millis()).unwrap_or(i64::MAX);
        let length_ms = duration_to_ms(given);
        if !(least_ms..=most_ms).contains(&length_ms) {
            let least = if least_ms == 0 { "0s" } else { "1ms" };
            let most = SETTING_TIME_MAX.as_secs();
            violations.add(
                field,
                format!("is {length_ms} ms; expected {least} to {most}s"),
            );
        }
        Duration::from_millis(length_ms.unsigned_abs())
    };
    SharedSettings {
        tenant,
        together_from,
        templates: Arc::new(draft.templates.clone()),
        info_age_max: length(
            "infoAgeMax",
            draft.info_age_max.as_ref(),
            defaults.info_age_max,
            0,
        ),
        warning_age_max: length(
            "warningAgeMax",
            draft.warning_age_max.as_ref(),
            defaults.warning_age_max,
            0,
        ),
        error_age_max: length(
            "errorAgeMax",
            draft.error_age_max.as_ref(),
            defaults.error_age_max,
            0,
        ),
        event_retention: length(
            "eventRetention",
            draft.event_retention.as_ref(),
            defaults.event_retention,
            0,
        ),
        delivery_retention: length(
            "deliveryRetention",
            draft.delivery_retention.as_ref(),
            defaults.delivery_retention,
            1,
        ),
        quiet_since_ms: None,
        audit_retention: length(
            "auditRetention",
            draft.audit_retention.as_ref(),
            defaults.audit_retention,
            1,
        ),
    }
}

impl FromDomain<Settings> for v1::Settings {
    fn from_domain(settings: Settings) -> Self {
        let Settings {
            id,
            name,
            values,
            from_file,
            revision,
            create_ms,
            update_ms,
        } = settings;
        Self {
            name: name.to_string(),
            tenant: values.tenant,
            info_age_max: Some(duration(values.info_age_max)),
            warning_age_max: Some(duration(values.warning_age_max)),
            error_age_max: Some(duration(values.error_age_max)),
            event_retention: Some(duration(values.event_retention)),
            delivery_retention: Some(duration(values.delivery_retention)),
            audit_retention: Some(duration(values.audit_retention)),
            release_together_from: Some(values.together_from),
            templates: Snippets::clone(&values.templates),
            from_file,
            create_time: Some(timestamp(create_ms)),
            update_time: Some(timestamp(update_ms)),
            quiet_since_time: values.quiet_since_ms.map(timestamp),
            etag: compute_etag(id, revision),
        }
    }
}

#[cfg(test)]
mod tests;
