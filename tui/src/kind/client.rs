//! Clients: named API keys with a role.

use super::{Cell, Column, FieldKind, FieldSpec, Key, KindSpec, edited, field::NAME};
use crate::{
    data::{Label, Object, Role},
    theme::Token,
};

const ROLES: &[(&str, &str)] = &[
    ("viewer", "ROLE_VIEWER"),
    ("operator", "ROLE_OPERATOR"),
    ("editor", "ROLE_EDITOR"),
    ("admin", "ROLE_ADMIN"),
    ("ingest", "ROLE_INGEST"),
];

pub(super) const SPEC: KindSpec = KindSpec {
    update: None,
    delete: Some("RevokeClient"),
    nested: false,
    output: &["createTime", "lastUsedTime"],
    role: Role::Admin,
    columns: &[
        Column::new("Name", 16, 2, 0, |_, it: &Object| {
            Cell::new(Token::Text, it.name())
        })
        .sort_by_key(|it| Key::Text(it.name().to_owned())),
        Column::new("Role", 10, 0, 0, |_, it: &Object| {
            Cell::new(Token::Text, role(it).label())
        })
        .sort_by_key(|it| Key::Number(i64::from(i32::from(role(it))))),
        Column::new("Last used", 16, 1, 0, |around, it: &Object| {
            let mut cell = Cell::time(around, it.timestamp_ms("lastUsedTime"));
            if cell.text.is_empty() {
                "never".clone_into(&mut cell.text);
            }
            cell
        })
        .sort_descending(|it| Key::Number(it.timestamp_ms("lastUsedTime").unwrap_or_default())),
        Column::new("Created", 16, 1, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("createTime"))
        })
        .sort_descending(|it| Key::Number(it.timestamp_ms("createTime").unwrap_or_default())),
    ],
    searched: |it| vec![role(it).label()],
    fields: &[
        NAME,
        FieldSpec::new("role", "Role", FieldKind::Named(ROLES))
            .help("ingest: send events; viewer: read; operator: also act on events; editor: also change rules; admin: all."),
        FieldSpec::new("requestsPerSecond", "Calls a second", FieldKind::Number(0, 1_000_000))
            .help("Requests over the limit are rejected with a retry time. Empty: no limit."),
        FieldSpec::new("eventsPerSecond", "Events a second", FieldKind::Number(0, 10_000_000))
            .help("Requests over the limit are rejected with a retry time. Empty: no limit."),
    ],
    empty: "No clients.\n\n‹new› creates one and shows its key once.\n\nFor example: name `prometheus`, role `ingest`, to send events and nothing else.",
    ..edited!("Client", "Clients")
};

fn role(client: &Object) -> Role {
    Role::from_str_name(client.text("role")).unwrap_or_default()
}
