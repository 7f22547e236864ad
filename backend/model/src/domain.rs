//! The domain types. They cannot hold invalid values, and are independent of I/O, clocks, wire and
//! disk formats.

pub mod any_resource;
pub mod audit;
pub mod calendar;
pub mod client;
pub mod contact;
pub mod counter;
pub mod delivery;
pub mod destination;
pub mod digest;
pub mod drill;
pub mod enrichment;
pub mod escalation;
pub mod event;
mod event_id;
pub mod flapping;
pub mod group;
pub mod heartbeat;
pub mod hold;
pub mod inhibition;
pub mod intake_mapping;
pub mod name;
pub mod noise;
pub mod occurrence;
pub mod own_event;
pub mod query;
pub mod receipt;
pub mod record_id;
pub mod report;
pub mod response;
pub mod revision;
pub mod rule;
pub mod saved_view;
pub mod schedule;
pub mod settings;
pub mod silence;
pub mod sort_field;
pub mod template_language;
pub mod trace;
pub mod trigger;
pub mod value;
mod waits;

pub use crate::secret::{self, Secret};
pub use any_resource::AnyResource;
pub use audit::{AuditAction, AuditEntry};
pub use calendar::Calendar;
pub use client::{CertificateName, Client, Dialect, KeyScope, PreviousKey, Rates, Role};
pub use contact::{Contact, ContactMethod};
pub use delivery::{Attempt, Content, Delivery, DeliveryState, Outcome, ThreadState, Transcript};
pub use destination::{DeliverySettings, Destination, DestinationKind, Health, HealthState};
pub use digest::{
    Budget, BudgetWindow, DigestContent, DigestId, DigestItem, DigestMembership, DigestRow,
};
pub use drill::{Drill, DrillEvent, DrillResult, DrillRun};
pub use enrichment::EnrichmentTable;
pub use escalation::{EscalationPlan, EscalationPolicy, EscalationStep, EscalationTarget};
pub use event::{
    IncomingEvent, OccurrenceId, OwnEvent, Severity, Status, claims_own_event, has_own_source,
    is_reserved_key,
};
pub use event_id::{EventId, NO_EVENT_ID};
pub use flapping::{Flapping, FlappingLimits, ThreadOrigin};
pub use group::{Group, GroupContent, GroupId, GroupKey, MemberChange, names_all_members};
pub use heartbeat::{Expectation, ExpectationState, Heartbeat, HeartbeatEvent, OpenAlarm};
pub use hold::{GroupRef, HeldBy, HoldChange, HoldKind, HoldOutcome, LastNotified, Pending};
pub use inhibition::{CauseMark, EqualFields, Inhibition};
pub use intake_mapping::{
    Handshake, IntakeMapping, MappedEvent, MappedResponse, MappedSeverity, MappedThread,
    SignatureScheme, WebhookSignature,
};
pub use name::Name;
pub use occurrence::{
    Annotation, Close, CloseReason, EarlierOccurrence, Evaluation, Field, HistoryEntry, Notified,
    Occurrence, Opening,
};
pub use query::{Clause, Literal, Query};
pub use receipt::{Receipt, Refusal};
pub use record_id::RecordId;
pub use report::{Report, Reporter, Reports};
pub use response::{
    PagedContact, PagedMethod, PagedReceiver, QueuedMethod, Response, ResponseHold, ResponseState,
};
pub use revision::{RevisedResource, Revision, RevisionId, RevisionKind};
pub use rule::{Grouping, Rule};
pub use saved_view::SavedView;
pub use schedule::Schedule;
pub use settings::{NO_SNIPPETS, SettingDifference, Settings, SharedSettings, Snippets};
pub use silence::{Comment, Progress, Silence, SilenceState, Stage};
pub use sort_field::SortField;
pub use template_language::TemplateLanguage;
pub use trace::TraceContext;
pub use trigger::Trigger;
pub use value::Value;
pub use waits::Shift;
