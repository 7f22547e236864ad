//! The role that each method needs: one table over all services.

use crate::domain::Role;

/// What a method asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing, not even a key.
    Nothing,
    /// Any key.
    Key,
    /// The role `ingest` or `admin`.
    Ingest,
    /// The role `viewer` or above.
    Viewer,
    /// The role `operator` or above.
    Operator,
    /// The role `editor` or above.
    Editor,
    /// The role `admin`.
    Admin,
}

impl Need {
    /// Whether a role is enough.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Nothing | Self::Key => true,
            Self::Ingest => matches!(role, Role::Ingest | Role::Admin),
            Self::Viewer => role >= Role::Viewer,
            Self::Operator => role >= Role::Operator,
            Self::Editor => role >= Role::Editor,
            Self::Admin => role >= Role::Admin,
        }
    }

    /// The lowest role that is enough, as a word; any role for those that ask for none.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing | Self::Key => "any",
            Self::Ingest => Role::Ingest.word(),
            Self::Viewer => Role::Viewer.word(),
            Self::Operator => Role::Operator.word(),
            Self::Editor => Role::Editor.word(),
            Self::Admin => Role::Admin.word(),
        }
    }
}

/// Every method that is served, by its full path, and what it needs.
pub const METHODS: &[(&str, Need)] = &[
    ("/bellwether.v1.BackupService/ReadBackup", Need::Admin),
    ("/bellwether.v1.CheckService/CheckStore", Need::Admin),
    ("/bellwether.v1.ClientService/CreateClient", Need::Admin),
    ("/bellwether.v1.ClientService/GetCaller", Need::Key),
    ("/bellwether.v1.ClientService/ListClients", Need::Admin),
    ("/bellwether.v1.ClientService/RevokeClient", Need::Admin),
    ("/bellwether.v1.ClientService/UpdateClient", Need::Admin),
    (
        "/bellwether.v1.DeliveryService/CancelDeliveries",
        Need::Operator,
    ),
    (
        "/bellwether.v1.DeliveryService/CancelDelivery",
        Need::Operator,
    ),
    ("/bellwether.v1.DeliveryService/GetDelivery", Need::Viewer),
    (
        "/bellwether.v1.DeliveryService/ListDeliveries",
        Need::Viewer,
    ),
    (
        "/bellwether.v1.DeliveryService/ListObligations",
        Need::Viewer,
    ),
    (
        "/bellwether.v1.DeliveryService/RetryDeliveries",
        Need::Operator,
    ),
    (
        "/bellwether.v1.DeliveryService/RetryDelivery",
        Need::Operator,
    ),
    (
        "/bellwether.v1.DestinationService/CreateDestination",
        Need::Editor,
    ),
    (
        "/bellwether.v1.DestinationService/DeleteDestination",
        Need::Editor,
    ),
    (
        "/bellwether.v1.DestinationService/GetDestination",
        Need::Viewer,
    ),
    (
        "/bellwether.v1.DestinationService/ListDestinations",
        Need::Viewer,
    ),
    (
        "/bellwether.v1.DestinationService/TestDestination",
        Need::Operator,
    ),
    (
        "/bellwether.v1.DestinationService/UpdateDestination",
        Need::Editor,
    ),
    (
        "/bellwether.v1.EventManagementService/Annotate",
        Need::Operator,
    ),
    (
        "/bellwether.v1.EventManagementService/SetStatus",
        Need::Operator,
    ),
    ("/bellwether.v1.EventQueryService/CountEvents", Need::Viewer),
    (
        "/bellwether.v1.EventQueryService/EventFrequency",
        Need::Viewer,
    ),
    (
        "/bellwether.v1.EventQueryService/ExplainEvent",
        Need::Viewer,
    ),
    ("/bellwether.v1.EventQueryService/GetEvent", Need::Viewer),
    (
        "/bellwether.v1.EventQueryService/SearchEvents",
        Need::Viewer,
    ),
    ("/bellwether.v1.EventQueryService/WatchEvents", Need::Viewer),
    ("/bellwether.v1.OverviewService/GetOverview", Need::Viewer),
    ("/bellwether.v1.RuleService/CreateRule", Need::Editor),
    ("/bellwether.v1.RuleService/DeleteRule", Need::Editor),
    ("/bellwether.v1.RuleService/GetRule", Need::Viewer),
    ("/bellwether.v1.RuleService/ListRules", Need::Viewer),
    ("/bellwether.v1.RuleService/PreviewRule", Need::Viewer),
    ("/bellwether.v1.RuleService/UpdateRule", Need::Editor),
    ("/bellwether.v1.TriggerService/CreateTrigger", Need::Editor),
    ("/bellwether.v1.TriggerService/DeleteTrigger", Need::Editor),
    ("/bellwether.v1.TriggerService/GetTrigger", Need::Viewer),
    ("/bellwether.v1.TriggerService/ListTriggers", Need::Viewer),
    ("/bellwether.v1.TriggerService/TestTrigger", Need::Operator),
    (
        "/bellwether.v1.TriggerService/TestTriggerWithProgress",
        Need::Operator,
    ),
    ("/bellwether.v1.TriggerService/UpdateTrigger", Need::Editor),
    ("/grpc.health.v1.Health/Check", Need::Nothing),
    ("/grpc.health.v1.Health/Watch", Need::Nothing),
    // What a service offers is told to those who may use it.
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Need::Key,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Need::Key,
    ),
    ("/zenoss.cloud.DataReceiverService/PutEvent", Need::Ingest),
    ("/zenoss.cloud.DataReceiverService/PutEvents", Need::Ingest),
];

/// What the method of that path needs; none when there is no such method.
pub(super) fn need_of(path: &str) -> Option<Need> {
    let at = METHODS.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(METHODS[at].1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_the_interface_is_in_the_table_and_no_other() {
        let set = FileDescriptorSet::decode(bellwether_proto::FILE_DESCRIPTOR_SET).unwrap();
        let described: BTreeSet<_> = set
            .file
            .iter()
            .flat_map(|file| file.service.iter().map(move |service| (file, service)))
            .flat_map(|(file, service)| {
                let name = format!("{}.{}", file.package(), service.name());
                let path = move |method: &str| format!("/{name}/{method}");
                service.method.iter().map(move |method| path(method.name()))
            })
            .collect();
        let served: BTreeSet<_> = METHODS
            .iter()
            .filter(|(path, _)| !path.starts_with("/grpc."))
            .map(|(path, _)| (*path).to_owned())
            .collect();
        assert_eq!(served, described);
    }

    #[test]
    fn the_table_is_sorted_so_that_every_method_is_found() {
        assert!(METHODS.is_sorted_by_key(|(path, _)| path));
        for (path, need) in METHODS {
            assert_eq!(need_of(path), Some(*need));
        }
        assert_eq!(need_of("/bellwether.v1.ClientService/DropAll"), None);
    }

    #[test]
    fn roles_rise_and_ingest_stands_apart() {
        let roles = [
            Role::Ingest,
            Role::Viewer,
            Role::Operator,
            Role::Editor,
            Role::Admin,
        ];
        let cases = [
            (Need::Key, [true, true, true, true, true]),
            (Need::Ingest, [true, false, false, false, true]),
            (Need::Viewer, [false, true, true, true, true]),
            (Need::Operator, [false, false, true, true, true]),
            (Need::Editor, [false, false, false, true, true]),
            (Need::Admin, [false, false, false, false, true]),
        ];
        for (need, allowed) in cases {
            assert_eq!(roles.map(|role| need.allows(role)), allowed, "{need:?}");
        }
    }
}
