//! Settings from files, calls and other nodes.

use bellwether_backend_base::config::ReportPublisher;

use super::*;
use crate::{
    clock::ManualClock,
    domain::{
        AuditEntry, DestinationKind, Occurrence, Status, TemplateLanguage, destination::Email,
    },
    ruleset::Ruleset,
    samples,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn config_with(pairs: &[(&str, SharedSettings)]) -> Config {
    let mut config = Config::new("");
    for (key, values) in pairs {
        config.shared.copy_setting(key, values);
        config.given.push((*key).to_owned());
    }
    config
}

fn retention_of(hours: u32) -> SharedSettings {
    SharedSettings {
        delivery_retention: hours * HOUR,
        ..SharedSettings::default()
    }
}

async fn start(store: &Store, config: &Config) -> Settings {
    let clock = ManualClock::starting_at(samples::START_MS);
    store_initial(store, &clock, config).await.unwrap();
    read_stored(store).await.unwrap().unwrap().value
}

fn settings(store: &Store) -> InstallationSettings {
    let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
    InstallationSettings::new(store.clone(), clock)
}

fn draft(hours: u32) -> v1::Settings {
    v1::Settings {
        delivery_retention: Some(duration(hours * HOUR)),
        ..v1::Settings::default()
    }
}

#[tokio::test]
async fn settings_file_applies_at_start_and_changes_are_audited() {
    let store = Store::in_memory();
    let first = start(
        &store,
        &config_with(&[("delivery.retention", retention_of(5))]),
    )
    .await;
    assert_eq!(first.values, retention_of(5));
    assert_eq!(first.from_file, ["delivery.retention"]);
    assert!(samples::all::<AuditEntry>(&store).await.is_empty());
    let same = start(
        &store,
        &config_with(&[("delivery.retention", retention_of(5))]),
    )
    .await;
    assert_eq!(same, first);

    let edited = start(
        &store,
        &config_with(&[("delivery.retention", retention_of(7))]),
    )
    .await;
    assert_eq!((edited.values, edited.revision), (retention_of(7), 2));
    let entries = samples::all::<AuditEntry>(&store).await;
    let recorded: Vec<_> = entries.iter().map(|it| (&*it.client, &*it.kind)).collect();
    assert_eq!(recorded, [("settings file", "settings")]);

    // A value that was removed from the file returns to its default, and calls may change it.
    let removed = start(&store, &config_with(&[])).await;
    assert_eq!(removed.values, SharedSettings::default());
    let called = settings(&store).update(&draft(9), false).await.unwrap();
    assert_eq!(called.resource.values, retention_of(9));
    let again = start(&store, &config_with(&[])).await;
    assert_eq!(
        again.values,
        retention_of(9),
        "settings stored through the API survive a restart"
    );
}

#[tokio::test]
async fn settings_from_the_file_cannot_be_changed_by_a_call() {
    let store = Store::in_memory();
    start(
        &store,
        &config_with(&[("delivery.retention", retention_of(5))]),
    )
    .await;
    let all = settings(&store);
    let refused = all.update(&draft(6), false).await.unwrap_err();
    let Error::Invalid(violations) = refused else {
        panic!("{refused}");
    };
    assert_eq!(violations[0].field, "deliveryRetention");
    let why = &violations[0].description;
    assert!(why.contains("delivery.retention = \"5h\""), "{why}");
    let other = v1::Settings {
        tenant: "acme".into(),
        ..draft(5)
    };
    let updated = all.update(&other, false).await.unwrap();
    assert_eq!(updated.view.tenant, "acme");
    assert_eq!(updated.view.from_file, ["delivery.retention"]);
}

#[tokio::test]
async fn invalid_values_are_refused_by_field() {
    let store = Store::in_memory();
    start(&store, &config_with(&[])).await;
    let negative = prost_types::Duration {
        seconds: -1,
        nanos: 0,
    };
    let endless = prost_types::Duration {
        seconds: i64::MAX,
        nanos: 0,
    };
    let wrong = v1::Settings {
        name: "other".into(),
        tenant: "t".repeat(201),
        info_age_max: Some(negative),
        event_retention: Some(endless),
        delivery_retention: Some(prost_types::Duration::default()),
        release_together_from: Some(1_000_001),
        ..v1::Settings::default()
    };
    let Err(Error::Invalid(violations)) = settings(&store).create_or_update(&wrong, false).await
    else {
        panic!("it was accepted");
    };
    let fields: Vec<_> = violations.iter().map(|it| it.field.as_str()).collect();
    let expected = [
        "name",
        "tenant",
        "releaseTogetherFrom",
        "infoAgeMax",
        "eventRetention",
        "deliveryRetention",
    ];
    assert_eq!(fields, expected);
    let unlimited = v1::Settings {
        event_retention: Some(prost_types::Duration::default()),
        ..v1::Settings::default()
    };
    let updated = settings(&store).update(&unlimited, false).await.unwrap();
    assert_eq!(updated.resource.values.event_retention, Duration::ZERO);
}

#[tokio::test]
async fn change_that_breaks_an_including_template_is_rejected() {
    let store = Store::in_memory();
    start(&store, &config_with(&[])).await;
    let all = settings(&store);
    let templates = |pairs: &[(&str, &str)]| v1::Settings {
        templates: pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        ..v1::Settings::default()
    };
    let both = [("body", "{{event.summary}}"), ("title", "{{> body}}")];
    let stored = all.update(&templates(&both), false).await.unwrap();
    assert_eq!(stored.view.templates, templates(&both).templates);
    let mut rule = samples::rule("page", &[], &[]);
    rule.message = "{% include 'title' %}".into();
    rule.template_language = TemplateLanguage::Jinja;
    // The rule is already broken, since Jinja has no `{{> body}}`, so it prevents no change.
    let mut mail = samples::destination("mail");
    mail.kind = DestinationKind::Email(Email {
        subject: "{{> title}}".into(),
        ..Email::default()
    });
    let mut changes = store.new_changes();
    changes.insert(&rule);
    changes.insert(&mail);
    store.apply(Lane::Admin, changes).await.unwrap();
    let cases = [
        (vec![("body", "x"), ("title", "{{> body}}")], ""),
        (
            vec![("body", "x")],
            "breaks destination `mail`: type.email.subject: line 1, column 1: there is no template `title`",
        ),
        (
            vec![
                ("body", "{{#event}}{{/event}}"),
                ("title", "{{ event.name | upper }}"),
            ],
            "breaks destination `mail`: type.email.subject: line 1, column 1: in the template `title`",
        ),
        (vec![("title", "{{event.name}}")], ""),
        (vec![("title", "{% if event %}x{% endif %}")], ""),
        (
            vec![("other", "")],
            "breaks rule `page`: message: line 1, column 4: there is no template `title`",
        ),
    ];
    for (pairs, expected) in cases {
        let updated = all.update(&templates(&pairs), false).await;
        match updated.map_err(|error| error.to_string()) {
            Ok(_) => assert_eq!(expected, "", "{pairs:?}"),
            Err(error) => assert!(
                !expected.is_empty() && error.contains(expected),
                "{pairs:?}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn node_reports_differing_file_settings_until_resolved() {
    let store = Store::in_memory();
    start(&store, &config_with(&[])).await;
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let ruleset: Arc<Ruleset> = Arc::clone(&deciding.ruleset);
    let config = config_with(&[("delivery.retention", retention_of(5))]);
    let publisher = ReportPublisher::new(Arc::clone(store.engine()));
    let mut watch = SettingsWatch::new(store.clone(), clock, ruleset, intake, (config, publisher));
    watch.check().await.unwrap();
    let said = samples::said(&store, "settings-differ").await;
    assert_eq!(said.status, Status::Open);
    assert!(
        said.summary.contains("delivery.retention"),
        "{}",
        said.summary
    );
    assert!(
        said.body
            .contains("delivery.retention = \"5h\" (stored: \"30d\")")
    );

    settings(&store).update(&draft(5), false).await.unwrap();
    watch.check().await.unwrap();
    let all = samples::all::<Occurrence>(&store).await;
    let statuses: Vec<_> = all.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Status::Closed]);
    assert_eq!(
        *deciding.ruleset.settings().borrow().as_ref(),
        retention_of(5)
    );
}

#[tokio::test]
async fn quiet_mode_persists_across_edits_and_restarts() {
    let store = Store::in_memory();
    start(
        &store,
        &config_with(&[("delivery.retention", retention_of(5))]),
    )
    .await;
    let all = settings(&store);
    let quiet = all.set_quiet(true).await.unwrap();
    assert_eq!(quiet.quiet_since_time, Some(timestamp(samples::START_MS)));
    assert_eq!(
        all.set_quiet(true).await.unwrap(),
        quiet,
        "it is already quiet"
    );
    all.update(&draft(5), false).await.unwrap();
    start(
        &store,
        &config_with(&[("delivery.retention", retention_of(7))]),
    )
    .await;
    assert!(read_values(&store).await.unwrap().is_quiet_mode());
    let ended = all.set_quiet(false).await.unwrap();
    assert_eq!(ended.quiet_since_time, None);
    assert!(!read_values(&store).await.unwrap().is_quiet_mode());
}
