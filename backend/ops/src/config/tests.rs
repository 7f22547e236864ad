//! Tests that documents are stored together or not at all.

use bellwether_proto::v1::{self, destination_type::Type, webhook_signature::Scheme};

use super::*;
use crate::{
    error::Reason,
    samples::{self, START_MS, world},
    store::verify,
    trigger::event_type,
    wire::query,
};

type World = world::World<Configuration>;

fn world() -> World {
    let world = world::at_rest();
    let part = Configuration::new(world.store.clone(), world.clock(), Arc::default());
    world.with(part)
}

fn trigger(name: &str) -> Document {
    put(DefinitionVersion::Trigger(v1::Trigger {
        name: name.into(),
        r#type: Some(event_type(&samples::trigger("everything").query)),
        ..v1::Trigger::default()
    }))
}

fn slack(name: &str, token: &str) -> Document {
    let slack = v1::Slack {
        channel: "#ops".into(),
        token: token.into(),
        ..v1::Slack::default()
    };
    put(DefinitionVersion::Destination(v1::Destination {
        name: name.into(),
        r#type: Some(v1::DestinationType {
            r#type: Some(Type::Slack(slack)),
        }),
        ..v1::Destination::default()
    }))
}

fn rule(name: &str, trigger: &str, destination: &str) -> Document {
    put(DefinitionVersion::Rule(v1::Rule {
        name: name.into(),
        trigger_names: vec![trigger.into()],
        destination_names: vec![destination.into()],
        ..v1::Rule::default()
    }))
}

fn put(definition: DefinitionVersion) -> Document {
    Document {
        definition,
        must_be_new: false,
    }
}

macro_rules! tags_of {
    (
        10 settings Settings $settings:tt $own_settings:tt
        $($number:literal $word:ident $field:ident($kind:ident) $own:tt)+
    ) => {
        fn tags_of(definition: &mut DefinitionVersion) -> &mut Vec<String> {
            match definition {
                $(DefinitionVersion::$field(draft) => &mut draft.tags,)+
                DefinitionVersion::Silence(draft) => &mut draft.tags,
                DefinitionVersion::Settings(_) => panic!("settings have no tags"),
            }
        }
    };
}
each_documented!(tags_of);

fn owned(mut document: Document) -> Document {
    let tags = tags_of(&mut document.definition);
    tags.push("owner:a".into());
    document
}

impl World {
    async fn apply(&self, documents: &[Document], owner: &str) -> Result<Vec<String>, Error> {
        let changes = self
            .part
            .apply(documents, (owner, Role::Editor), false)
            .await?;
        let findings = verify(&self.store, &|_| {}).await;
        assert_eq!(findings.descriptions, Vec::<String>::new());
        Ok(signs(&changes))
    }

    async fn head(&self) -> u64 {
        self.store.engine().log_head().await.unwrap().to_number()
    }
}

fn signs(changes: &[Change]) -> Vec<String> {
    let sign = |change: &Change| {
        let sign = match &change.action {
            Action::Unchanged => '=',
            Action::Created(_) => '+',
            Action::Updated { .. } => '~',
            Action::Deleted(_) => '-',
        };
        format!("{sign}{} {}", change.kind, change.name)
    };
    changes.iter().map(sign).collect()
}

fn fields(error: &Error) -> Vec<String> {
    match error {
        Error::Invalid(violations) => violations.iter().map(|it| it.field.clone()).collect(),
        other => panic!("{other}"),
    }
}

fn team() -> [Document; 3] {
    [
        owned(rule("page", "disk", "ops")),
        owned(slack("ops", "xoxb-1")),
        owned(trigger("disk")),
    ]
}

#[tokio::test]
async fn documents_apply_in_one_commit_in_any_order_and_idempotently() {
    let world = world();
    let made = world.apply(&team(), "").await.unwrap();
    assert_eq!(made, ["+rule page", "+destination ops", "+trigger disk"]);
    assert_eq!(world.head().await, 1);
    let again = world.apply(&team(), "a").await.unwrap();
    assert_eq!(again, ["=rule page", "=destination ops", "=trigger disk"]);
    assert_eq!(world.head().await, 1);
}

#[tokio::test]
async fn invalid_document_rejects_the_whole_apply() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    let mut wrong = trigger("memory");
    if let DefinitionVersion::Trigger(draft) = &mut wrong.definition {
        draft.description = "x".repeat(2_000);
    }
    let documents = [
        rule("both", "memory", "ops"),
        wrong,
        trigger("network"),
        rule("none", "nothing", "ops"),
        slack("dIsk", "xoxb-1"),
        trigger("Disk"),
    ];
    let error = world.apply(&documents, "").await.unwrap_err();
    let expected = [
        "documents[1].trigger.description",
        "documents[5].trigger.name",
        "documents[3].rule.triggerNames[0]",
    ];
    assert_eq!(fields(&error), expected);
    assert_eq!(world.head().await, 1);
}

#[tokio::test]
async fn apply_prunes_owned_documents_except_those_in_use() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    world
        .apply(&[rule("other", "disk", "ops")], "")
        .await
        .unwrap();
    let [_, destination, disk] = team();
    let gone = world.apply(&[destination, disk], "a").await.unwrap();
    assert_eq!(gone, ["=destination ops", "=trigger disk", "-rule page"]);
    let error = world.apply(&[], "a").await.unwrap_err();
    let reason = Reason::InUse;
    assert!(
        matches!(&error, Error::Refused { reason: it, .. } if *it == reason),
        "{error}"
    );
    assert!(error.to_string().contains("other"), "{error}");

    let without_tag = world.apply(&[trigger("disk")], "a").await.unwrap_err();
    assert_eq!(fields(&without_tag), ["documents[0].trigger.tags"]);
}

#[tokio::test]
async fn omitted_secrets_are_retained_and_changes_are_masked() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    for (token, expected) in [("", "="), ("xoxb-1", "="), ("xoxb-2", "~")] {
        let documents = [owned(slack("ops", token))];
        let changes = world
            .part
            .apply(&documents, ("", Role::Editor), true)
            .await
            .unwrap();
        assert_eq!(signs(&changes), [format!("{expected}destination ops")]);
        if let Action::Updated {
            changed_secrets, ..
        } = &changes[0].action
        {
            assert_eq!(*changed_secrets, ["type.slack.token"]);
        }
    }
    assert_eq!(world.head().await, 1);
}

#[tokio::test]
async fn refusal_of_a_stale_plan_names_the_changed_documents() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    let seen = world
        .part
        .apply(&team(), ("", Role::Editor), true)
        .await
        .unwrap();
    let mut edited = rule("page", "disk", "ops");
    if let DefinitionVersion::Rule(draft) = &mut edited.definition {
        draft.enabled = Some(true);
    }
    world.apply(&[edited], "").await.unwrap();
    let mut planned = team();
    if let DefinitionVersion::Rule(draft) = &mut planned[0].definition {
        draft.etag.clone_from(&seen[0].etag);
    }
    planned[1].must_be_new = true;
    let error = world.apply(&planned, "").await.unwrap_err();
    assert!(matches!(error, Error::Aborted(_)), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("rule `page`") && message.contains("`ops`"),
        "{message}"
    );
}

#[tokio::test]
async fn apply_rejects_empty_duplicate_and_too_many_documents() {
    let world = world();
    assert_eq!(
        fields(&world.apply(&[], "").await.unwrap_err()),
        ["documents"]
    );
    let twice = [trigger("a"), rule("a", "a", "b"), trigger("a")];
    let error = world.apply(&twice, "").await.unwrap_err();
    assert_eq!(fields(&error), ["documents[2].trigger.name"]);
    let names = (0..=1_000).map(|at| trigger(&format!("t{at}")));
    let many: Vec<_> = names.collect();
    assert_eq!(
        fields(&world.apply(&many, "").await.unwrap_err()),
        ["documents"]
    );
    let made = world.apply(&many[..1_000], "").await.unwrap();
    assert_eq!((made.len(), world.head().await), (1_000, 1));
}

fn settings(templates: &[(&str, &str)]) -> Document {
    let pairs = templates.iter();
    let pairs = pairs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    put(DefinitionVersion::Settings(v1::Settings {
        templates: pairs.collect(),
        ..v1::Settings::default()
    }))
}

#[tokio::test]
async fn templates_and_rules_that_include_them_apply_together() {
    let world = world();
    let including = |template: &str| {
        let mut rule = rule("page", "disk", "ops");
        if let DefinitionVersion::Rule(draft) = &mut rule.definition {
            draft.message = format!("{{{{> {template}}}}}");
        }
        rule
    };
    let apply = async |documents: Vec<Document>| {
        let apply = world.part.apply(&documents, ("", Role::Admin), false);
        apply.await.map(|changes| signs(&changes))
    };
    let [_, ops, disk] = team();
    let first = vec![including("header"), ops, disk, settings(&[("header", "x")])];
    apply(first).await.unwrap();
    let error = apply(vec![settings(&[("footer", "x")])]).await.unwrap_err();
    let Error::Invalid(violations) = &error else {
        panic!("{error}");
    };
    assert_eq!(violations[0].field, "documents[0].settings.templates");
    let why = &violations[0].description;
    assert!(
        why.starts_with(
            "breaks rule `page`: message: line 1, column 1: there is no template `header`"
        ),
        "{why}"
    );
    let moved = vec![settings(&[("footer", "x")]), including("footer")];
    let changed = apply(moved).await.unwrap();
    assert_eq!(changed, ["~settings service", "~rule page"]);
    let error = apply(vec![including("foter")]).await.unwrap_err();
    assert_eq!(fields(&error), ["documents[0].rule.message"]);
    assert!(
        error.to_string().contains("did you mean `footer`?"),
        "{error}"
    );
}

fn calendar(name: &str, except: &[&str]) -> Document {
    put(DefinitionVersion::Calendar(v1::Calendar {
        name: name.into(),
        time_zone: "Europe/Berlin".into(),
        windows: vec![v1::CalendarWindow {
            dtstart: "2026-01-05T08:00:00".into(),
            duration: "PT8H".into(),
            ..v1::CalendarWindow::default()
        }],
        except_calendar_names: except.iter().map(|it| (*it).to_owned()).collect(),
        ..v1::Calendar::default()
    }))
}

fn inhibition(name: &str) -> Document {
    let query = |name: &str| Some(query::to_wire(&samples::trigger(name).query));
    put(DefinitionVersion::Inhibition(v1::Inhibition {
        name: name.into(),
        enabled: Some(true),
        source: query("source"),
        target: query("target"),
        equal: vec![v1::EqualFields {
            source: "host".into(),
            target: "host".into(),
        }],
        ..v1::Inhibition::default()
    }))
}

fn mapping(name: &str, secret: &str) -> Document {
    let sample = crate::testing::samples::mapping(name);
    put(DefinitionVersion::Mapping(v1::IntakeMapping {
        name: name.into(),
        signature: Some(v1::WebhookSignature {
            secret: secret.into(),
            scheme: Scheme::HubSha256.into(),
        }),
        etag: String::new(),
        ..FromDomain::from_domain(sample)
    }))
}

fn enrichment(name: &str) -> Document {
    let sample = crate::testing::samples::enrichment(name);
    put(DefinitionVersion::Enrichment(v1::EnrichmentTable {
        tags: Vec::new(),
        etag: String::new(),
        ..FromDomain::from_domain(sample)
    }))
}

#[tokio::test]
async fn inhibitions_calendars_mappings_and_enrichments_apply_in_any_order() {
    let world = world();
    let mut ruled = rule("page", "disk", "ops");
    if let DefinitionVersion::Rule(draft) = &mut ruled.definition {
        draft.active_calendar_name = "a-work".into();
    }
    let all = || {
        [
            inhibition("router"),
            calendar("a-work", &["holidays"]),
            mapping("status", "s1"),
            enrichment("hosts"),
            calendar("holidays", &[]),
        ]
    };
    let mut documents: Vec<_> = all().into_iter().map(owned).collect();
    documents.push(owned(ruled));
    documents.extend([owned(trigger("disk")), owned(slack("ops", "xoxb-1"))]);
    let made = world.apply(&documents, "a").await.unwrap();
    assert!(made.iter().all(|it| it.starts_with('+')), "{made:?}");
    assert_eq!(world.head().await, 1);
    let again = world.apply(&documents, "a").await.unwrap();
    assert!(again.iter().all(|it| it.starts_with('=')), "{again:?}");

    let other = [mapping("status", "s2")];
    let changes = world
        .part
        .apply(&other, ("", Role::Editor), true)
        .await
        .unwrap();
    let Action::Updated {
        changed_secrets, ..
    } = &changes[0].action
    else {
        panic!("{changes:?}")
    };
    assert_eq!(*changed_secrets, ["signature.secret"]);

    // The calendar that excludes the other sorts first by name, and is deleted first.
    let gone = world.apply(&[], "a").await.unwrap();
    assert_eq!(gone.len(), 8, "{gone:?}");
    assert!(gone.iter().all(|it| it.starts_with('-')), "{gone:?}");
    let place = |what: &str| gone.iter().position(|it| it == what);
    assert!(place("-calendar a-work") < place("-calendar holidays"));
    assert!(place("-rule page") < place("-calendar a-work"));
}

fn silence(start_ms: Option<i64>, end_ms: i64) -> Document {
    let at = crate::wire::time::timestamp;
    owned(put(DefinitionVersion::Silence(v1::Silence {
        name: "patch".into(),
        reason: "kernel update".into(),
        filter: "host=a".into(),
        rule_names: vec!["page".into()],
        destination_names: vec!["ops".into()],
        annotations: [("ticket".to_owned(), "OPS-1".to_owned())].into(),
        span: Some(v1::SilenceSpan {
            start_time: start_ms.map(at),
            end_time: Some(at(end_ms)),
        }),
        ..v1::Silence::default()
    })))
}

impl World {
    /// Applies a silence with the definitions that it names, and returns what happens to it.
    async fn apply_silence(&self, silence: Option<Document>) -> Result<String, Error> {
        let documents: Vec<_> = silence.into_iter().chain(team()).collect();
        let made = self.apply(&documents, "a").await?;
        let found = made.into_iter().find(|it| it.ends_with("silence patch"));
        Ok(found.unwrap_or_default())
    }

    async fn stored(&self) -> Silence {
        let found = self.store.get::<Silence>("patch".into()).await;
        found.unwrap().unwrap().value
    }
}

#[tokio::test]
async fn silence_of_a_document_ends_once() {
    const HOUR_MS: i64 = 3_600_000;
    let silences = world();
    let document = || silence(None, START_MS + HOUR_MS);
    for expected in ["+silence patch", "=silence patch"] {
        assert_eq!(
            silences.apply_silence(Some(document())).await.unwrap(),
            expected
        );
    }
    let longer = silence(None, START_MS + 2 * HOUR_MS);
    assert_eq!(
        silences.apply_silence(Some(longer)).await.unwrap(),
        "~silence patch"
    );
    let stored = silences.stored().await;
    assert_eq!(stored.annotations["ticket"], "OPS-1");
    assert_eq!(stored.destination_names[0].as_str(), "ops");

    silences
        .clock
        .advance(std::time::Duration::from_secs(2 * 3_600));
    let id = silences.stored().await.id;
    let (now_ms, next_ms) = (START_MS + 2 * HOUR_MS, START_MS + 3 * HOUR_MS);
    for (document, expected, is_same) in [
        (document(), "=silence patch", true),
        // A later end alone does not restart a silence that ended.
        (silence(None, next_ms), "=silence patch", true),
        (silence(Some(START_MS), next_ms), "=silence patch", true),
        (silence(Some(now_ms), next_ms), "+silence patch", false),
        (silence(Some(now_ms), next_ms), "=silence patch", false),
        // An end that has passed ends it.
        (silence(Some(now_ms), now_ms), "~silence patch", false),
        (silence(Some(now_ms), now_ms), "=silence patch", false),
    ] {
        assert_eq!(
            silences.apply_silence(Some(document)).await.unwrap(),
            expected
        );
        assert_eq!(silences.stored().await.id == id, is_same, "{expected}");
    }
}

#[tokio::test]
async fn silence_without_a_document_is_ended_by_pruning() {
    let silences = world();
    silences
        .apply_silence(Some(silence(None, START_MS + 60_000)))
        .await
        .unwrap();
    assert_eq!(
        silences.apply_silence(None).await.unwrap(),
        "-silence patch"
    );
    let stored = silences.stored().await;
    assert_eq!(stored.end_ms, START_MS);
    assert_eq!(silences.apply_silence(None).await.unwrap(), "");
}

#[tokio::test]
async fn invalid_silence_of_a_document_is_rejected() {
    let silences = world();
    assert_eq!(
        silences
            .apply_silence(Some(silence(None, START_MS - 1)))
            .await
            .unwrap(),
        "=silence patch"
    );
    assert!(samples::all::<Silence>(&silences.store).await.is_empty());
    let mut wrong = silence(None, START_MS + 60_000);
    if let DefinitionVersion::Silence(draft) = &mut wrong.definition {
        draft.destination_names = vec!["gone".into()];
        draft.annotations = [("key".to_owned(), "x".repeat(1_001))].into();
        draft.reason.clear();
    }
    let error = silences.apply_silence(Some(wrong)).await.unwrap_err();
    let expected = ["reason", "destinationNames[0]", "annotations.key"]
        .map(|field| format!("documents[0].silence.{field}"));
    assert_eq!(fields(&error), expected);
    let new = |mut document: Document| {
        document.must_be_new = true;
        document
    };
    silences
        .apply_silence(Some(new(silence(None, START_MS + 60_000))))
        .await
        .unwrap();
    let error = silences
        .apply_silence(Some(new(silence(None, START_MS + 60_000))))
        .await;
    assert!(matches!(error, Err(Error::Aborted(_))));
}
