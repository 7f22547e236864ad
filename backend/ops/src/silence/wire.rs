//! Conversion of silences.

use bellwether_language::filter;
use bellwether_proto::v1;

use super::{
    Extension, QUERY_PATH, SilenceDraft, SilenceFilter, SilencePreview, SilenceView,
    silence_event_id,
};
use crate::{
    domain::{Comment, EventId, NO_EVENT_ID, Name, Silence, SilenceState},
    error::{Error, Violation},
    etag::compute_etag,
    from_domain::FromDomain,
    page::PageRequest,
    resource::Filter,
    validate::Violations,
    wire::{
        event, query,
        time::{self, timestamp},
        to_i32,
    },
};

const FILTER_PATH: &str = "filter";

pub fn draft_from_wire(wire: v1::Silence, editor: Name) -> SilenceDraft {
    let mut violations = Vec::new();
    let query = (wire.query, wire.filter.as_str());
    let query = query::query_or_filter(query, (QUERY_PATH, FILTER_PATH), &mut violations);
    let from_event = EventId::parse(&wire.from_event_id);
    if from_event.is_none() && !wire.from_event_id.is_empty() {
        violations.push(Violation::new("fromEventId", NO_EVENT_ID));
    }
    let (start, end, calendar) = match (wire.span, wire.calendar) {
        (Some(_), Some(_)) => {
            let message = "conflicts with `span`; set only one of them";
            violations.push(Violation::new("calendar", message));
            (None, None, String::new())
        }
        (None, Some(bounds)) => {
            if bounds.calendar_name.is_empty() {
                let message = "is required: the name of a calendar";
                violations.push(Violation::new("calendar.calendarName", message));
            }
            (bounds.start_time, bounds.end_time, bounds.calendar_name)
        }
        (span, None) => {
            let span = span.unwrap_or_default();
            (span.start_time, span.end_time, String::new())
        }
    };
    SilenceDraft {
        name: wire.name,
        description: wire.description,
        tags: wire.tags,
        reason: wire.reason,
        query,
        rule_names: wire.rule_names,
        destination_names: wire.destination_names,
        annotations: wire.annotations,
        calendar,
        start_ms: start.as_ref().map(time::to_millis),
        end_ms: end.as_ref().map(time::to_millis),
        expire_when_idle_ms: wire.expire_when_idle.as_ref().map(time::duration_to_ms),
        warn_before_ms: wire.warn_before.as_ref().map(time::duration_to_ms),
        from_event,
        editor,
        etag: wire.etag,
        violations,
    }
}

pub fn list(wire: v1::ListSilencesRequest) -> Result<(SilenceFilter, PageRequest), Error> {
    use v1::silence::State;
    let mut violations = Violations::default();
    let state = |state| match state {
        State::Scheduled => Some(SilenceState::Scheduled),
        State::Active => Some(SilenceState::Active),
        State::Expired => Some(SilenceState::Expired),
        State::Unspecified => None,
    };
    let expected = "SCHEDULED, ACTIVE and EXPIRED";
    let states = violations.convert_each("states", &wire.states, expected, state);
    let event = violations.optional_event("eventId", &wire.event_id);
    violations.finish()?;
    let shown = states.iter().map(|state| format!("{state:?}"));
    let named = Filter {
        names: wire.names,
        tags: wire.tags,
        text: wire.q,
        others: shown.chain(event.map(|it| it.to_string())).collect(),
    };
    let filter = SilenceFilter {
        named,
        states,
        event,
    };
    let page = PageRequest {
        size: wire.page_size,
        token: wire.page_token,
    };
    Ok((filter, page))
}

/// Converts the extension of a silence.
///
/// # Errors
/// Returns [`Error::Invalid`] unless exactly one form is set.
pub fn extension(wire: &v1::ExtendSilenceRequest) -> Result<Extension, Error> {
    match (&wire.duration, &wire.end_time) {
        (Some(duration), None) => Ok(Extension::By(time::duration_to_ms(duration))),
        (None, Some(end)) => Ok(Extension::To(time::to_millis(end))),
        (None, None) => Err(Error::invalid(
            "duration",
            "is required unless `endTime` is set",
        )),
        (Some(_), Some(_)) => Err(Error::invalid(
            "endTime",
            "conflicts with `duration`; set only one of them",
        )),
    }
}

impl FromDomain<Silence> for v1::Silence {
    fn from_domain(silence: Silence) -> Self {
        SilenceView::from_domain(silence).into()
    }
}

impl From<SilenceView> for v1::Silence {
    fn from(view: SilenceView) -> Self {
        let silence = view.silence;
        let begins = Some(timestamp(silence.start_ms));
        let has_begun = view.state != SilenceState::Scheduled || silence.calendar.is_some();
        let ends = silence.ends_ms().map(timestamp);
        let clause = silence.query.as_ref().map(|it| &it.clause);
        Self {
            name: silence.name.to_string(),
            description: silence.description,
            tags: silence.tags,
            reason: silence.reason,
            filter: clause.map(filter::print_clause).unwrap_or_default(),
            query: silence.query.as_ref().map(query::to_wire),
            rule_names: silence.rule_names.iter().map(ToString::to_string).collect(),
            destination_names: silence
                .destination_names
                .iter()
                .map(ToString::to_string)
                .collect(),
            annotations: silence.annotations,
            span: silence.calendar.is_none().then_some(v1::SilenceSpan {
                start_time: begins,
                end_time: ends,
            }),
            calendar: silence.calendar.as_ref().map(|name| v1::SilenceCalendar {
                calendar_name: name.to_string(),
                start_time: begins,
                end_time: ends,
            }),
            expire_when_idle: silence.expire_when_idle_ms.map(time::duration_from_ms),
            warn_before: silence.warn_before_ms.map(time::duration_from_ms),
            from_event_id: silence
                .from_event
                .map(|it| it.to_string())
                .unwrap_or_default(),
            state: view.state as i32,
            started_time: begins.filter(|_| has_begun),
            ends_time: view.ends_ms.map(timestamp),
            next_start_time: view.begins_ms.map(timestamp),
            author: silence.author.to_string(),
            last_editor: silence.last_editor.to_string(),
            comments: silence.comments.into_iter().map(comment).collect(),
            covered_count: Some(to_i32(view.covered)),
            pending_count: Some(to_i32(view.pending)),
            skipped_count: Some(to_i32(view.skipped)),
            event_id: silence_event_id(&silence.name).to_string(),
            create_time: Some(timestamp(silence.create_ms)),
            update_time: Some(timestamp(silence.update_ms)),
            etag: compute_etag(silence.id, silence.revision),
        }
    }
}

fn comment(comment: Comment) -> v1::SilenceComment {
    v1::SilenceComment {
        author: comment.author.to_string(),
        time: Some(timestamp(comment.at_ms)),
        text: comment.text,
    }
}

pub fn preview(preview: SilencePreview) -> v1::PreviewSilenceResponse {
    let warnings = preview.too_broad.iter().cloned();
    v1::PreviewSilenceResponse {
        covered_count: Some(to_i32(preview.covered_count)),
        open_count: Some(to_i32(preview.open_count)),
        covered: preview
            .covered
            .into_iter()
            .map(event::event_with_one_occurrence)
            .collect(),
        pending_count: Some(to_i32(preview.pending_count)),
        last_days: Some(preview.messages),
        too_broad: preview.too_broad.is_some(),
        warnings: warnings.chain(preview.warnings).collect(),
        stopped_early: preview.stopped_early,
        filter: preview
            .query
            .as_ref()
            .map(|it| filter::print_clause(&it.clause))
            .unwrap_or_default(),
    }
}
