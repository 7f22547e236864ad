//! Lists of alerts and heartbeats.

use bellwether_proto::v1::{EventQuery, PageInput, SearchEventsRequest};
use http::StatusCode;
use percent_encoding::percent_decode_str;

use super::data_response;
use crate::dialect::{DialectError, IncomingRequest, Outcome, Success, Translation};

const LIST_USUAL: i32 = 20;
const LIST_MAX: i32 = 100;

/// Searches for events with this name, filtered by `status` and the words of the Opsgenie query.
/// `data` builds the `data` of the response.
#[expect(
    clippy::unnecessary_wraps,
    reason = "all paths share a fallible function type"
)]
pub(super) fn search_alerts(
    incoming: &IncomingRequest<'_>,
    name: &str,
    data: impl FnOnce(&Outcome) -> serde_json::Value + Send + 'static,
) -> Result<Translation, DialectError> {
    let find = |wanted: &str| {
        let mut pairs = incoming
            .query
            .split('&')
            .filter_map(|it| it.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == wanted)?;
        let value = value.replace('+', " ");
        Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
    };
    let mut filter = format!("name={name}");
    let query = find("query").unwrap_or_default().to_lowercase();
    let query = query.replace(": ", ":").replace('=', ":");
    for (word, statuses) in [("open", "open, suppressed"), ("closed", "closed")] {
        if query
            .split_whitespace()
            .any(|it| it == format!("status:{word}"))
        {
            filter += " status in (";
            filter += statuses;
            filter.push(')');
        }
    }
    let number = |wanted: &str| find(wanted).and_then(|it| it.parse().ok());
    let limit = number("limit").unwrap_or(LIST_USUAL).clamp(1, LIST_MAX);
    let request_id = incoming.fresh.to_owned();
    let success = Success::from_outcome(move |outcome| {
        data_response(StatusCode::OK, &data(outcome), outcome, &request_id)
    });
    Ok(Translation {
        search: Some(SearchEventsRequest {
            query: Some(EventQuery {
                filter,
                page_input: Some(PageInput {
                    limit,
                    ..PageInput::default()
                }),
                ..EventQuery::default()
            }),
        }),
        ..Translation::from_events(Vec::new(), success)
    })
}
