//! Entries of the audit log.

use prost::Message;
use sha2::{Digest, Sha256};

use super::{
    calendar::CalendarV1, client::ClientV1, destination::DestinationV1, inhibition::InhibitionV1,
    mapping::MappingV1, rule::RuleV1, silence::SilenceV1, trigger::TriggerV1, view::ViewV1,
};
use crate::{
    domain::{AuditAction, AuditEntry, AuditState},
    store::seal::Sealer,
};

/// What proofs of entries are for.
const PURPOSE: &str = "audit entry";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AuditV1 {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(int64, tag = "2")]
    time_ms: i64,
    #[prost(string, tag = "3")]
    client: String,
    #[prost(string, tag = "4")]
    address: String,
    #[prost(string, tag = "5")]
    method: String,
    #[prost(enumeration = "ActionV1", tag = "6")]
    action: i32,
    #[prost(string, tag = "7")]
    kind: String,
    #[prost(string, repeated, tag = "8")]
    names: Vec<String>,
    #[prost(uint32, tag = "9")]
    count: u32,
    #[prost(message, optional, tag = "10")]
    before: Option<StateV1>,
    #[prost(message, optional, tag = "11")]
    after: Option<StateV1>,
    #[prost(string, repeated, tag = "12")]
    changed_secrets: Vec<String>,
    #[prost(string, tag = "13")]
    reason: String,
    #[prost(bytes = "vec", tag = "14")]
    previous: Vec<u8>,
    /// Over all fields but this one and the next.
    #[prost(bytes = "vec", tag = "15")]
    hash: Vec<u8>,
    /// Over the hash, with the key that was the newest then.
    #[prost(bytes = "vec", tag = "16")]
    proof: Vec<u8>,
}

/// Exactly one of them is there.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StateV1 {
    #[prost(message, optional, tag = "1")]
    trigger: Option<TriggerV1>,
    #[prost(message, optional, tag = "2")]
    destination: Option<DestinationV1>,
    #[prost(message, optional, tag = "3")]
    rule: Option<RuleV1>,
    #[prost(message, optional, tag = "4")]
    silence: Option<SilenceV1>,
    #[prost(message, optional, tag = "5")]
    client: Option<ClientV1>,
    #[prost(message, optional, tag = "6")]
    calendar: Option<CalendarV1>,
    #[prost(message, optional, tag = "7")]
    inhibition: Option<InhibitionV1>,
    #[prost(message, optional, tag = "8")]
    mapping: Option<MappingV1>,
    #[prost(message, optional, tag = "9")]
    view: Option<ViewV1>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum ActionV1 {
    Unknown = 0,
    Created = 1,
    Updated = 2,
    Deleted = 3,
    Read = 4,
    Refused = 5,
}

impl From<&AuditState> for StateV1 {
    fn from(state: &AuditState) -> Self {
        let mut record = Self::default();
        match state {
            AuditState::Trigger(trigger) => record.trigger = Some(trigger.into()),
            AuditState::Destination(destination) => {
                record.destination = Some(DestinationV1::without_secrets(destination));
            }
            AuditState::Rule(rule) => record.rule = Some(rule.into()),
            AuditState::Silence(silence) => record.silence = Some(silence.into()),
            AuditState::Mapping(mapping) => {
                record.mapping = Some(MappingV1::without_secrets(mapping));
            }
            AuditState::View(view) => record.view = Some(view.into()),
            AuditState::Calendar(calendar) => record.calendar = Some(calendar.into()),
            AuditState::Inhibition(inhibition) => record.inhibition = Some(inhibition.into()),
            AuditState::Client(client) => record.client = Some(ClientV1::without_key(client)),
        }
        record
    }
}

impl StateV1 {
    fn into_state(self) -> Option<AuditState> {
        Some(match self {
            Self {
                trigger: Some(it), ..
            } => AuditState::Trigger(it.into_trigger()?),
            Self {
                destination: Some(it),
                ..
            } => AuditState::Destination(it.into_bare_destination()?),
            Self { rule: Some(it), .. } => AuditState::Rule(it.into_rule()?),
            Self {
                silence: Some(it), ..
            } => AuditState::Silence(it.into_silence()?),
            Self {
                client: Some(it), ..
            } => AuditState::Client(it.into_bare_client()?),
            Self { view: Some(it), .. } => AuditState::View(it.into_view()?),
            Self {
                calendar: Some(it), ..
            } => AuditState::Calendar(it.into_calendar()?),
            Self {
                inhibition: Some(it),
                ..
            } => AuditState::Inhibition(it.into_inhibition()?),
            Self {
                mapping: Some(it), ..
            } => AuditState::Mapping(it.into_bare_mapping()?),
            _ => return None,
        })
    }
}

impl AuditV1 {
    pub(crate) fn new(entry: &AuditEntry, sealer: &Sealer) -> Self {
        let mut record = Self::unproven(entry);
        record.hash = entry.hash.into();
        record.proof = sealer.prove(PURPOSE, &[&entry.hash]).into();
        record
    }

    fn unproven(entry: &AuditEntry) -> Self {
        let action = match entry.action {
            AuditAction::Created => ActionV1::Created,
            AuditAction::Updated => ActionV1::Updated,
            AuditAction::Deleted => ActionV1::Deleted,
            AuditAction::Read => ActionV1::Read,
            AuditAction::Refused => ActionV1::Refused,
        };
        Self {
            number: entry.number,
            time_ms: entry.time_ms,
            client: entry.client.clone(),
            address: entry.address.map_or_else(String::new, |it| it.to_string()),
            method: entry.method.clone(),
            action: action.into(),
            kind: entry.kind.clone(),
            names: entry.names.clone(),
            count: entry.count,
            before: entry.before.as_ref().map(Into::into),
            after: entry.after.as_ref().map(Into::into),
            changed_secrets: entry.changed_secrets.clone(),
            reason: entry.reason.clone(),
            previous: entry.previous.into(),
            hash: Vec::new(),
            proof: Vec::new(),
        }
    }

    /// The entry; none when it is not what its hash was built from.
    pub(crate) fn into_entry(mut self, sealer: &Sealer) -> Option<AuditEntry> {
        let hash: [u8; 32] = std::mem::take(&mut self.hash).try_into().ok()?;
        let proof = std::mem::take(&mut self.proof);
        if hash_of(&self) != hash {
            return None;
        }
        let action = match ActionV1::try_from(self.action).ok()? {
            ActionV1::Unknown => return None,
            ActionV1::Created => AuditAction::Created,
            ActionV1::Updated => AuditAction::Updated,
            ActionV1::Deleted => AuditAction::Deleted,
            ActionV1::Read => AuditAction::Read,
            ActionV1::Refused => AuditAction::Refused,
        };
        let state = |state: Option<StateV1>| match state {
            None => Some(None),
            Some(state) => state.into_state().map(Some),
        };
        Some(AuditEntry {
            number: self.number,
            time_ms: self.time_ms,
            client: self.client,
            address: self.address.parse().ok(),
            method: self.method,
            action,
            kind: self.kind,
            names: self.names,
            count: self.count,
            before: state(self.before)?,
            after: state(self.after)?,
            changed_secrets: self.changed_secrets,
            reason: self.reason,
            previous: self.previous.try_into().ok()?,
            hash,
            is_proven: sealer.is_proven(PURPOSE, &[&hash], &proof),
        })
    }
}

fn hash_of(record: &AuditV1) -> [u8; 32] {
    Sha256::digest(record.encode_to_vec()).into()
}

/// The entry with its place in the chain, after the one with that hash.
pub(crate) fn chained(entry: AuditEntry, number: u64, previous: [u8; 32]) -> AuditEntry {
    let entry = AuditEntry {
        number,
        previous,
        ..entry
    };
    let hash = hash_of(&AuditV1::unproven(&entry));
    AuditEntry { hash, ..entry }
}
