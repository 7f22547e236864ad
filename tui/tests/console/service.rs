//! A small service in memory that speaks the real wire: what the console is tested against.

mod deliveries;
mod events;
mod trial;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use bellwether_proto::{cloud, v1};
use tokio::{net::TcpListener, runtime::Runtime, sync::mpsc};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status, transport::Server};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

type Answer<T> = Result<Response<T>, Status>;
type Watcher = mpsc::Sender<Result<v1::WatchEventsResponse, Status>>;

/// What the service holds; tests look into it and change it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) role: i32,
    pub(crate) triggers: BTreeMap<String, v1::Trigger>,
    pub(crate) destinations: BTreeMap<String, v1::Destination>,
    pub(crate) rules: BTreeMap<String, v1::Rule>,
    pub(crate) events: Vec<v1::Event>,
    pub(crate) deliveries: Vec<v1::Delivery>,
    /// The tests that were asked for.
    pub(crate) tests: Vec<v1::TestDestinationRequest>,
    /// Searches by the text of their clause.
    pub(crate) searches: Vec<Option<v1::Clause>>,
    pub(crate) statuses: Vec<v1::StatusItem>,
    pub(crate) notes: Vec<v1::AnnotationItem>,
    /// Events that cannot be changed, by their ids.
    pub(crate) refused: Vec<String>,
    pub(crate) refuse_key: bool,
    /// Tries of triggers that continue until the console ends them.
    pub(crate) tries: Vec<trial::ProgressSender>,
    watchers: Vec<Watcher>,
}

/// A running service. Dropping it breaks every connection.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    state: Shared,
    runtime: Option<Runtime>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl Service {
    /// Starts a service whose only key is an admin's.
    pub(crate) fn start() -> Self {
        let role = v1::Role::Admin.into();
        let state = Shared(Arc::new(Mutex::new(State {
            role,
            ..State::default()
        })));
        let mut service = Self {
            address: ([127, 0, 0, 1], 0).into(),
            state,
            runtime: None,
        };
        service.resume();
        service
    }

    /// What it holds.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Breaks every connection and refuses new ones.
    pub(crate) fn break_down(&mut self) {
        self.state().watchers.clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Serves (again) at the same address.
    pub(crate) fn resume(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let state = self.state.clone();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            Server::builder()
                .add_service(v1::client_service_server::ClientServiceServer::new(
                    state.clone(),
                ))
                .add_service(v1::overview_service_server::OverviewServiceServer::new(
                    state.clone(),
                ))
                .add_service(v1::trigger_service_server::TriggerServiceServer::new(
                    state.clone(),
                ))
                .add_service(
                    v1::destination_service_server::DestinationServiceServer::new(state.clone()),
                )
                .add_service(v1::rule_service_server::RuleServiceServer::new(
                    state.clone(),
                ))
                .add_service(v1::delivery_service_server::DeliveryServiceServer::new(
                    state.clone(),
                ))
                .add_service(
                    v1::event_query_service_server::EventQueryServiceServer::new(state.clone()),
                )
                .add_service(
                    v1::event_management_service_server::EventManagementServiceServer::new(state),
                )
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// Stores an event and tells those who watch.
    pub(crate) fn event(&self, event: v1::Event) {
        let mut state = self.state();
        state.events.retain(|other| other.id != event.id);
        state.events.insert(0, event.clone());
        tell(&mut state, vec![event]);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.break_down();
    }
}

fn tell(state: &mut State, events: Vec<v1::Event>) {
    let news = v1::WatchEventsResponse {
        events,
        resume_token: "token".to_owned(),
        ..v1::WatchEventsResponse::default()
    };
    state
        .watchers
        .retain(|watcher| watcher.try_send(Ok(news.clone())).is_ok());
}

/// An event with one open occurrence.
pub(crate) fn event(
    number: u32,
    severity: cloud::Severity,
    summary: &str,
    host: &str,
) -> v1::Event {
    let id = format!("{number:028}");
    v1::Event {
        id: id.clone(),
        name: "disk-full".to_owned(),
        r#type: "disk".to_owned(),
        dimensions: [("host".to_owned(), host.to_owned())].into(),
        count: Some(3),
        occurrences: vec![v1::Occurrence {
            id: format!("{id}:1"),
            event_id: id,
            number: 1,
            severity: severity.into(),
            status: cloud::Status::Open.into(),
            acknowledged: Some(false),
            summary: summary.to_owned(),
            start_time: 1_700_000_000_000,
            last_seen: 1_700_000_000_000 + i64::from(number) * 1_000,
            count: Some(3),
            ..v1::Occurrence::default()
        }],
    }
}

fn invalid(path: &str, message: &str) -> Status {
    let details = ErrorDetails::with_bad_request(vec![FieldViolation::new(path, message)]);
    Status::with_error_details(Code::InvalidArgument, format!("{path}: {message}"), details)
}

impl Shared {
    /// Gives a destination another health.
    fn turn(
        &self,
        name: &str,
        state: v1::destination_health::State,
    ) -> Result<v1::Destination, Status> {
        let mut own = self.lock();
        let found = own.destinations.get_mut(name);
        let found = found.ok_or_else(|| Status::not_found(name.to_owned()))?;
        found.health.get_or_insert_default().state = state.into();
        Ok(found.clone())
    }
}

macro_rules! resource_service {
    ($service:path, $rows:ident, $one:ident, $check:ident,
     $create:ident $Create:ident $Created:ident, $list:ident $List:ident $Listed:ident,
     $get:ident $Get:ident $Got:ident, $update:ident $Update:ident $Updated:ident,
     $delete:ident $Delete:ident $Deleted:ident, { $($rest:tt)* }) => {
        #[tonic::async_trait]
        impl $service for Shared {
            async fn $create(&self, request: Request<v1::$Create>) -> Answer<v1::$Created> {
                let request = request.into_inner();
                let mut stored = request.$one.unwrap();
                if let Some(status) = $check(&stored) {
                    return Err(status);
                }
                let mut state = self.lock();
                if state.$rows.contains_key(&stored.name) {
                    return Err(Status::already_exists(format!("{} is taken", stored.name)));
                }
                stored.etag = "1".to_owned();
                if !request.validate_only {
                    state.$rows.insert(stored.name.clone(), stored.clone());
                }
                let mut answer = v1::$Created::default();
                answer.$one = Some(stored);
                Ok(Response::new(answer))
            }

            async fn $list(&self, _: Request<v1::$List>) -> Answer<v1::$Listed> {
                let $rows = self.lock().$rows.values().cloned().collect();
                Ok(Response::new(v1::$Listed { $rows, ..v1::$Listed::default() }))
            }

            async fn $get(&self, _: Request<v1::$Get>) -> Answer<v1::$Got> {
                Err(Status::unimplemented("not needed by the console"))
            }

            async fn $update(&self, request: Request<v1::$Update>) -> Answer<v1::$Updated> {
                let request = request.into_inner();
                let mut stored = request.$one.unwrap();
                if let Some(status) = $check(&stored) {
                    return Err(status);
                }
                let mut state = self.lock();
                let Some(before) = state.$rows.get(&stored.name) else {
                    return Err(Status::not_found("it is not there"));
                };
                if !stored.etag.is_empty() && stored.etag != before.etag {
                    return Err(Status::aborted("it was changed meanwhile"));
                }
                stored.etag = format!("{}1", before.etag);
                if !request.validate_only {
                    state.$rows.insert(stored.name.clone(), stored.clone());
                }
                let mut answer = v1::$Updated::default();
                answer.$one = Some(stored);
                Ok(Response::new(answer))
            }

            async fn $delete(&self, request: Request<v1::$Delete>) -> Answer<v1::$Deleted> {
                self.lock().$rows.remove(&request.into_inner().name);
                Ok(Response::new(v1::$Deleted {}))
            }

            $($rest)*
        }
    };
}

fn any<T>(_: &T) -> Option<Status> {
    None
}

fn web_address(destination: &v1::Destination) -> Option<Status> {
    use v1::destination_type::Type;
    let kind = destination.r#type.as_ref()?.r#type.as_ref()?;
    match kind {
        Type::Webhook(webhook) if !webhook.url.starts_with("http") => Some(invalid(
            "type.webhook.url",
            "must begin with http:// or https://",
        )),
        _ => None,
    }
}

resource_service!(
    v1::trigger_service_server::TriggerService, triggers, trigger, any,
    create_trigger CreateTriggerRequest CreateTriggerResponse,
    list_triggers ListTriggersRequest ListTriggersResponse,
    get_trigger GetTriggerRequest GetTriggerResponse,
    update_trigger UpdateTriggerRequest UpdateTriggerResponse,
    delete_trigger DeleteTriggerRequest DeleteTriggerResponse, {
        async fn test_trigger(
            &self,
            _: Request<v1::TestTriggerRequest>,
        ) -> Answer<v1::TestTriggerResponse> {
            Err(Status::unimplemented("not needed by the console"))
        }

        type TestTriggerWithProgressStream = trial::Told;

        async fn test_trigger_with_progress(
            &self,
            request: Request<v1::TestTriggerRequest>,
        ) -> Answer<trial::Told> {
            Ok(trial::tell(&mut self.lock(), request))
        }
    }
);

resource_service!(
    v1::rule_service_server::RuleService, rules, rule, any,
    create_rule CreateRuleRequest CreateRuleResponse,
    list_rules ListRulesRequest ListRulesResponse,
    get_rule GetRuleRequest GetRuleResponse,
    update_rule UpdateRuleRequest UpdateRuleResponse,
    delete_rule DeleteRuleRequest DeleteRuleResponse, {
        async fn preview_rule(
            &self,
            _: Request<v1::PreviewRuleRequest>,
        ) -> Answer<v1::PreviewRuleResponse> {
            Err(Status::unimplemented("previews are not served yet"))
        }
    }
);

resource_service!(
    v1::destination_service_server::DestinationService, destinations, destination, web_address,
    create_destination CreateDestinationRequest CreateDestinationResponse,
    list_destinations ListDestinationsRequest ListDestinationsResponse,
    get_destination GetDestinationRequest GetDestinationResponse,
    update_destination UpdateDestinationRequest UpdateDestinationResponse,
    delete_destination DeleteDestinationRequest DeleteDestinationResponse, {
        async fn pause_destination(
            &self,
            request: Request<v1::PauseDestinationRequest>,
        ) -> Answer<v1::PauseDestinationResponse> {
            let paused = v1::destination_health::State::Paused;
            let destination = self.turn(&request.into_inner().name, paused)?;
            Ok(Response::new(v1::PauseDestinationResponse { destination: Some(destination) }))
        }

        async fn resume_destination(
            &self,
            request: Request<v1::ResumeDestinationRequest>,
        ) -> Answer<v1::ResumeDestinationResponse> {
            let failing = v1::destination_health::State::Failing;
            let destination = self.turn(&request.into_inner().name, failing)?;
            Ok(Response::new(v1::ResumeDestinationResponse { destination: Some(destination) }))
        }

        async fn render_destination(
            &self,
            _: Request<v1::RenderDestinationRequest>,
        ) -> Answer<v1::RenderDestinationResponse> {
            Err(Status::unimplemented("an older service renders nothing"))
        }

        async fn test_destination(
            &self,
            request: Request<v1::TestDestinationRequest>,
        ) -> Answer<v1::TestDestinationResponse> {
            self.lock().tests.push(request.into_inner());
            let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            Ok(Response::new(v1::TestDestinationResponse {
                outcome: v1::Outcome::Rejected.into(),
                explanation: "the receiver answered 403 Forbidden".to_owned(),
                duration: Some(prost_types::Duration { seconds: 0, nanos: 132_000_000 }),
                request: Some(v1::RequestTranscript {
                    method: "POST".to_owned(),
                    url: "https://pager.example/hook".to_owned(),
                    headers: [header("authorization", "********")].into(),
                    body: "{\"id\":\"1\",\"clear\":false}".to_owned(),
                }),
                response: Some(v1::ResponseTranscript {
                    status: 403,
                    headers: [header("content-type", "text/plain")].into(),
                    body: "no such hook".to_owned(),
                }),
                delivery_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
                times: None,
            }))
        }
    }
);

#[tonic::async_trait]
impl v1::client_service_server::ClientService for Shared {
    async fn create_client(
        &self,
        request: Request<v1::CreateClientRequest>,
    ) -> Answer<v1::CreateClientResponse> {
        let request = request.into_inner();
        let client = v1::Client {
            name: request.name,
            role: request.role,
            ..v1::Client::default()
        };
        let key = "bw_once-only".to_owned();
        Ok(Response::new(v1::CreateClientResponse {
            client: Some(client),
            key,
        }))
    }

    async fn list_clients(
        &self,
        _: Request<v1::ListClientsRequest>,
    ) -> Answer<v1::ListClientsResponse> {
        let client = v1::Client {
            name: "ops".to_owned(),
            role: 5,
            ..v1::Client::default()
        };
        let clients = vec![client];
        Ok(Response::new(v1::ListClientsResponse {
            clients,
            next_page_token: String::new(),
        }))
    }

    async fn update_client(
        &self,
        request: Request<v1::UpdateClientRequest>,
    ) -> Answer<v1::UpdateClientResponse> {
        let client = v1::Client {
            name: request.into_inner().name,
            ..v1::Client::default()
        };
        Ok(Response::new(v1::UpdateClientResponse {
            client: Some(client),
        }))
    }

    async fn rotate_client_key(
        &self,
        _request: Request<v1::RotateClientKeyRequest>,
    ) -> Result<Response<v1::RotateClientKeyResponse>, Status> {
        Err(Status::unimplemented("no test of the console rotates keys"))
    }

    async fn revoke_client(
        &self,
        _: Request<v1::RevokeClientRequest>,
    ) -> Answer<v1::RevokeClientResponse> {
        Ok(Response::new(v1::RevokeClientResponse {}))
    }

    async fn get_caller(&self, _: Request<v1::GetCallerRequest>) -> Answer<v1::GetCallerResponse> {
        let state = self.lock();
        if state.refuse_key {
            return Err(Status::unauthenticated("this key is not known"));
        }
        let client = v1::Client {
            name: "ops".to_owned(),
            role: state.role,
            ..v1::Client::default()
        };
        Ok(Response::new(v1::GetCallerResponse {
            client: Some(client),
        }))
    }
}

#[tonic::async_trait]
impl v1::overview_service_server::OverviewService for Shared {
    async fn get_overview(
        &self,
        _: Request<v1::GetOverviewRequest>,
    ) -> Answer<v1::GetOverviewResponse> {
        let state = self.lock();
        let count = |count: usize| Some(i32::try_from(count).unwrap());
        let mut open_by_severity: BTreeMap<String, i32> = BTreeMap::new();
        for occurrence in state.events.iter().flat_map(|event| &event.occurrences) {
            let word = occurrence.severity().as_str_name().to_owned();
            *open_by_severity.entry(word).or_default() += 1;
        }
        let overview = |destination: &v1::Destination| v1::DestinationOverview {
            destination_name: destination.name.clone(),
            health: destination.health.clone(),
            waiting_count: Some(2),
            dead_count: Some(1),
            delivered_count: Some(40),
        };
        Ok(Response::new(v1::GetOverviewResponse {
            open_by_severity,
            events_per_minute: (0..60).map(|minute| (minute * 7) % 23).collect(),
            destinations: state.destinations.values().map(overview).collect(),
            version: "0.1.0".to_owned(),
            trigger_count: count(state.triggers.len()),
            destination_count: count(state.destinations.len()),
            rule_count: count(state.rules.len()),
            enabled_rule_count: count(state.rules.values().filter(|rule| rule.enabled()).count()),
            ..v1::GetOverviewResponse::default()
        }))
    }

    async fn get_statistics(
        &self,
        _: Request<v1::GetStatisticsRequest>,
    ) -> Answer<v1::GetStatisticsResponse> {
        let state = self.lock();
        let columns = |most: i32| {
            (0..60)
                .map(move |minute| (minute * 7) % (most + 1))
                .collect()
        };
        let events = |severity: cloud::Severity, most| v1::SeverityStatistics {
            severity: severity.into(),
            counts: columns(most),
        };
        let deliveries = || v1::DeliveryStatistics {
            waiting_count: Some(2),
            delivered_count: Some(40),
            dead_count: Some(1),
            decided: columns(11),
            delivered: columns(9),
            failed_attempts: columns(3),
            dead: vec![0; 60],
            waiting: columns(5),
            ..v1::DeliveryStatistics::default()
        };
        let named = |name: &String| v1::NamedStatistics {
            name: name.clone(),
            deliveries: Some(deliveries()),
        };
        let is_empty = state.events.is_empty();
        let by_severity = [
            events(cloud::Severity::Critical, 3),
            events(cloud::Severity::Error, 5),
            events(cloud::Severity::Warning, 22),
        ];
        Ok(Response::new(v1::GetStatisticsResponse {
            step: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
            events: by_severity.into_iter().filter(|_| !is_empty).collect(),
            deliveries: (!is_empty).then(deliveries),
            destinations: state.destinations.keys().map(named).collect(),
            rules: state.rules.keys().map(named).collect(),
            ..v1::GetStatisticsResponse::default()
        }))
    }
}
