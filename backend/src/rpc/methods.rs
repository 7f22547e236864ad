//! Every method that is served: one row shows who may call it, what it takes, and what is written
//! down of it.

use crate::domain::Role;

/// Takes events in.
pub const PUT_EVENTS: &str = "/zenoss.cloud.DataReceiverService/PutEvents";
/// Takes log records of OpenTelemetry in.
pub const EXPORT_LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

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

impl Audit {
    /// Whether it is about what is read and not changed.
    pub fn reads(self) -> bool {
        self.action == "read"
    }
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

/// What a call takes of the service: each class has a separate capacity, so that a flood of one
/// leaves the others served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Asks whether the service lives: always answered.
    Probe,
    /// Brings events.
    Intake,
    /// Reads little.
    Read,
    /// Reads what may be large.
    Page,
    /// Changes something, or makes the service do something.
    Change,
    /// Follows what changes, for as long as the caller wants.
    Watch,
    /// Another stream, for as long as the caller wants.
    Stream,
    /// Follows whether the service lives, which needs no key.
    HealthWatch,
}

impl Class {
    /// Whether a call continues for as long as the caller wants: no time limit ends it.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::Watch | Self::Stream | Self::HealthWatch)
    }
}

/// What is written down of a call that was carried out: a line in the log of the process, and entries of
/// the audit log in the commits that it makes. One that only reads everything has its entry before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audit {
    /// What was done.
    pub action: &'static str,
    /// To what kind of thing.
    pub what: &'static str,
}

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// What its caller needs.
    pub need: Need,
    /// What a call takes.
    pub class: Class,
    /// Whether a call may look at many records, or at one in many ways: it is done on separate
    /// threads.
    pub scans: bool,
    /// What is written down of it; none for what changes no definition.
    pub audit: Option<Audit>,
}

/// The method of a path; none when there is no such method.
pub fn method(path: &str) -> Option<&'static Method> {
    let at = METHODS.binary_search_by_key(&path, |method| method.path);
    Some(&METHODS[at.ok()?])
}

/// The names of all services, in order.
pub fn services() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    METHODS.iter().filter_map(move |method| {
        let (service, _) = method.path.strip_prefix('/')?.split_once('/')?;
        (service != std::mem::replace(&mut last, service)).then_some(service)
    })
}

macro_rules! methods {
    ($($service:literal {
        $($name:ident: $need:ident $class:ident $($scan:ident)? $(, $action:ident $what:ident)?;)*
    })*) => {
        &[$($(Method {
            path: concat!("/", $service, "/", stringify!($name)),
            need: Need::$need,
            class: Class::$class,
            scans: scans!($($scan)?),
            audit: audit!($($action $what)?),
        },)*)*]
    };
}

macro_rules! scans {
    () => {
        false
    };
    (scan) => {
        true
    };
}

macro_rules! audit {
    () => {
        None
    };
    ($action:ident $what:ident) => {
        Some(Audit {
            action: stringify!($action),
            what: stringify!($what),
        })
    };
}

/// Every method, by path.
pub static METHODS: &[Method] = methods! {
    "bellwether.v1.AuditService" {
        ListAuditEntries: Operator Page scan;
    }
    "bellwether.v1.BackupService" {
        ReadBackup: Admin Stream, read backup;
    }
    "bellwether.v1.CalendarService" {
        CreateCalendar: Editor Change, create calendar;
        DeleteCalendar: Editor Change, delete calendar;
        ExpandCalendar: Viewer Page scan;
        GetCalendar: Viewer Read;
        ListCalendars: Viewer Page;
        PreviewCalendar: Viewer Page scan;
        UpdateCalendar: Editor Change, update calendar;
    }
    "bellwether.v1.CheckService" {
        CheckStore: Admin Stream, read check;
    }
    "bellwether.v1.ClientService" {
        CreateClient: Admin Change, create client;
        GetCaller: Key Read;
        ListClients: Admin Read;
        RevokeClient: Admin Change, revoke client;
        RotateClientKey: Admin Change, rotate client;
        UpdateClient: Admin Change, update client;
    }
    "bellwether.v1.ConfigService" {
        ApplyConfig: Editor Change scan, apply config;
        PreviewImpact: Viewer Page scan;
    }
    "bellwether.v1.DeliveryService" {
        CancelDeliveries: Operator Change scan, cancel deliveries;
        CancelDelivery: Operator Change, cancel delivery;
        GetDelivery: Viewer Read;
        ListDeliveries: Viewer Page scan;
        ListObligations: Viewer Read scan;
        RetryDeliveries: Operator Change scan, retry deliveries;
        RetryDelivery: Operator Change, retry delivery;
    }
    "bellwether.v1.DestinationService" {
        CreateDestination: Editor Change, create destination;
        DeleteDestination: Editor Change, delete destination;
        GetDestination: Viewer Read;
        ListDestinations: Viewer Page;
        PauseDestination: Operator Change, pause destination;
        ResumeDestination: Operator Change, resume destination;
        TestDestination: Operator Change, test destination;
        UpdateDestination: Editor Change, update destination;
    }
    "bellwether.v1.EventManagementService" {
        Annotate: Operator Change, annotate occurrence;
        SetStatus: Operator Change, set status;
    }
    "bellwether.v1.EventQueryService" {
        CountEvents: Viewer Read scan;
        EventFrequency: Viewer Read scan;
        ExplainEvent: Viewer Page scan;
        GetEvent: Viewer Read;
        GroupEvents: Viewer Read scan;
        RouteEvents: Viewer Page scan;
        SearchEvents: Viewer Page scan;
        WatchEvents: Viewer Watch scan;
    }
    "bellwether.v1.GroupService" {
        GetGroup: Viewer Page scan;
        ListGroups: Viewer Page scan;
        SetGroupStatus: Operator Change, set group;
    }
    "bellwether.v1.InhibitionService" {
        CreateInhibition: Editor Change scan, create inhibition;
        DeleteInhibition: Editor Change, delete inhibition;
        GetInhibition: Viewer Read;
        ListInhibitions: Viewer Page;
        PreviewInhibition: Viewer Page scan;
        UpdateInhibition: Editor Change scan, update inhibition;
    }
    "bellwether.v1.IntakeMappingService" {
        CreateIntakeMapping: Editor Change, create mapping;
        DeleteIntakeMapping: Editor Change, delete mapping;
        GetIntakeMapping: Viewer Read;
        ListIntakeMappings: Viewer Page;
        ReceiveWebhook: Ingest Intake;
        TestIntakeMapping: Operator Page scan;
        UpdateIntakeMapping: Editor Change, update mapping;
    }
    "bellwether.v1.LinkService" {
        OpenLink: Nothing Page scan;
    }
    "bellwether.v1.OverviewService" {
        GetOverview: Viewer Read;
        GetStatistics: Viewer Page scan;
    }
    "bellwether.v1.PendingService" {
        ListPending: Viewer Page scan;
        ReleasePending: Operator Change scan, release pending;
    }
    "bellwether.v1.RuleService" {
        CreateRule: Editor Change scan, create rule;
        DeleteRule: Editor Change, delete rule;
        GetRule: Viewer Read;
        ListRules: Viewer Page;
        PreviewRule: Viewer Page scan;
        UpdateRule: Editor Change scan, update rule;
    }
    "bellwether.v1.SignInService" {
        FinishSignIn: Nothing Read;
        GetSignIn: Nothing Read;
        StartSignIn: Nothing Read;
    }
    "bellwether.v1.SilenceService" {
        CommentSilence: Operator Change scan, comment silence;
        CreateSilence: Operator Change scan, create silence;
        DeleteSilence: Operator Change, delete silence;
        ExpireSilence: Operator Change scan, expire silence;
        ExtendSilence: Operator Change scan, extend silence;
        GetSilence: Viewer Read scan;
        ListSilences: Viewer Page scan;
        PreviewSilence: Viewer Page scan;
        UpdateSilence: Operator Change scan, update silence;
    }
    "bellwether.v1.TriggerService" {
        CreateTrigger: Editor Change scan, create trigger;
        DeleteTrigger: Editor Change, delete trigger;
        GetTrigger: Viewer Read;
        ListTriggers: Viewer Page;
        TestTrigger: Operator Change scan;
        TestTriggerWithProgress: Operator Stream scan;
        UpdateTrigger: Editor Change scan, update trigger;
    }
    "bellwether.v1.ViewService" {
        CreateView: Operator Change, create view;
        DeleteView: Operator Change, delete view;
        GetView: Viewer Read;
        ListViews: Viewer Page;
        UpdateView: Operator Change, update view;
    }
    "grpc.health.v1.Health" {
        Check: Nothing Probe;
        Watch: Nothing HealthWatch;
    }
    // What a service offers is reported to those who may use it.
    "grpc.reflection.v1.ServerReflection" {
        ServerReflectionInfo: Key Stream;
    }
    "grpc.reflection.v1alpha.ServerReflection" {
        ServerReflectionInfo: Key Stream;
    }
    "opentelemetry.proto.collector.logs.v1.LogsService" {
        Export: Ingest Intake;
    }
    "zenoss.cloud.DataReceiverService" {
        PutEvent: Ingest Stream;
        PutEvents: Ingest Intake;
    }
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_the_interface_has_a_row_that_knows_whether_it_streams_and_no_other_has() {
        let set = FileDescriptorSet::decode(bellwether_proto::FILE_DESCRIPTOR_SET).unwrap();
        let mut described = BTreeMap::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let (package, service) = (file.package(), service.name());
                    let path = format!("/{package}.{service}/{}", method.name());
                    let streams = method.client_streaming() || method.server_streaming();
                    described.insert(path, streams);
                }
            }
        }
        let served = METHODS
            .iter()
            .filter(|method| !method.path.starts_with("/grpc."))
            .filter(|method| method.path != EXPORT_LOGS)
            .map(|method| (method.path.to_owned(), method.class.is_streaming()));
        assert_eq!(served.collect::<BTreeMap<_, _>>(), described);
    }

    #[test]
    fn the_table_is_sorted_so_that_every_method_is_found() {
        assert!(METHODS.is_sorted_by_key(|method| method.path));
        for row in METHODS {
            assert_eq!(method(row.path), Some(row));
        }
        assert_eq!(method("/bellwether.v1.ClientService/DropAll"), None);
    }

    #[test]
    fn what_needs_the_role_of_an_editor_or_more_is_written_down() {
        for method in METHODS.iter().filter(|method| method.class != Class::Read) {
            let is_weighty = matches!(method.need, Need::Editor | Need::Admin);
            assert!(!is_weighty || method.audit.is_some(), "{}", method.path);
        }
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
