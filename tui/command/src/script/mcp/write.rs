//! Writes in two steps: the effect first, and then the confirmation.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bellwether_tui::api::{Api, CallError};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Maximum number of events that a write of an agent covers.
const EVENTS_MAX: usize = 20;
const VALIDITY: Duration = Duration::from_secs(300);
/// Maximum number of tokens; the oldest is dropped first.
const TOKENS_MAX: usize = 100;
/// Period in which the events of a silence's condition are counted, including closed ones.
const PAST_MS: i64 = 7 * 86_400_000;
const SEARCH_PAGE: usize = 500;

/// Methods whose covered events [`effect_of`] counts.
pub(super) const WRITES: [&str; 12] = [
    "Annotate",
    "CancelDelivery",
    "CreateSilence",
    "DeleteSilence",
    "EscalateResponse",
    "ExpireSilence",
    "ExtendSilence",
    "ReleasePending",
    "RetryDelivery",
    "SetGroupStatus",
    "SetStatus",
    "UpdateSilence",
];

#[derive(Debug)]
pub(super) struct Effect {
    /// Number of covered events; `None` if it is unknown.
    count: Option<usize>,
    /// The response of the service that shows the effect.
    pub(super) shown: Value,
}

impl Effect {
    /// Returns the number of covered events.
    ///
    /// # Errors
    /// Returns an error if there are too many events for an agent, or if their number is unknown.
    pub(super) fn count_within_limit(&self) -> Result<usize, String> {
        let covered = match self.count {
            Some(count) if count <= EVENTS_MAX => return Ok(count),
            Some(count) => format!("{count} events"),
            None => "too many events, or an unknown number".to_owned(),
        };
        Err(format!(
            "refused: this would cover {covered}, and the limit for an agent is {EVENTS_MAX}; a \
             person must do this in the console"
        ))
    }
}

/// Reads the effect that a write would have now.
pub(super) async fn effect_of(
    api: &mut Api,
    method: &str,
    request: &Value,
) -> Result<Effect, CallError> {
    let silence = &request["silence"];
    match method {
        "CreateSilence" => drafted_silence(api, silence).await,
        "UpdateSilence" => {
            let stored = stored_silence(api, &silence["name"]).await?;
            let mut drafted = drafted_silence(api, silence).await?;
            drafted.count = drafted
                .count
                .max(stored.count)
                .filter(|_| drafted.count.is_some());
            Ok(drafted)
        }
        "DeleteSilence" | "ExpireSilence" | "ExtendSilence" => {
            stored_silence(api, &request["name"]).await
        }
        "SetStatus" => listed_events(api, &request["statuses"]).await,
        "Annotate" => listed_events(api, &request["annotations"]).await,
        "SetGroupStatus" => group(api, &request["id"]).await,
        "EscalateResponse" => {
            let shown = read(api, "ResponseService/GetResponse", &request["id"]).await?;
            let count = grouped_count(api, &shown["response"]["groupId"]).await?;
            Ok(Effect { count, shown })
        }
        "RetryDelivery" | "CancelDelivery" => {
            let shown = read(api, "DeliveryService/GetDelivery", &request["id"]).await?;
            let delivery = &shown["delivery"];
            let count = if delivery["isDigest"] == true {
                None
            } else {
                grouped_count(api, &delivery["groupId"]).await?
            };
            Ok(Effect { count, shown })
        }
        "ReleasePending" => {
            let about = json!({"eventId": request["eventId"], "ruleNames": [request["ruleName"]]});
            let shown = api.call("PendingService", "ListPending", &about).await?;
            let count = Some(1);
            Ok(Effect { count, shown })
        }
        _ => Ok(Effect {
            count: None,
            shown: Value::Null,
        }),
    }
}

/// Reads an object by the first field of its request, which is `id` or `name`.
async fn read(api: &mut Api, method: &str, id: &Value) -> Result<Value, CallError> {
    let (service, method) = method.split_once('/').unwrap_or_default();
    let key = if method == "GetSilence" { "name" } else { "id" };
    api.call(service, method, &json!({key: id})).await
}

/// Counts the open events that a silence covers, and the events of the past week that match its
/// condition. In a quiet moment, a silence for all events covers none.
async fn drafted_silence(api: &mut Api, draft: &Value) -> Result<Effect, CallError> {
    let request = json!({"silence": draft});
    let shown = api
        .call("SilenceService", "PreviewSilence", &request)
        .await?;
    let start_ms = Timestamp::now().as_millisecond() - PAST_MS;
    let query = json!({
        "filter": shown["filter"],
        "timeRange": {"start": start_ms},
        "pageInput": {"limit": SEARCH_PAGE},
    });
    let past = json!({"query": query});
    let past = api.call("EventQueryService", "SearchEvents", &past).await?;
    let matching = past["results"].as_array().into_iter().flatten();
    let matching: BTreeSet<_> = matching.filter_map(|event| event["id"].as_str()).collect();
    let is_known = shown["stoppedEarly"] != true
        && shown["tooBroad"] != true
        && past["pageInfo"]["hasNext"] != true;
    let covered = to_count(&shown["coveredCount"]).map(|covered| covered.max(matching.len()));
    let count = covered.filter(|count| is_known || *count > EVENTS_MAX);
    Ok(Effect { count, shown })
}

async fn stored_silence(api: &mut Api, name: &Value) -> Result<Effect, CallError> {
    let shown = read(api, "SilenceService/GetSilence", name).await?;
    let counts = ["coveredCount", "pendingCount"].map(|field| to_count(&shown["silence"][field]));
    let count = counts.into_iter().flatten().max();
    Ok(Effect { count, shown })
}

async fn listed_events(api: &mut Api, items: &Value) -> Result<Effect, CallError> {
    let items = items.as_array().into_iter().flatten();
    let ids: BTreeSet<_> = items.filter_map(|item| item["eventId"].as_str()).collect();
    let count = Some(ids.len());
    let mut events = Vec::new();
    for id in ids.into_iter().take(EVENTS_MAX) {
        let mut found = read(api, "EventQueryService/GetEvent", &id.into()).await?;
        events.push(found["result"].take());
    }
    let shown = json!({ "events": events });
    Ok(Effect { count, shown })
}

async fn group(api: &mut Api, id: &Value) -> Result<Effect, CallError> {
    let shown = read(api, "GroupService/GetGroup", id).await?;
    let count = to_count(&shown["group"]["openCount"]);
    Ok(Effect { count, shown })
}

/// Returns the number of open events in a group; 1 without a group.
async fn grouped_count(api: &mut Api, id: &Value) -> Result<Option<usize>, CallError> {
    match id.as_str() {
        None | Some("") => Ok(Some(1)),
        Some(_) => Ok(group(api, id).await?.count.map(|count| count.max(1))),
    }
}

fn to_count(number: &Value) -> Option<usize> {
    number
        .as_u64()
        .and_then(|number| usize::try_from(number).ok())
}

#[derive(Debug)]
pub(super) struct PendingWrite {
    token: String,
    until: Instant,
    pub(super) service: String,
    pub(super) method: String,
    pub(super) request: Value,
}

#[derive(Debug, Default)]
pub(super) struct PendingWrites(Vec<PendingWrite>);

impl PendingWrites {
    /// Stores a write and returns its token, which states the write for a person who is asked to
    /// allow the confirmation.
    pub(super) fn add(
        &mut self,
        (service, method): (&str, &str),
        request: Value,
        count: usize,
        now: Instant,
    ) -> String {
        let token = format!("{method}-{count}-events-{:016x}", rand::random::<u64>());
        if self.0.len() == TOKENS_MAX {
            self.0.remove(0);
        }
        self.0.push(PendingWrite {
            token: token.clone(),
            until: now + VALIDITY,
            service: service.into(),
            method: method.into(),
            request,
        });
        token
    }

    /// Removes and returns the write of a token.
    pub(super) fn take(&mut self, token: &str, now: Instant) -> Option<PendingWrite> {
        self.0.retain(|it| it.until > now);
        let at = self.0.iter().position(|it| it.token == token)?;
        Some(self.0.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_once_and_for_five_minutes() {
        let method = ("EventManagementService", "SetStatus");
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        let add = |pending: &mut PendingWrites| pending.add(method, json!({}), 3, now);
        let token = add(&mut pending);
        assert!(token.starts_with("SetStatus-3-events-"), "{token}");
        let late = now + Duration::from_secs(299);
        let taken = pending.take(&token, late).unwrap();
        assert_eq!((&*taken.service, &*taken.method), method);
        assert!(pending.take(&token, late).is_none());
        let token = add(&mut pending);
        assert!(pending.take(&token, now + VALIDITY).is_none());
        let first = add(&mut pending);
        let last = (0..TOKENS_MAX).map(|_| add(&mut pending)).last().unwrap();
        assert!(pending.take(&first, now).is_none());
        assert!(pending.take(&last, now).is_some());
    }

    #[test]
    fn write_of_unknown_extent_is_refused() {
        let refused = |count| {
            let shown = Value::Null;
            Effect { count, shown }.count_within_limit().is_err()
        };
        assert_eq!(
            [Some(0), Some(20), Some(21), None].map(refused),
            [false, false, true, true]
        );
    }
}
