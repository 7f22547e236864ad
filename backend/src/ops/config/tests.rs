//! Documents are stored together or not at all.

use super::*;
use crate::{
    clock::ManualClock,
    domain::{
        DestinationKind, Secret, SignatureScheme, WebhookSignature, calendar::WindowText,
        destination::Slack, inhibition::EqualFields,
    },
    ops::{
        calendar::CalendarDraft,
        destination::DestinationDraft,
        inhibition::InhibitionDraft,
        intake_mapping::MappingDraft,
        rule::RuleDraft,
        samples::{self, START_MS},
        trigger::TriggerDraft,
    },
    store::verify,
};

struct World {
    store: Store,
    configuration: Configuration,
}

fn world() -> World {
    let store = Store::in_memory();
    let clock = Arc::new(ManualClock::at(START_MS));
    World {
        configuration: Configuration::new(store.clone(), clock, Arc::default()),
        store,
    }
}

fn trigger(name: &str) -> Document {
    put(Draft::Trigger(TriggerDraft {
        name: name.into(),
        query: Some(samples::trigger("everything").query),
        ..TriggerDraft::default()
    }))
}

fn slack(name: &str, token: &str) -> Document {
    put(Draft::Destination(DestinationDraft {
        name: name.into(),
        kind: Some(DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: Secret::new(token),
            ..Slack::default()
        })),
        ..DestinationDraft::default()
    }))
}

fn rule(name: &str, trigger: &str, destination: &str) -> Document {
    put(Draft::Rule(RuleDraft {
        name: name.into(),
        trigger_names: vec![trigger.into()],
        destination_names: vec![destination.into()],
        ..RuleDraft::default()
    }))
}

fn put(draft: Draft) -> Document {
    Document {
        draft,
        must_be_new: false,
    }
}

fn owned(mut document: Document) -> Document {
    let tags = match &mut document.draft {
        Draft::Trigger(draft) => &mut draft.tags,
        Draft::Destination(draft) => &mut draft.tags,
        Draft::Rule(draft) => &mut draft.tags,
        Draft::Calendar(draft) => &mut draft.tags,
        Draft::Inhibition(draft) => &mut draft.tags,
        Draft::IntakeMapping(draft) => &mut draft.tags,
        Draft::SavedView(draft) => &mut draft.tags,
    };
    tags.push("owner:a".into());
    document
}

impl World {
    async fn apply(&self, documents: &[Document], owner: &str) -> Result<Vec<String>, Error> {
        let changes = self.configuration.apply(documents, owner, false).await?;
        let findings = verify(&self.store, &|_| {}).await;
        assert_eq!(findings.told, Vec::<String>::new());
        Ok(signs(&changes))
    }

    async fn head(&self) -> u64 {
        self.store.engine().log_head().await.unwrap()
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
async fn documents_in_any_order_are_one_commit_and_the_same_ones_again_are_none() {
    let world = world();
    let made = world.apply(&team(), "").await.unwrap();
    assert_eq!(made, ["+rule page", "+destination ops", "+trigger disk"]);
    assert_eq!(world.head().await, 1);
    let again = world.apply(&team(), "a").await.unwrap();
    assert_eq!(again, ["=rule page", "=destination ops", "=trigger disk"]);
    assert_eq!(world.head().await, 1);
}

#[tokio::test]
async fn one_wrong_document_leaves_everything_as_it_was_and_nobody_else_is_blamed() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    let mut wrong = trigger("memory");
    if let Draft::Trigger(draft) = &mut wrong.draft {
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
async fn what_its_owner_describes_no_more_is_deleted_and_what_others_need_is_not() {
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
    assert!(matches!(&error, Error::FailedPrecondition(_)), "{error}");
    assert!(error.to_string().contains("other"), "{error}");

    let without_tag = world.apply(&[trigger("disk")], "a").await.unwrap_err();
    assert_eq!(fields(&without_tag), ["documents[0].trigger.tags"]);
}

#[tokio::test]
async fn a_changed_secret_is_seen_and_not_told_and_one_left_out_is_kept() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    for (token, expected) in [("", "="), ("xoxb-1", "="), ("xoxb-2", "~")] {
        let documents = [owned(slack("ops", token))];
        let changes = world
            .configuration
            .apply(&documents, "", true)
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
async fn what_changed_since_it_was_looked_at_is_refused_by_name() {
    let world = world();
    world.apply(&team(), "").await.unwrap();
    let seen = world.configuration.apply(&team(), "", true).await.unwrap();
    let mut edited = rule("page", "disk", "ops");
    if let Draft::Rule(draft) = &mut edited.draft {
        draft.enabled = true;
    }
    world.apply(&[edited], "").await.unwrap();
    let mut planned = team();
    if let Draft::Rule(draft) = &mut planned[0].draft {
        draft.etag.clone_from(&seen[0].etag);
    }
    planned[1].must_be_new = true;
    let error = world.apply(&planned, "").await.unwrap_err();
    assert!(matches!(error, Error::Aborted(_)), "{error}");
    let told = error.to_string();
    assert!(
        told.contains("rule `page`") && told.contains("`ops`"),
        "{told}"
    );
}

#[tokio::test]
async fn documents_are_counted_and_each_describes_another_resource() {
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

fn calendar(name: &str, except: &[&str]) -> Document {
    put(Draft::Calendar(CalendarDraft {
        name: name.into(),
        time_zone: "Europe/Berlin".into(),
        windows: vec![WindowText {
            dtstart: "2026-01-05T08:00:00".into(),
            duration: "PT8H".into(),
            ..WindowText::default()
        }],
        except: except.iter().map(|it| (*it).to_owned()).collect(),
        ..CalendarDraft::default()
    }))
}

fn inhibition(name: &str) -> Document {
    let query = |name: &str| Some(samples::trigger(name).query);
    put(Draft::Inhibition(InhibitionDraft {
        name: name.into(),
        enabled: true,
        source: query("source"),
        target: query("target"),
        equal: vec![EqualFields {
            source: "host".into(),
            target: "host".into(),
        }],
        ..InhibitionDraft::default()
    }))
}

fn mapping(name: &str, secret: &str) -> Document {
    let sample = crate::store::samples::mapping(name);
    put(Draft::IntakeMapping(MappingDraft {
        name: name.into(),
        event: Some(sample.event),
        signature: Some(WebhookSignature {
            secret: Secret::new(secret),
            scheme: SignatureScheme::HubSha256,
        }),
        ..MappingDraft::default()
    }))
}

#[tokio::test]
async fn what_holds_and_what_takes_in_is_configuration_too_whatever_order_it_comes_in() {
    let world = world();
    let mut ruled = rule("page", "disk", "ops");
    if let Draft::Rule(draft) = &mut ruled.draft {
        draft.active_calendar = "a-work".into();
    }
    let all = || {
        [
            inhibition("router"),
            calendar("a-work", &["holidays"]),
            mapping("status", "s1"),
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
    let changes = world.configuration.apply(&other, "", true).await.unwrap();
    let Action::Updated {
        changed_secrets, ..
    } = &changes[0].action
    else {
        panic!("{changes:?}")
    };
    assert_eq!(*changed_secrets, ["signature.secret"]);

    // What takes out another calendar comes first by name, and goes first when both go.
    let gone = world.apply(&[], "a").await.unwrap();
    assert_eq!(gone.len(), 7, "{gone:?}");
    assert!(gone.iter().all(|it| it.starts_with('-')), "{gone:?}");
    let place = |what: &str| gone.iter().position(|it| it == what);
    assert!(place("-calendar a-work") < place("-calendar holidays"));
    assert!(place("-rule page") < place("-calendar a-work"));
}
