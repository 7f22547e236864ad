//! All methods, with required role, class and audit, as declared in the `.proto` files.

use std::{collections::BTreeMap, sync::LazyLock};

use bellwether_proto::{
    FILE_DESCRIPTOR_SET,
    json::descriptor::{self, MethodOptions},
    options,
};

use crate::domain::Role;

pub const PUT_EVENTS: &str = "/zenoss.cloud.DataReceiverService/PutEvents";
pub const RECEIVE_WEBHOOK: &str = "/bellwether.v1.IntakeMappingService/ReceiveWebhook";
pub const EXPORT_LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// No permission and no key.
    Nothing,
    Key,
    /// The role `ingest` or `admin`.
    Ingest,
    Viewer,
    Operator,
    Editor,
    Admin,
}

impl Permission {
    fn from_name(word: &str) -> Option<Self> {
        let all = [
            Self::Ingest,
            Self::Viewer,
            Self::Operator,
            Self::Editor,
            Self::Admin,
        ];
        match word {
            "none" => Some(Self::Nothing),
            "any" => Some(Self::Key),
            word => all.into_iter().find(|need| need.as_str() == word),
        }
    }

    pub fn allows_role(self, role: Role) -> bool {
        match self {
            Self::Nothing | Self::Key => true,
            Self::Ingest => matches!(role, Role::Ingest | Role::Admin),
            Self::Viewer => role >= Role::Viewer,
            Self::Operator => role >= Role::Operator,
            Self::Editor => role >= Role::Editor,
            Self::Admin => role >= Role::Admin,
        }
    }

    /// Returns the name of the minimum role, or `any` if all roles are sufficient.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing | Self::Key => "any",
            Self::Ingest => Role::Ingest.as_str(),
            Self::Viewer => Role::Viewer.as_str(),
            Self::Operator => Role::Operator.as_str(),
            Self::Editor => Role::Editor.as_str(),
            Self::Admin => Role::Admin.as_str(),
        }
    }
}

/// The class of a call. Each class has a separate capacity, so that overload of one class does not
/// affect the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Probe,
    Intake,
    /// Reads a small amount of data.
    Read,
    Page,
    Change,
    Watch,
    /// A stream of another kind, which also runs until the caller stops.
    Stream,
    HealthWatch,
}

impl Class {
    fn from_option(class: options::call::Class) -> Option<Self> {
        use options::call::Class;
        Some(match class {
            Class::Unspecified => return None,
            Class::Intake => Self::Intake,
            Class::Read => Self::Read,
            Class::Page => Self::Page,
            Class::Change => Self::Change,
            Class::Watch => Self::Watch,
            Class::Stream => Self::Stream,
        })
    }

    /// Whether a call runs until the caller stops it, without a time limit.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::Watch | Self::Stream | Self::HealthWatch)
    }
}

/// The record of a call: a line in the log, and the audit entries that its commits store. A call
/// that reads the whole store is audited in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub action: Box<str>,
    pub what: Box<str>,
}

impl Audit {
    pub fn audits_reads(&self) -> bool {
        &*self.action == "read"
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    pub path: Box<str>,
    pub need: Permission,
    pub class: Class,
    /// Whether a call may scan many records or compute for a long time, so that it runs on separate
    /// threads.
    pub scans: bool,
    /// Audit of the calls; `None` if the method changes no definition.
    pub audit: Option<Audit>,
}

pub fn find_method(path: &str) -> Option<&'static Method> {
    METHODS.get(path)
}

pub fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.keys().map(|path| path.trim_start_matches('/'))
}

pub fn service_names() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    METHODS.keys().filter_map(move |path| {
        let (service, _) = path.strip_prefix('/')?.split_once('/')?;
        (service != std::mem::replace(&mut last, service)).then_some(service)
    })
}

/// Methods of third-party services, whose files have no options.
const FOREIGN: [(&str, Permission, Class); 5] = [
    (EXPORT_LOGS, Permission::Ingest, Class::Intake),
    (
        "/grpc.health.v1.Health/Check",
        Permission::Nothing,
        Class::Probe,
    ),
    (
        "/grpc.health.v1.Health/Watch",
        Permission::Nothing,
        Class::HealthWatch,
    ),
    // The API is described only to callers with a key.
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Permission::Key,
        Class::Stream,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Permission::Key,
        Class::Stream,
    ),
];

static METHODS: LazyLock<BTreeMap<Box<str>, Method>> = LazyLock::new(|| {
    let files =
        descriptor::decode_files(&[FILE_DESCRIPTOR_SET]).expect("the build encoded the set");
    let mut methods = BTreeMap::new();
    for file in &files {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package, service.name, method.name);
                let read = Method::read(&path, method.options.as_ref());
                let read = read.expect("every method has its options, which a test reads");
                methods.insert(read.path.clone(), read);
            }
        }
    }
    methods.extend(FOREIGN.map(|(path, need, class)| {
        let method = Method {
            path: path.into(),
            need,
            class,
            scans: false,
            audit: None,
        };
        (path.into(), method)
    }));
    methods
});

impl Method {
    fn read(path: &str, options: Option<&MethodOptions>) -> Option<Self> {
        let options = options?;
        let call = options.call.as_ref()?;
        let audit = call.audit.split_once(' ').map(|(action, what)| Audit {
            action: action.into(),
            what: what.into(),
        });
        Some(Self {
            path: path.into(),
            need: Permission::from_name(&options.role)?,
            class: Class::from_option(call.class())?,
            scans: call.scans,
            audit,
        })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn method_class_matches_streaming() {
        let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut count = 0;
        for file in &set.file {
            for service in &file.service {
                for described in &service.method {
                    let (package, service) = (file.package(), service.name());
                    let path = format!("/{package}.{service}/{}", described.name());
                    let streams = described.client_streaming() || described.server_streaming();
                    let row = find_method(&path).unwrap();
                    assert_eq!(row.class.is_streaming(), streams, "{path}");
                    count += 1;
                }
            }
        }
        assert_eq!(METHODS.len(), count + FOREIGN.len());
        assert_eq!(find_method("/bellwether.v1.ClientService/DropAll"), None);
    }

    fn methods_needing(needs: &[Permission]) -> Vec<&'static str> {
        let methods_needing = METHODS.values().filter(|it| needs.contains(&it.need));
        methods_needing.map(|it| &*it.path).collect()
    }

    #[test]
    fn public_and_admin_methods_are_as_listed() {
        let open = methods_needing(&[Permission::Nothing, Permission::Key]);
        let expected = [
            "/bellwether.v1.ClientService/GetCaller",
            "/bellwether.v1.HeartbeatService/BeatByKey",
            "/bellwether.v1.LinkService/Acknowledge",
            "/bellwether.v1.LinkService/OpenFeed",
            "/bellwether.v1.LinkService/OpenLink",
            "/bellwether.v1.SignInService/FinishSignIn",
            "/bellwether.v1.SignInService/GetSignIn",
            "/bellwether.v1.SignInService/StartSignIn",
            "/grpc.health.v1.Health/Check",
            "/grpc.health.v1.Health/Watch",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        ];
        assert_eq!(open, expected);
        let expected = [
            "/bellwether.v1.HeartbeatService/Beat",
            RECEIVE_WEBHOOK,
            EXPORT_LOGS,
            "/zenoss.cloud.DataReceiverService/PutEvent",
            PUT_EVENTS,
        ];
        assert_eq!(methods_needing(&[Permission::Ingest]), expected);
        let expected = [
            "/bellwether.v1.BackupService/ReadBackup",
            "/bellwether.v1.CheckService/CheckStore",
            "/bellwether.v1.ClientService/CreateClient",
            "/bellwether.v1.ClientService/ListClients",
            "/bellwether.v1.ClientService/RevokeClient",
            "/bellwether.v1.ClientService/RotateClientKey",
            "/bellwether.v1.ClientService/UpdateClient",
            "/bellwether.v1.SettingsService/SetQuiet",
            "/bellwether.v1.SettingsService/UpdateSettings",
        ];
        assert_eq!(methods_needing(&[Permission::Admin]), expected);
    }

    #[test]
    fn low_roles_have_no_change_methods() {
        let weak = [
            Permission::Nothing,
            Permission::Key,
            Permission::Ingest,
            Permission::Viewer,
        ];
        for method in METHODS.values().filter(|it| weak.contains(&it.need)) {
            let changes = method.class == Class::Change || method.audit.is_some();
            assert!(!changes, "{}", method.path);
        }
    }

    #[test]
    fn editor_and_admin_changes_are_audited() {
        for method in METHODS.values().filter(|it| it.class != Class::Read) {
            let is_weighty = matches!(method.need, Permission::Editor | Permission::Admin);
            assert!(!is_weighty || method.audit.is_some(), "{}", method.path);
        }
    }

    #[test]
    fn roles_are_ordered_and_ingest_is_separate() {
        let roles = [
            Role::Ingest,
            Role::Viewer,
            Role::Operator,
            Role::Editor,
            Role::Admin,
        ];
        let cases = [
            (Permission::Key, [true, true, true, true, true]),
            (Permission::Ingest, [true, false, false, false, true]),
            (Permission::Viewer, [false, true, true, true, true]),
            (Permission::Operator, [false, false, true, true, true]),
            (Permission::Editor, [false, false, false, true, true]),
            (Permission::Admin, [false, false, false, false, true]),
        ];
        for (need, allowed) in cases {
            assert_eq!(
                roles.map(|role| need.allows_role(role)),
                allowed,
                "{need:?}"
            );
        }
    }
}
