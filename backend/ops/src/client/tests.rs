//! Tests of clients through their operations, with a store in memory.

use super::*;
use crate::{
    clock::ManualClock,
    store::{Sealer, engine::memory::MemoryEngine},
};

fn clients() -> Clients {
    let engine = Arc::new(MemoryEngine::new());
    let store = Store::new(engine, Arc::new(Sealer::with_random_key()));
    Clients::new(store, Arc::new(ManualClock::starting_at(1_700_000_000_000)))
}

async fn names(clients: &Clients) -> Vec<String> {
    let page = clients.list(&PageRequest::default()).await.unwrap();
    let name = |client: Client| client.name.to_string();
    page.items.into_iter().map(name).collect()
}

async fn make(clients: &Clients, name: &str, role: Role) -> (Client, Secret) {
    let made = clients.create(&ClientDraft::new(name, role)).await;
    made.unwrap()
}

#[tokio::test]
async fn keys_are_prefixed_long_and_unique() {
    let clients = clients();
    let (_, one) = make(&clients, "one", Role::Viewer).await;
    let (client, two) = make(&clients, "two", Role::Viewer).await;
    assert_ne!(one.reveal(), two.reveal());
    assert!(one.reveal().starts_with("bw_"));
    assert_eq!(one.reveal().len(), 3 + 43);
    assert_eq!(client.key_hash, key_hash(two.reveal()));
}

#[tokio::test]
async fn client_requires_a_free_name_and_a_role() {
    let clients = clients();
    let Err(Error::Invalid(violations)) = clients
        .create(&ClientDraft {
            name: "a/b".into(),
            ..ClientDraft::default()
        })
        .await
    else {
        panic!("it was created");
    };
    let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["name", "role"]);
    make(&clients, "a", Role::Ingest).await;
    let again = clients.create(&ClientDraft::new("a", Role::Admin)).await;
    assert!(matches!(again, Err(Error::AlreadyExists(_))));
}

#[tokio::test]
async fn confusable_and_dot_names_are_refused() {
    let clients = clients();
    make(&clients, "ops-page", Role::Ingest).await;
    make(&clients, "stra\u{df}e", Role::Ingest).await;
    for (name, other) in [("Ops-Page", "ops-page"), ("STRASSE", "stra\u{df}e")] {
        let draft = ClientDraft::new(name, Role::Viewer);
        let made = clients.create(&draft);
        let Err(Error::AlreadyExists(why)) = made.await else {
            panic!("{name} was created");
        };
        assert!(why.contains(&format!("`{other}`")), "{why}");
    }
    for name in [".", ".."] {
        let draft = ClientDraft::new(name, Role::Viewer);
        let made = clients.create(&draft);
        assert!(matches!(made.await, Err(Error::Invalid(_))), "{name}");
    }
    assert_eq!(names(&clients).await, ["ops-page", "stra\u{df}e"]);
}

#[tokio::test]
async fn list_continues_after_the_previous_page() {
    let clients = clients();
    for name in ["c", "a", "d", "b", "e"] {
        make(&clients, name, Role::Viewer).await;
    }
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let request = PageRequest::new(2, token);
        let page = clients.list(&request).await.unwrap();
        assert_eq!(page.total, 5);
        seen.extend(page.items.into_iter().map(|client| client.name.to_string()));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn last_admin_cannot_be_revoked() {
    let clients = clients();
    make(&clients, "one", Role::Admin).await;
    make(&clients, "two", Role::Admin).await;
    make(&clients, "three", Role::Editor).await;
    clients.revoke("one").await.unwrap();
    let Err(Error::FailedPrecondition(message)) = clients.revoke("two").await else {
        panic!("it was revoked");
    };
    assert!(message.contains("`two` is the last client"));
    clients.revoke("three").await.unwrap();
    assert!(matches!(
        clients.revoke("three").await,
        Err(Error::NotFound(_))
    ));
    assert_eq!(names(&clients).await, ["two"]);
}

#[tokio::test]
async fn mutual_revocation_leaves_one_admin() {
    for _ in 0..20 {
        let clients = clients();
        make(&clients, "one", Role::Admin).await;
        make(&clients, "two", Role::Admin).await;
        let (one, two) = tokio::join!(clients.revoke("one"), clients.revoke("two"));
        assert!(one.is_ok() != two.is_ok());
        assert_eq!(names(&clients).await.len(), 1);
    }
}

#[tokio::test]
async fn first_admin_key_is_written_once() {
    let clients = clients();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(ADMIN_KEY_FILE);
    clients.ensure_admin(folder.path()).await.unwrap();
    let key = std::fs::read_to_string(&path).unwrap();
    let stored = clients.read_all().await.unwrap();
    assert_eq!(stored[0].value.key_hash, key_hash(key.trim()));
    assert_eq!(stored[0].value.role, Role::Admin);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // A deleted file is not recreated: it may have been deleted on purpose.
    std::fs::remove_file(&path).unwrap();
    clients.ensure_admin(folder.path()).await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn key_file_of_an_interrupted_start_is_replaced() {
    let clients = clients();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("admin.key"), "bw_old").unwrap();
    std::fs::write(folder.path().join("admin.key.new"), "bw_").unwrap();
    clients.ensure_admin(folder.path()).await.unwrap();
    let key = std::fs::read_to_string(folder.path().join(ADMIN_KEY_FILE)).unwrap();
    let stored = clients.read_all().await.unwrap();
    assert_eq!(stored[0].value.key_hash, key_hash(key.trim()));
}

async fn create_with_certificate(
    clients: &Clients,
    name: &str,
    role: Role,
    certificate: &str,
) -> Result<(), Error> {
    let draft = ClientDraft {
        certificates: vec![certificate.into()],
        ..ClientDraft::new(name, role)
    };
    clients.create(&draft).await.map(drop)
}

#[tokio::test]
async fn certificate_authenticates_only_one_client() {
    let clients = clients();
    create_with_certificate(&clients, "one", Role::Ingest, "dns:a.example.net")
        .await
        .unwrap();
    let again = create_with_certificate(&clients, "two", Role::Ingest, "dns:A.example.net").await;
    let Err(Error::AlreadyExists(why)) = again else {
        panic!("{again:?}");
    };
    assert_eq!(
        why,
        "`dns:a.example.net` already authenticates client `one`"
    );
    make(&clients, "two", Role::Ingest).await;
    let edit = ClientEdit {
        certificates: Some(vec!["dns:a.example.net".into()]),
        ..ClientEdit::default()
    };
    let result = clients.update("two", &edit).await;
    assert!(matches!(result, Err(Error::AlreadyExists(_))), "{result:?}");
    // The client that has the certificate may keep it.
    clients.update("one", &edit).await.unwrap();
}

#[tokio::test]
async fn scopes_are_accepted_only_for_matching_roles() {
    let clients = clients();
    let cases = [
        (Role::Ingest, false, true),
        (Role::Viewer, false, false),
        (Role::Operator, true, false),
        (Role::Editor, true, false),
        (Role::Admin, false, false),
    ];
    for (role, tags, sources) in cases {
        let name = role.as_str();
        let tagged = ClientDraft {
            scope_tags: vec!["team:db".into()],
            ..ClientDraft::new(&format!("{name}-tags"), role)
        };
        assert_eq!(clients.create(&tagged).await.is_ok(), tags, "{name}");
        let sourced = ClientDraft {
            scope_sources: vec!["cron".into()],
            ..ClientDraft::new(&format!("{name}-sources"), role)
        };
        assert_eq!(clients.create(&sourced).await.is_ok(), sources, "{name}");
    }
    let Err(Error::Invalid(violations)) = clients
        .create(&ClientDraft {
            scope_sources: vec![String::new()],
            certificates: vec!["cn:a".into()],
            ..ClientDraft::new("a", Role::Ingest)
        })
        .await
    else {
        panic!("it was created");
    };
    let fields: Vec<_> = violations.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["certificates", "scopeSources"]);
}
