//! Tests of lists over the wire: filters and pages.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

async fn list(
    world: &World,
    request: v1::ListTriggersRequest,
) -> Result<v1::ListTriggersResponse, Status> {
    world.triggers().list_triggers(request).await.map(inner)
}

fn names(page: &v1::ListTriggersResponse) -> Vec<&str> {
    page.triggers.iter().map(|t| t.name.as_str()).collect()
}

async fn world() -> World {
    let world = World::start().await;
    let all = [
        ("alpha", "Erster STRASSE", &["x", "y"][..]),
        ("beta", "zweiter", &["x"]),
        ("gamma", "Straße", &["y"]),
        ("Delta", "", &[]),
    ];
    for (name, description, tags) in all {
        let mut draft = trigger(name);
        draft.description = description.into();
        draft.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        world.create_trigger(draft).await.unwrap();
    }
    world
}

/// The names, tags and text of a filter, and the names that match.
type Case = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
);

#[tokio::test]
async fn filters_combine_and_total_counts_matches() {
    let world = world().await;
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let cases: [Case; 9] = [
        (&[], &[], "", &["Delta", "alpha", "beta", "gamma"]),
        (
            &["gamma", "beta", "nobody", "beta"],
            &[],
            "",
            &["beta", "gamma"],
        ),
        (&[], &["x"], "", &["alpha", "beta"]),
        (&[], &["x", "y"], "", &["alpha"]),
        (&[], &["z"], "", &[]),
        (&[], &[], "TA", &["Delta", "beta"]),
        (&[], &[], "straße", &["alpha", "gamma"]),
        (&["beta", "alpha"], &["x"], "erst", &["alpha"]),
        (&["not/a name"], &[], "", &[]),
    ];
    for (only, tags, q, expected) in cases {
        let request = v1::ListTriggersRequest {
            names: texts(only),
            tags: texts(tags),
            q: q.into(),
            ..v1::ListTriggersRequest::default()
        };
        let page = list(&world, request).await.unwrap();
        assert_eq!(names(&page), expected, "{only:?} {tags:?} {q:?}");
        assert_eq!(page.total_size, i32::try_from(expected.len()).ok());
        assert_eq!(page.next_page_token, "");
    }
}

#[tokio::test]
async fn invalid_page_sizes_and_tokens_are_refused() {
    let world = world().await;
    let sized = |page_size, page_token: &str, q: &str| v1::ListTriggersRequest {
        page_size,
        page_token: page_token.into(),
        q: q.into(),
        ..v1::ListTriggersRequest::default()
    };
    let first = list(&world, sized(1, "", "")).await.unwrap();
    let token = first.next_page_token.as_str();
    assert_eq!((names(&first), first.total_size), (vec!["Delta"], Some(4)));
    let second = list(&world, sized(2, token, "")).await.unwrap();
    assert_eq!(names(&second), ["alpha", "beta"]);
    assert_eq!(fields(list(&world, sized(-1, "", "")).await), ["pageSize"]);
    for forged in ["x", "AAAA", "====", &token[1..], &format!("{token}AA")] {
        let refused = list(&world, sized(1, forged, "")).await;
        assert_eq!(fields(refused), ["pageToken"], "{forged}");
    }
    assert_eq!(
        fields(list(&world, sized(1, token, "a")).await),
        ["pageToken"]
    );
    let request = v1::ListRulesRequest {
        page_token: token.into(),
        ..v1::ListRulesRequest::default()
    };
    assert_eq!(
        fields(world.rules().list_rules(request).await),
        ["pageToken"]
    );
    let request = v1::ListTriggersRequest {
        names: vec!["a".into(); 1_001],
        ..v1::ListTriggersRequest::default()
    };
    assert_eq!(fields(list(&world, request).await), ["names"]);
}

/// An edit between two pages.
#[derive(Debug, Clone)]
enum Edit {
    Create(String),
    Delete(String),
    Touch(String),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let passing = "p[a-z]{2}";
    prop::collection::vec(
        prop_oneof![
            passing.prop_map(Edit::Create),
            passing.prop_map(Edit::Delete),
            "s[a-e]".prop_map(Edit::Touch),
        ],
        0..30,
    )
}

async fn apply_edit(world: &World, edit: Edit) {
    // Failures of duplicate creations and deletions do not matter here.
    match edit {
        Edit::Create(name) => drop(world.create_trigger(trigger(&name)).await),
        Edit::Delete(name) => {
            let request = v1::DeleteTriggerRequest {
                name,
                ..v1::DeleteTriggerRequest::default()
            };
            drop(world.triggers().delete_trigger(request).await);
        }
        Edit::Touch(name) => {
            let request = v1::UpdateTriggerRequest {
                trigger: Some(trigger(&name)),
                ..v1::UpdateTriggerRequest::default()
            };
            drop(world.triggers().update_trigger(request).await);
        }
    }
}

async fn walk(staying: BTreeSet<String>, edits: Vec<Edit>, page_size: i32) {
    let world = World::start().await;
    for name in &staying {
        world.create_trigger(trigger(name)).await.unwrap();
    }
    let (mut token, mut seen, mut edits) = (String::new(), Vec::new(), edits.into_iter());
    loop {
        let request = v1::ListTriggersRequest {
            page_size,
            page_token: token,
            ..v1::ListTriggersRequest::default()
        };
        let page = list(&world, request).await.unwrap();
        seen.extend(names(&page).into_iter().map(str::to_owned));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        for edit in edits.by_ref().take(2) {
            apply_edit(&world, edit).await;
        }
    }
    let distinct: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(
        distinct.len(),
        seen.len(),
        "an item was returned twice: {seen:?}"
    );
    assert!(staying.is_subset(&distinct), "an item is missing: {seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn paging_returns_stable_items_once_despite_edits(
        staying in prop::collection::btree_set("s[a-e]|s[a-z]{2}", 1..12),
        edits in edits(),
        page_size in 1..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(walk(staying, edits, page_size));
    }
}

#[tokio::test]
async fn create_fails_for_a_name_that_differs_only_in_case() {
    let world = World::start().await;
    for name in [
        "disk-full",
        "IN",
        "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
    ] {
        world.create_trigger(trigger(name)).await.unwrap();
    }
    for alike in ["Disk-Full", "DISK-FULL", "in"] {
        let status = world.create_trigger(trigger(alike)).await.unwrap_err();
        assert_eq!(status.code(), Code::AlreadyExists, "{alike}");
        assert!(status.message().contains("looks like"), "{status:?}");
    }
    for folder in [".", ".."] {
        let status = world.create_trigger(trigger(folder)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{folder}");
    }
    world.create_trigger(trigger("disk_full")).await.unwrap();

    // Deleting a trigger does not affect similar names, and each kind of resource has its own
    // names.
    let request = v1::DeleteTriggerRequest {
        name: "disk-full".into(),
        ..v1::DeleteTriggerRequest::default()
    };
    world.triggers().delete_trigger(request).await.unwrap();
    world.create_trigger(trigger("DISK-full")).await.unwrap();
}
