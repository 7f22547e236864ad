//! The first page of a search, over gRPC and over REST.

use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{
        Clause, Equals, EventQuery, PageInput, SearchEventsRequest, SortBy, SortByField, clause,
        equals, event_query_service_client::EventQueryServiceClient, sort_by,
    },
};
use bellwether_tests::{grpc::Grpc, rest::Rest};
use serde_json::{Value, json};

/// Name of all events.
pub(crate) const NAME: &str = "growth";

/// The first page of a search.
#[derive(Debug)]
pub(crate) struct Page {
    /// The field it searches by.
    pub(crate) name: &'static str,
    query: EventQuery,
    json: Value,
}

impl Page {
    /// Returns one page for each kind of search.
    pub(crate) fn all() -> Vec<Self> {
        let by_field = |field: &str| SortBy {
            sort: Some(sort_by::Sort::ByField(SortByField {
                field: field.into(),
                ..SortByField::default()
            })),
        };
        let sorted = |name, field: &str| Self {
            name,
            query: EventQuery {
                sort_by: vec![by_field(field)],
                ..EventQuery::default()
            },
            json: json!({"sortBy": [{"byField": {"field": field}}]}),
        };
        let equals = Equals {
            field: "name".into(),
            value: Some(equals::Value::StringVal(NAME.into())),
        };
        vec![
            sorted("last seen, gRPC / REST, ms", "lastSeen"),
            sorted("start", "startTime"),
            sorted("severity", "severity"),
            Self {
                name: "only open",
                query: EventQuery {
                    statuses: vec![Status::Open.into()],
                    ..EventQuery::default()
                },
                json: json!({"statuses": ["STATUS_OPEN"]}),
            },
            Self {
                name: "only errors",
                query: EventQuery {
                    severities: vec![Severity::Error.into()],
                    ..EventQuery::default()
                },
                json: json!({"severities": ["SEVERITY_ERROR"]}),
            },
            Self {
                name: "of a name",
                query: EventQuery {
                    clause: Some(Clause {
                        kind: Some(clause::Kind::Equals(equals)),
                    }),
                    ..EventQuery::default()
                },
                json: json!({"clause": {"equals": {"field": "name", "stringVal": NAME}}}),
            },
        ]
    }

    pub(crate) async fn over_grpc(&self, channel: Grpc, limit: usize) {
        let page_input = PageInput {
            limit: i32::try_from(limit).expect("a small page"),
            ..PageInput::default()
        };
        let query = EventQuery {
            page_input: Some(page_input),
            ..self.query.clone()
        };
        let request = SearchEventsRequest { query: Some(query) };
        let mut client = EventQueryServiceClient::new(channel);
        let found = client.search_events(request).await.expect("a page");
        assert_eq!(found.into_inner().results.len(), limit);
    }

    pub(crate) async fn over_rest(&self, client: &Rest, limit: usize) {
        let mut query = self.json.clone();
        query["pageInput"] = json!({"limit": limit});
        let body = json!({"query": query});
        let page = client.post("/v1/events:search", &body).await.ok();
        assert_eq!(page["results"].as_array().map(Vec::len), Some(limit));
    }
}
