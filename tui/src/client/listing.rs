//! The items of a screen, as JSON like that of REST.

use bellwether_proto::json;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::{carrier::Transport, failure::malformed_response, keys::Keys, link};
use crate::{
    data::{Failure, FailureKind, Kind},
    kind,
    options::Options,
};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: i32 = 1_000;
const ROWS_MAX: usize = 100_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("screen `{screen}` has no list; use one of {names}")]
    Unknown { screen: String, names: String },
    #[error("{0}")]
    Unreachable(String),
    /// The key is rejected, or its role is insufficient.
    #[error("{0}")]
    NotAllowed(String),
    #[error("{0}")]
    Failed(String),
}

struct List {
    screen: &'static str,
    service: &'static str,
    method: &'static str,
    rows: &'static str,
}

fn all_lists() -> Vec<List> {
    let mut lists = vec![
        list("overview", "OverviewService", "GetOverview", ""),
        list("events", "EventQueryService", "SearchEvents", "results"),
        list(
            "deliveries",
            "DeliveryService",
            "ListDeliveries",
            "deliveries",
        ),
    ];
    lists.extend(Kind::ALL.iter().map(|kind| {
        let spec = kind::spec(*kind);
        list(kind.plural(), spec.service, spec.list, kind.plural())
    }));
    lists
}

fn list(
    screen: &'static str,
    service: &'static str,
    method: &'static str,
    rows: &'static str,
) -> List {
    List {
        screen,
        service,
        method,
        rows,
    }
}

/// Reads the items of a screen, as one line of JSON with the field names of REST. For events, these
/// are the open and suppressed ones, newest first, as the screen shows initially.
pub fn read_list_json(
    mut options: Options,
    screen: &str,
) -> BoxFuture<'_, Result<String, ListError>> {
    Box::pin(async move {
        let lists = all_lists();
        let found = lists
            .iter()
            .find(|list| list.screen.eq_ignore_ascii_case(screen));
        let Some(list) = found else {
            let names: Vec<_> = lists.iter().map(|list| list.screen).collect();
            return Err(ListError::Unknown {
                screen: screen.to_owned(),
                names: names.join(", "),
            });
        };
        let reading = async {
            let keys = Keys::from_options(&mut options);
            let (carrier, _caller) = link::connect(options.endpoint, keys).await?;
            let mut reach = Transport::from_carrier(carrier);
            reach.limit = PATIENCE;
            read_items(&mut reach, list).await
        };
        match timeout(PATIENCE, reading).await {
            Ok(Ok(json)) => canonical_json(list, &json).map_err(|failure| list_error(&failure)),
            Ok(Err(failure)) => Err(list_error(&failure)),
            Err(_elapsed) => Err(ListError::Unreachable("no response in time".to_owned())),
        }
    })
}

fn canonical_json(list: &List, json: &Value) -> Result<String, Failure> {
    let name = format!("bellwether.v1.{}Response", list.method);
    let wire = json::wire_from_json(&name, json.to_string().as_bytes());
    let text = wire.and_then(|wire| json::wire_to_json(&name, &wire));
    let text = text.map_err(|error| malformed_response(&error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn list_error(failure: &Failure) -> ListError {
    let sentence = failure.sentence();
    match failure.kind {
        FailureKind::Unreachable | FailureKind::TimedOut => ListError::Unreachable(sentence),
        FailureKind::Unauthenticated | FailureKind::NotSignedIn | FailureKind::Denied => {
            ListError::NotAllowed(sentence)
        }
        _ => ListError::Failed(sentence),
    }
}

async fn read_items(reach: &mut Transport, list: &List) -> Result<Value, Failure> {
    if list.rows.is_empty() {
        return reach
            .request_json(list.service, list.method, &json!({}))
            .await;
    }
    let is_search = list.rows == "results";
    let mut token = String::new();
    let mut whole: Option<Value> = None;
    loop {
        let request = if is_search {
            let page = json!({"limit": PAGE, "cursor": token});
            json!({"query": {"statuses": ["STATUS_OPEN", "STATUS_SUPPRESSED"], "pageInput": page}})
        } else {
            json!({"pageSize": PAGE, "pageToken": token})
        };
        let mut page = reach
            .request_json(list.service, list.method, &request)
            .await?;
        token = next(&page, is_search);
        let rows = page[list.rows].take();
        let whole = match &mut whole {
            None => whole.insert(page),
            Some(whole) => {
                for (name, value) in page.as_object_mut().into_iter().flatten() {
                    if name != list.rows {
                        whole[name.as_str()] = value.take();
                    }
                }
                if token.is_empty()
                    && let Some(whole) = whole.as_object_mut()
                {
                    whole.remove("nextPageToken");
                }
                whole
            }
        };
        let held = add(whole, list.rows, rows);
        if token.is_empty() || held >= ROWS_MAX {
            if is_search && !whole["pageInfo"].is_null() {
                whole["pageInfo"]["count"] = held.into();
            }
            return Ok(whole.take());
        }
    }
}

/// Returns the token of the next page; empty at the end.
fn next(page: &Value, is_search: bool) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (is_search, &page["pageInfo"]) {
        (false, _) => text(&page["nextPageToken"]),
        (true, info) if info["hasNext"] == true => text(&info["endCursor"]),
        (true, _) => String::new(),
    }
}

fn add(whole: &mut Value, name: &str, rows: Value) -> usize {
    let Value::Array(mut rows) = rows else {
        // Omits an empty list, as canonical JSON does.
        if let Some(whole) = whole.as_object_mut()
            && whole.get(name).is_some_and(Value::is_null)
        {
            whole.remove(name);
        }
        return whole[name].as_array().map_or(0, Vec::len);
    };
    match &mut whole[name] {
        Value::Array(held) => held.append(&mut rows),
        other => *other = Value::Array(rows),
    }
    whole[name].as_array().map_or(0, Vec::len)
}
