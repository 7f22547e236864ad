//! `bellwether store`: creates, migrates and inspects a store in a database.

use std::{
    io::{self, Write},
    path::Path,
};

use bellwether_backend::{
    config::{DatabaseConfig, NodeReport},
    server::{CreatedStore, init_store},
    store::{
        engine::{
            ownership::SLOTS,
            postgres::{Layout, Status},
        },
        open::{ToleratedNodes, database_script, database_status, migrate_database},
    },
};

use crate::{cli::StoreCommand, config::Settings, failure::Failure};

pub(crate) async fn run(
    command: StoreCommand,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let config = match command {
        StoreCommand::Init { .. } => settings.store_config()?,
        StoreCommand::Migrate { .. } | StoreCommand::Status => {
            settings.without_store_key().store_config()?
        }
    };
    let Some(database) = &config.database else {
        return Err(Failure::usage_error(
            "--store: required; name the database, such as --store \
             postgres://bellwether@db.example.net/bellwether",
        ));
    };
    let message = match command {
        StoreCommand::Init {
            admin_key_file,
            if_absent,
        } => init(database, &admin_key_file, if_absent).await?,
        StoreCommand::Migrate {
            print_sql: true, ..
        } => {
            let script = database_script(database).await;
            script.map_err(|error| Failure::from_error(&error))?
        }
        StoreCommand::Migrate {
            if_stopped, force, ..
        } => {
            let tolerated = match (if_stopped, force) {
                (true, _) => ToleratedNodes::None,
                (false, false) => ToleratedNodes::Continuing,
                (false, true) => ToleratedNodes::All,
            };
            let raised = migrate_database(database, tolerated).await;
            let before = raised.map_err(|error| Failure::from_error(&error))?;
            format_upgrade(before)
        }
        StoreCommand::Status => {
            let status = database_status(database).await;
            let status = status.map_err(|error| Failure::from_error(&error))?;
            let (text, is_fine) = format_status(&status);
            write(&mut out, &text)?;
            return if is_fine {
                Ok(())
            } else {
                Err(Failure::without_message())
            };
        }
    };
    write(&mut out, &message)
}

fn write(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::new(format!("failed to write the output: {error}"));
    out.write_all(text.as_bytes()).map_err(cannot)
}

async fn init(
    database: &DatabaseConfig,
    admin_key_file: &Path,
    if_absent: bool,
) -> Result<String, Failure> {
    if admin_key_file.exists() && !if_absent {
        return Err(Failure::usage_error(format!(
            "--admin-key-file: {} already exists; name a new file",
            admin_key_file.display()
        )));
    }
    let made = init_store(database, admin_key_file).await;
    let key = database.secret_key_file.display();
    match made.map_err(|error| Failure::from_error(&error))? {
        CreatedStore::Store => Ok(format!(
            "the store was created; the key of the client `admin` is in {}\n\
             {key} encrypts its secrets: keep a copy elsewhere; without it, they are lost\n",
            admin_key_file.display()
        )),
        CreatedStore::Nothing if if_absent => {
            Ok("the store already has clients; nothing was changed\n".into())
        }
        CreatedStore::Nothing => Err(Failure::new(
            "the store already has clients; nothing was changed",
        )),
    }
}

fn format_upgrade(before: Layout) -> String {
    let newest = Layout::NEWEST;
    if before.version < newest {
        format!(
            "migrated the tables from layout {} to layout {newest}\n",
            before.version
        )
    } else {
        format!("the tables already have layout {}\n", before.version)
    }
}

fn format_settings(about: &str, leader: &NodeReport) -> Vec<String> {
    let settings = NodeReport::parse(about);
    let mut lines = Vec::new();
    let digest = settings.digest();
    if !digest.is_empty() {
        let differing = settings.differing_sections(leader);
        let differing = match &*differing {
            [] => String::new(),
            sections => format!(", different from the leader's in {}", sections.join(", ")),
        };
        lines.push(format!("  settings: {digest}{differing}"));
    }
    let ignored = settings.ignored.iter();
    lines.extend(ignored.map(|it| format!("  in its file, not applied: {it}")));
    lines
}

/// Formats the status, and returns whether the store is usable.
fn format_status(status: &Status) -> (String, bool) {
    let mut lines = vec![format!("server: PostgreSQL {}", status.server)];
    if let Some(layout) = status.layout {
        lines.push(format!("layout: {}", layout.version));
    }
    if let Some(store) = &status.store {
        let mib = store.bytes / (1024 * 1024);
        lines.push(format!("newest position: {}", store.head));
        lines.push(format!("rows: about {}", store.rows));
        lines.push(format!("size: {mib} MiB"));
        if store.nodes.is_empty() {
            lines.push("node: none".to_owned());
        }
        let leader = store.nodes.iter().find(|it| it.leads);
        let leader = leader
            .map(|it| NodeReport::parse(&it.about))
            .unwrap_or_default();
        for node in &store.nodes {
            let behind = store.head.steps_since(node.follows);
            let leads = if node.leads { ", leads" } else { "" };
            let since = jiff::Timestamp::from_millisecond(node.since_ms).unwrap_or_default();
            lines.push(format!(
                "node: {}, since {since:.0}, {behind} commits behind, owns {} of {SLOTS} slots{leads}",
                node.name, node.slots
            ));
            lines.extend(format_settings(&node.about, &leader));
        }
    }
    let error = status.check().err();
    let is_fine = error.is_none();
    lines.extend(error.map(|why| format!("it is unusable: {why}")));
    (lines.join("\n") + "\n", is_fine)
}
