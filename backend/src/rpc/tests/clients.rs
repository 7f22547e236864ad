//! Tests of clients, keys and roles over the wire.

use super::*;

async fn revoke(world: &World, name: &str) -> Result<(), Status> {
    let request = v1::RevokeClientRequest { name: name.into() };
    let mut clients = world.clients(&world.key);
    clients.revoke_client(request).await.map(drop)
}

#[tokio::test]
async fn new_key_works_immediately_and_identifies_its_client() {
    let world = World::start().await;
    let request = v1::CreateClientRequest {
        name: "ada".into(),
        role: v1::Role::Viewer.into(),
        ..v1::CreateClientRequest::default()
    };
    let mut admin = world.clients(&world.key);
    let made = inner(admin.create_client(request.clone()).await.unwrap());
    assert!(made.key.starts_with("bw_"));
    let key = Bearer(made.key.clone());
    let caller = inner(
        world
            .clients(&key)
            .get_caller(v1::GetCallerRequest {})
            .await
            .unwrap(),
    );
    assert_eq!(caller.client, made.client);
    assert_eq!(
        code(admin.create_client(request).await),
        Code::AlreadyExists
    );
    let listed = inner(
        admin
            .list_clients(v1::ListClientsRequest::default())
            .await
            .unwrap(),
    );
    let names: Vec<_> = listed.clients.iter().map(|client| &client.name).collect();
    assert_eq!(names, ["ada", "root"]);
    assert!(!format!("{listed:?}").contains(&made.key));

    let mut ada = world.clients(&key);
    let listed = ada.list_clients(v1::ListClientsRequest::default()).await;
    assert_eq!(code(listed), Code::PermissionDenied);
}

#[tokio::test]
async fn client_without_a_name_or_role_is_refused() {
    let world = World::start().await;
    for role in [0, 6, -1] {
        let request = v1::CreateClientRequest {
            name: String::new(),
            role,
            ..v1::CreateClientRequest::default()
        };
        let refused = world.clients(&world.key).create_client(request).await;
        assert_eq!(fields(refused), ["name", "role"]);
    }
}

#[tokio::test]
async fn revoked_key_fails_the_next_call_and_ends_streams() {
    let world = World::start().await;
    let key = world.key("ada", Role::Viewer).await;
    let mut events = world.events(&key);
    let watching = events.watch_events(v1::WatchEventsRequest::default());
    let mut news = inner(watching.await.unwrap());
    let ended = async {
        loop {
            match news.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended as if there were no more items"),
                Err(status) => return status.code(),
            }
        }
    };
    let (code_of_end, ()) = tokio::join!(
        tokio::time::timeout(Duration::from_secs(60), ended),
        async {
            revoke(&world, "ada").await.unwrap();
            let next = world
                .clients(&key)
                .get_caller(v1::GetCallerRequest {})
                .await;
            assert_eq!(code(next), Code::Unauthenticated);
        }
    );
    assert_eq!(code_of_end.unwrap(), Code::Unauthenticated);
    assert_eq!(code(revoke(&world, "ada").await), Code::NotFound);
}

#[tokio::test]
async fn caller_can_revoke_itself() {
    let world = World::start().await;
    let key = world.key("ada", Role::Admin).await;
    let mut ada = world.clients(&key);
    let request = v1::RevokeClientRequest { name: "ada".into() };
    ada.revoke_client(request).await.unwrap();
    let next = ada.get_caller(v1::GetCallerRequest {}).await;
    assert_eq!(code(next), Code::Unauthenticated);
}

#[tokio::test]
async fn last_admin_keeps_its_key() {
    let world = World::start().await;
    let refused = revoke(&world, "root").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let caller = world
        .clients(&world.key)
        .get_caller(v1::GetCallerRequest {})
        .await;
    assert!(caller.is_ok());
}

#[tokio::test]
async fn roles_limit_reads_and_changes() {
    let world = World::start().await;
    world.create_trigger(trigger("a")).await.unwrap();
    let cases = [
        (Role::Ingest, Code::PermissionDenied, Code::PermissionDenied),
        (Role::Viewer, Code::Ok, Code::PermissionDenied),
        (Role::Operator, Code::Ok, Code::PermissionDenied),
        (Role::Editor, Code::Ok, Code::Ok),
        (Role::Admin, Code::Ok, Code::Ok),
    ];
    for (role, read, change) in cases {
        let key = world.key(role.as_str(), role).await;
        let mut triggers = TriggerServiceClient::with_interceptor(world.channel.clone(), key);
        let got = triggers
            .get_trigger(v1::GetTriggerRequest { name: "a".into() })
            .await;
        assert_eq!(got.err().map_or(Code::Ok, |s| s.code()), read, "{role:?}");
        let request = v1::UpdateTriggerRequest {
            trigger: Some(trigger("a")),
            ..v1::UpdateTriggerRequest::default()
        };
        let changed = triggers.update_trigger(request).await;
        assert_eq!(
            changed.err().map_or(Code::Ok, |s| s.code()),
            change,
            "{role:?}"
        );
    }
}
