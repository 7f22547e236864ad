//! What a screen lists, as the JSON that REST answers.

use std::{io::Write, time::Duration};

use bellwether_proto::{
    json::to_json,
    v1::{
        self, client_service_client::ClientServiceClient,
        delivery_service_client::DeliveryServiceClient,
        destination_service_client::DestinationServiceClient,
        event_query_service_client::EventQueryServiceClient,
        overview_service_client::OverviewServiceClient, rule_service_client::RuleServiceClient,
        trigger_service_client::TriggerServiceClient,
    },
};
use prost::Name;
use tonic::Status;

use crate::{
    clients::{Connection, patiently, refused},
    config::Settings,
    failure::Failure,
};

/// The screens that list something.
const SCREENS: [&str; 7] = [
    "overview",
    "events",
    "triggers",
    "destinations",
    "rules",
    "deliveries",
    "clients",
];
/// How long reading a list may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows asked for at once, and rows written at most.
const PAGE: i32 = 1_000;
const ROWS_MAX: usize = 100_000;
/// Bytes of an answer.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Writes what the screen lists, as one line of JSON with the names of REST.
///
/// # Errors
/// There is no such list, nothing answers, or the service refuses.
pub(super) async fn write(
    screen: &str,
    address: &str,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let screen = screen.to_lowercase();
    if !SCREENS.contains(&screen.as_str()) {
        let names = SCREENS.join(", ");
        return Err(Failure::new(format!(
            "--json: the screen `{screen}` lists nothing; {names} do"
        )));
    }
    let reading = read(&screen, address, settings);
    let json = tokio::time::timeout(PATIENCE, reading).await;
    let late = || Failure::away(format!("the service at {address} did not answer in time"));
    let json = json.map_err(|_elapsed| late())??;
    out.write_all(&json)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|error| Failure::new(format!("cannot write the answer: {error}")))
}

async fn read(screen: &str, address: &str, settings: &Settings) -> Result<Vec<u8>, Failure> {
    let carrier = patiently(address, settings).await?;
    match screen {
        "overview" => {
            let mut service = OverviewServiceClient::new(carrier);
            let answer = service.get_overview(v1::GetOverviewRequest {}).await;
            json(&answer.map_err(refused)?.into_inner())
        }
        "events" => events(carrier).await,
        "triggers" => triggers(carrier).await,
        "destinations" => destinations(carrier).await,
        "rules" => rules(carrier).await,
        "deliveries" => deliveries(carrier).await,
        _ => clients(carrier).await,
    }
}

fn json(answer: &impl Name) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::new(format!("the answer cannot be written as JSON: {error}"));
    to_json(answer).map_err(failed)
}

/// Reads every page of a list into one answer.
macro_rules! list {
    ($name:ident, $client:ident, $method:ident, $request:ident, $rows:ident) => {
        async fn $name(carrier: Connection) -> Result<Vec<u8>, Failure> {
            let mut service = $client::new(carrier).max_decoding_message_size(ANSWER_BYTES);
            let mut request = v1::$request {
                page_size: PAGE,
                ..v1::$request::default()
            };
            let first = service.$method(request.clone()).await;
            let mut whole = first.map_err(refused)?.into_inner();
            while !whole.next_page_token.is_empty() && whole.$rows.len() < ROWS_MAX {
                request.page_token = std::mem::take(&mut whole.next_page_token);
                let next: Result<_, Status> = service.$method(request.clone()).await;
                let next = next.map_err(refused)?.into_inner();
                whole.$rows.extend(next.$rows);
                whole.next_page_token = next.next_page_token;
            }
            json(&whole)
        }
    };
}

list!(
    triggers,
    TriggerServiceClient,
    list_triggers,
    ListTriggersRequest,
    triggers
);
list!(
    destinations,
    DestinationServiceClient,
    list_destinations,
    ListDestinationsRequest,
    destinations
);
list!(
    rules,
    RuleServiceClient,
    list_rules,
    ListRulesRequest,
    rules
);
list!(
    deliveries,
    DeliveryServiceClient,
    list_deliveries,
    ListDeliveriesRequest,
    deliveries
);
list!(
    clients,
    ClientServiceClient,
    list_clients,
    ListClientsRequest,
    clients
);

/// The occurrences that the screen shows at first: open and suppressed ones, newest first.
async fn events(carrier: Connection) -> Result<Vec<u8>, Failure> {
    use bellwether_proto::cloud::Status as State;
    let mut service = EventQueryServiceClient::new(carrier).max_decoding_message_size(ANSWER_BYTES);
    let mut whole: Option<v1::SearchEventsResponse> = None;
    let mut cursor = String::new();
    loop {
        let query = v1::EventQuery {
            statuses: vec![State::Open.into(), State::Suppressed.into()],
            page_input: Some(v1::PageInput {
                limit: PAGE,
                cursor: cursor.clone(),
                ..v1::PageInput::default()
            }),
            ..v1::EventQuery::default()
        };
        let request = v1::SearchEventsRequest { query: Some(query) };
        let page = service
            .search_events(request)
            .await
            .map_err(refused)?
            .into_inner();
        let info = page.page_info.clone().unwrap_or_default();
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => {
                whole.results.extend(page.results);
                let joined = whole.page_info.get_or_insert_default();
                joined.has_next = info.has_next;
                joined.end_cursor.clone_from(&info.end_cursor);
            }
        }
        let held = whole.as_ref().map_or(0, |whole| whole.results.len());
        if info.has_next != Some(true) || held >= ROWS_MAX || info.end_cursor.is_empty() {
            let mut whole = whole.unwrap_or_default();
            if let Some(info) = &mut whole.page_info {
                info.count = Some(i32::try_from(held).unwrap_or(i32::MAX));
            }
            return json(&whole);
        }
        cursor = info.end_cursor;
    }
}
