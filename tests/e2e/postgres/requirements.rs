//! Requirements for the database, the role and the connection. Startup reports those that are not
//! met before it creates any table.

use std::{fs, path::Path};

use bellwether_tests::{
    postgres::{PASSWORD, Pooler, Postgres},
    process,
    world::World,
};

use super::{Database, assert_refused, init, init_again, serve, settings, store};

/// Statements that take a permission from a role other than the owner, and the errors that follow.
const LACKING: [(&str, &str); 5] = [
    (
        "REVOKE USAGE ON SEQUENCE bellwether.version",
        "lacks USAGE on version",
    ),
    (
        "REVOKE INSERT, DELETE ON bellwether.silence",
        "lacks INSERT, DELETE on silence",
    ),
    (
        "REVOKE SELECT ON bellwether.layout",
        "lacks SELECT on layout",
    ),
    ("REVOKE UPDATE ON bellwether.head", "lacks UPDATE on head"),
    ("REVOKE USAGE ON SCHEMA bellwether", "lacks USAGE on schema"),
];
const GRANTS: &str = "GRANT USAGE ON SCHEMA \"bellwether\" TO clerk; \
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"bellwether\" TO clerk; \
     GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"bellwether\" TO clerk;";

fn reach_by(data_dir: &Path, database: &Database, url: &str) {
    let lines = settings(url, &database.key_file(), "one");
    fs::write(data_dir.with_file_name("bellwether.toml"), lines).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_database_privileges_are_reported_with_grants() {
    let Some(database) = Database::start() else {
        return;
    };
    let server = &database.server;
    let mut world = database.world();
    let data_dir = world.data_dir();
    assert!(world.terminate().success());
    server.execute(&format!("CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD}'"));
    let url = Postgres::url_of(server.port()).replace("bellwether@", "clerk@");
    reach_by(&data_dir, &database, &url);
    for (revoke, said) in LACKING {
        server.execute(GRANTS);
        server.execute(&format!("{revoke} FROM clerk"));
        assert_refused(serve(&data_dir), said);
        assert_refused(serve(&data_dir), GRANTS);
        assert_refused(store(&data_dir, &["status"]), said);
    }
    server.execute(GRANTS);
    let status = process::run(store(&data_dir, &["status"]));
    assert!(status.status.success(), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_pooler_is_rejected_and_session_pooler_works() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut world = database.world();
    let data_dir = world.data_dir();
    assert!(world.terminate().success());
    let Some(pooler) = Pooler::start(&database.server, "transaction") else {
        return;
    };
    reach_by(&data_dir, &database, &Postgres::url_of(pooler.port));
    assert_refused(serve(&data_dir), "PgBouncer in transaction mode");
    assert_refused(store(&data_dir, &["status"]), "pool_mode = session");
    drop(pooler);
    let pooler = Pooler::start(&database.server, "session").unwrap();
    let key = data_dir.join("admin.key");
    let prepare = |data_dir: &Path| {
        fs::create_dir_all(data_dir).unwrap();
        fs::copy(key, data_dir.join("admin.key")).unwrap();
    };
    let lines = settings(
        &Postgres::url_of(pooler.port),
        &database.key_file(),
        "pooled",
    );
    let pooled = World::on(prepare, &lines);
    assert_eq!(pooled.rest().get("/v1/overview").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_store_init_leaves_no_key_and_status_requires_none() {
    let Some(database) = Database::start() else {
        return;
    };
    let server = &database.server;
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let url = Postgres::url_of(server.port());
    reach_by(&data_dir, &database, &url.replace("/postgres", "/latin"));
    let key_file = database.key_file();
    assert_refused(init_again(&data_dir), "UTF8 is required");
    assert!(!key_file.exists());

    reach_by(&data_dir, &database, &url);
    init(&data_dir);
    let key = fs::read(&key_file).unwrap();
    fs::remove_file(&key_file).unwrap();
    assert_refused(init_again(&data_dir), "the store exists");
    assert!(!key_file.exists(), "no key is generated for a store");

    let mut status = process::command(folder.path(), ["store", "status", "--store", &url]);
    status.env("BELLWETHER_STORE_PASSWORD", PASSWORD);
    let shown = process::run(status);
    let said = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.status.success() && said.contains("node: none"),
        "{shown:?}"
    );
    fs::write(&key_file, key).unwrap();
    assert_refused(init_again(&data_dir), "the store already has clients");
}
