//! Silences.

use super::{
    occurrence::record_id,
    query::ClauseV1,
    rule::{names, optional_name, texts},
};
use crate::domain::{Comment, EventId, Flexible, Name, Progress, Silence, Stage};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SilenceV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(message, optional, tag = "6")]
    clause: Option<ClauseV1>,
    #[prost(string, repeated, tag = "7")]
    rule_names: Vec<String>,
    #[prost(int64, tag = "8")]
    start_ms: i64,
    #[prost(int64, tag = "9")]
    end_ms: i64,
    #[prost(int64, optional, tag = "10")]
    expire_when_idle_ms: Option<i64>,
    #[prost(int64, optional, tag = "11")]
    warn_before_ms: Option<i64>,
    #[prost(message, repeated, tag = "12")]
    comments: Vec<CommentV1>,
    #[prost(bytes = "vec", optional, tag = "13")]
    from_event: Option<Vec<u8>>,
    #[prost(string, tag = "14")]
    author: String,
    #[prost(string, tag = "15")]
    last_editor: String,
    /// The number of a `Stage`.
    #[prost(uint32, tag = "16")]
    stage: u32,
    #[prost(uint64, tag = "17")]
    counted_revision: u64,
    #[prost(bool, tag = "18")]
    has_covered: bool,
    #[prost(int64, optional, tag = "19")]
    idle_since_ms: Option<i64>,
    #[prost(uint64, tag = "20")]
    revision: u64,
    #[prost(int64, tag = "21")]
    create_ms: i64,
    #[prost(int64, tag = "22")]
    update_ms: i64,
    #[prost(string, optional, tag = "23")]
    calendar: Option<String>,
    #[prost(message, optional, tag = "24")]
    flexible: Option<FlexibleV1>,
    #[prost(bool, tag = "25")]
    has_begun: bool,
}

#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct FlexibleV1 {
    #[prost(int64, tag = "1")]
    start_ms: i64,
    #[prost(int64, tag = "2")]
    end_ms: i64,
    #[prost(int64, tag = "3")]
    duration_ms: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CommentV1 {
    #[prost(string, tag = "1")]
    author: String,
    #[prost(int64, tag = "2")]
    at_ms: i64,
    #[prost(string, tag = "3")]
    text: String,
}

impl From<&Silence> for SilenceV1 {
    fn from(silence: &Silence) -> Self {
        let comment = |it: &Comment| CommentV1 {
            author: it.author.to_string(),
            at_ms: it.at_ms,
            text: it.text.clone(),
        };
        Self {
            id: silence.id.to_bytes().into(),
            name: silence.name.to_string(),
            description: silence.description.clone(),
            tags: silence.tags.clone(),
            reason: silence.reason.clone(),
            clause: silence.query.as_ref().map(ClauseV1::from),
            rule_names: texts(&silence.rule_names),
            start_ms: silence.start_ms,
            end_ms: silence.end_ms,
            expire_when_idle_ms: silence.expire_when_idle_ms,
            warn_before_ms: silence.warn_before_ms,
            comments: silence.comments.iter().map(comment).collect(),
            from_event: silence.from_event.map(|it| it.to_bytes().into()),
            author: silence.author.to_string(),
            last_editor: silence.last_editor.to_string(),
            stage: silence.progress.stage as u32,
            counted_revision: silence.progress.counted_revision,
            has_covered: silence.progress.has_covered,
            idle_since_ms: silence.progress.idle_since_ms,
            revision: silence.revision,
            create_ms: silence.create_ms,
            update_ms: silence.update_ms,
            calendar: silence.calendar.as_ref().map(ToString::to_string),
            flexible: silence.flexible.map(|it| FlexibleV1 {
                start_ms: it.start_ms,
                end_ms: it.end_ms,
                duration_ms: it.duration_ms,
            }),
            has_begun: silence.progress.has_begun,
        }
    }
}

impl SilenceV1 {
    pub(crate) fn into_silence(self) -> Option<Silence> {
        let comment = |it: CommentV1| {
            Some(Comment {
                author: Name::parse(&it.author).ok()?,
                at_ms: it.at_ms,
                text: it.text,
            })
        };
        let mut stages = Stage::ALL.into_iter();
        Some(Silence {
            id: record_id(self.id)?,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            reason: self.reason,
            query: match self.clause {
                None => None,
                Some(clause) => Some(clause.into_query()?),
            },
            rule_names: names(&self.rule_names)?,
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            expire_when_idle_ms: self.expire_when_idle_ms,
            warn_before_ms: self.warn_before_ms,
            comments: self
                .comments
                .into_iter()
                .map(comment)
                .collect::<Option<_>>()?,
            from_event: match self.from_event {
                None => None,
                Some(bytes) => Some(EventId::from_bytes(bytes.try_into().ok()?)),
            },
            author: Name::parse(&self.author).ok()?,
            last_editor: Name::parse(&self.last_editor).ok()?,
            progress: Progress {
                stage: stages.find(|stage| *stage as u32 == self.stage)?,
                counted_revision: self.counted_revision,
                has_covered: self.has_covered,
                idle_since_ms: self.idle_since_ms,
                has_begun: self.has_begun,
            },
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
            calendar: optional_name(self.calendar.as_deref()).ok()?,
            flexible: self.flexible.map(|it| Flexible {
                start_ms: it.start_ms,
                end_ms: it.end_ms,
                duration_ms: it.duration_ms,
            }),
        })
    }
}
