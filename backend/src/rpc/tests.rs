//! Tests of the services over a real connection, behind the guard, with a store in memory.

mod clients;
mod destinations;
mod events;
mod explain;
mod filters;
mod lists;
mod reach;
mod rules;
mod secrets;
mod triggers;

use std::{fmt::Debug, sync::Arc, time::Duration};

use bellwether_proto::cloud::{
    data_receiver_service_client::DataReceiverServiceClient,
    data_receiver_service_server::DataReceiverServiceServer,
};
use bellwether_proto::v1::{
    self, client_service_client::ClientServiceClient, client_service_server::ClientServiceServer,
    destination_service_client::DestinationServiceClient,
    destination_service_server::DestinationServiceServer,
    event_management_service_client::EventManagementServiceClient,
    event_management_service_server::EventManagementServiceServer,
    event_query_service_client::EventQueryServiceClient,
    event_query_service_server::EventQueryServiceServer, rule_service_client::RuleServiceClient,
    rule_service_server::RuleServiceServer, trigger_service_client::TriggerServiceClient,
    trigger_service_server::TriggerServiceServer,
};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Code, Request, Response, Status,
    service::{Interceptor, Routes, interceptor::InterceptedService},
    transport::{Channel, Endpoint, Server},
};
use tonic_types::StatusExt;

use super::{
    access::{CallGuard, Refusals},
    client::ClientApi,
    data_receiver::DataReceiver,
    destination::DestinationApi,
    event_management::EventManagementApi,
    event_query::EventQueryApi,
    rule::RuleApi,
    trigger::TriggerApi,
};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    destination::Renderers,
    destination::{EgressGuard, Sender},
    domain::{Role, SharedSettings},
    message::Links,
    ops::{
        audit::AuditLog,
        client::{ClientDraft, Clients, Keys},
        decision_context::DecisionContext,
        delivery::Deliveries,
        destination::{Destinations, Tester},
        fields::FieldCache,
        intake::Intake,
        notify_open::OpenNotifier,
        rule::{Installation, Rules},
        ruleset::Ruleset,
        samples,
        trigger::Triggers,
    },
    scan::ScanService,
    store::Store,
};

/// A service, and a caller with the role `admin`.
struct World {
    store: Store,
    channel: Channel,
    clients: Clients,
    clock: Arc<ManualClock>,
    intake: Intake,
    key: Bearer,
    _tasks: JoinSet<()>,
}

/// Adds a key to every call.
#[derive(Clone)]
struct Bearer(String);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let value = format!("Bearer {}", self.0).parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }
}

type Called = InterceptedService<Channel, Bearer>;

impl World {
    async fn start() -> Self {
        let store = samples::store();
        let (deciding, manual) = samples::deciding(store.clone()).await;
        let clock = Arc::clone(&deciding.clock);
        let (intake, workers) = Intake::new(deciding.clone());
        let clients = Clients::new(store.clone(), Arc::clone(&clock));
        let keys = Keys::open(store.clone(), Arc::clone(&clock)).await.unwrap();
        let keys = Arc::new(keys);
        let routes = routes(&deciding, intake.clone(), &clients, &keys);
        let audit = AuditLog::new(store.clone(), Arc::clone(&clock));
        let audit = Arc::new(audit);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(workers.run(CancellationToken::new()));
        tasks.spawn(Arc::clone(&keys).run(CancellationToken::new()));
        tasks.spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            let server = Server::builder().add_routes(
                CallGuard::new(
                    keys,
                    Arc::new(Refusals::new(drop)),
                    audit,
                    ScanService::start().unwrap(),
                )
                .protect_routes(routes),
            );
            server.serve_with_incoming(incoming).await.unwrap();
        });
        let (_, key) = clients
            .create(&ClientDraft::new("root", Role::Admin))
            .await
            .unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).unwrap();
        Self {
            store,
            channel: endpoint.connect().await.unwrap(),
            clients,
            clock: manual,
            intake,
            key: Bearer(key.reveal().into()),
            _tasks: tasks,
        }
    }

    async fn key(&self, name: &str, role: Role) -> Bearer {
        let (_, key) = self
            .clients
            .create(&ClientDraft::new(name, role))
            .await
            .unwrap();
        Bearer(key.reveal().into())
    }

    fn triggers(&self) -> TriggerServiceClient<Called> {
        TriggerServiceClient::with_interceptor(self.channel.clone(), self.key.clone())
    }

    fn destinations(&self) -> DestinationServiceClient<Called> {
        DestinationServiceClient::with_interceptor(self.channel.clone(), self.key.clone())
    }

    fn rules(&self) -> RuleServiceClient<Called> {
        RuleServiceClient::with_interceptor(self.channel.clone(), self.key.clone())
    }

    fn clients(&self, key: &Bearer) -> ClientServiceClient<Called> {
        ClientServiceClient::with_interceptor(self.channel.clone(), key.clone())
    }

    fn events(&self, key: &Bearer) -> EventQueryServiceClient<Called> {
        EventQueryServiceClient::with_interceptor(self.channel.clone(), key.clone())
    }

    fn receiver(&self, key: &Bearer) -> DataReceiverServiceClient<Called> {
        DataReceiverServiceClient::with_interceptor(self.channel.clone(), key.clone())
    }

    fn management(&self, key: &Bearer) -> EventManagementServiceClient<Called> {
        EventManagementServiceClient::with_interceptor(self.channel.clone(), key.clone())
    }

    async fn create_trigger(&self, trigger: v1::Trigger) -> Result<v1::Trigger, Status> {
        let request = v1::CreateTriggerRequest {
            trigger: Some(trigger),
            ..v1::CreateTriggerRequest::default()
        };
        let answer = self.triggers().create_trigger(request).await?;
        Ok(answer.into_inner().trigger.unwrap())
    }

    async fn get_trigger(&self, name: &str) -> Result<v1::Trigger, Status> {
        let request = v1::GetTriggerRequest { name: name.into() };
        let answer = self.triggers().get_trigger(request).await?;
        Ok(answer.into_inner().trigger.unwrap())
    }

    async fn create_destination(
        &self,
        destination: v1::Destination,
    ) -> Result<v1::Destination, Status> {
        let request = v1::CreateDestinationRequest {
            destination: Some(destination),
            validate_only: false,
        };
        let answer = self.destinations().create_destination(request).await?;
        Ok(answer.into_inner().destination.unwrap())
    }

    async fn create_rule(&self, rule: v1::Rule) -> Result<v1::Rule, Status> {
        let request = v1::CreateRuleRequest {
            rule: Some(rule),
            ..v1::CreateRuleRequest::default()
        };
        let answer = self.rules().create_rule(request).await?;
        Ok(answer.into_inner().rule.unwrap())
    }

    async fn get_rule(&self, name: &str) -> Result<v1::Rule, Status> {
        let request = v1::GetRuleRequest { name: name.into() };
        let answer = self.rules().get_rule(request).await?;
        Ok(answer.into_inner().rule.unwrap())
    }
}

fn routes(
    deciding: &DecisionContext,
    intake: Intake,
    clients: &Clients,
    keys: &Arc<Keys>,
) -> Routes {
    let store = || deciding.store.clone();
    let clock = || Arc::clone(&deciding.clock);
    let ruleset = Arc::clone(&deciding.ruleset);
    let installation = Installation {
        settings: watch::Sender::new(Arc::new(SharedSettings {
            tenant: "acme".into(),
            ..SharedSettings::default()
        }))
        .subscribe(),
        links: Links {
            base: "https://ops.example.com".into(),
            ..Links::default()
        },
        renderers: Renderers::default(),
    };
    let opens = OpenNotifier::new(deciding.clone(), intake.clone());
    let rules = RuleApi::new(Rules::new(store(), clock()), opens.clone(), installation);
    let events = EventQueryApi::new(
        store(),
        clock(),
        Arc::clone(&ruleset),
        FieldCache::new(store(), clock()),
        Deliveries::new(store(), clock()),
        CancellationToken::new(),
    );
    let triggers = Triggers::new(store(), clock());
    Routes::new(TriggerServiceServer::new(TriggerApi::new(
        triggers,
        opens,
        CancellationToken::new(),
    )))
    .add_service(DestinationServiceServer::new(destination_api(
        store(),
        clock(),
        ruleset,
    )))
    .add_service(RuleServiceServer::new(rules))
    .add_service(ClientServiceServer::new(ClientApi::new(
        clients.clone(),
        Arc::clone(keys),
    )))
    .add_service(EventQueryServiceServer::new(events))
    .add_service(EventManagementServiceServer::new(EventManagementApi::new(
        deciding.clone(),
        intake.clone(),
    )))
    .add_service(DataReceiverServiceServer::new(DataReceiver::new(
        intake,
        clock(),
    )))
}

fn destination_api(store: Store, clock: Arc<dyn Clock>, ruleset: Arc<Ruleset>) -> DestinationApi {
    let mut config = Config::new("unused");
    config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    let egress = Arc::new(EgressGuard::new(&config.egress, Vec::new()));
    let sender = Sender::new(
        &config,
        watch::Sender::default().subscribe(),
        Arc::clone(&egress),
        Arc::clone(&clock),
        Links::default(),
        None,
    );
    let tester = Tester::new(store.clone(), Arc::clone(&clock), sender, config.delivery);
    let tester = Arc::new(tester);
    let destinations = Destinations::new(store, clock).with_guard(egress);
    DestinationApi::new(destinations, tester, ruleset)
}

fn code<T: Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

/// Returns the invalid fields of a rejected call.
fn fields<T: Debug>(result: Result<T, Status>) -> Vec<String> {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violations = &details.bad_request().unwrap().field_violations;
    let field = |violation: &tonic_types::FieldViolation| violation.field.clone();
    violations.iter().map(field).collect()
}

fn inner<T>(response: Response<T>) -> T {
    response.into_inner()
}

fn clause(kind: v1::clause::Kind) -> v1::Clause {
    v1::Clause { kind: Some(kind) }
}

fn contains(field: &str, value: &str) -> v1::Clause {
    clause(v1::clause::Kind::Contains(v1::Contains {
        field: field.into(),
        value: value.into(),
    }))
}

fn event_type(clause: Option<v1::Clause>) -> v1::TriggerType {
    let query = v1::Query { clause };
    v1::TriggerType {
        r#type: Some(v1::trigger_type::Type::Event(v1::EventTrigger {
            query: Some(query),
            ..v1::EventTrigger::default()
        })),
    }
}

fn trigger(name: &str) -> v1::Trigger {
    v1::Trigger {
        name: name.into(),
        r#type: Some(event_type(Some(contains("summary", "disk")))),
        ..v1::Trigger::default()
    }
}

fn destination_of(name: &str, kind: v1::destination_type::Type) -> v1::Destination {
    v1::Destination {
        name: name.into(),
        r#type: Some(v1::DestinationType { r#type: Some(kind) }),
        ..v1::Destination::default()
    }
}

fn destination(name: &str) -> v1::Destination {
    let webhook = v1::Webhook {
        url: "https://hooks.example.com/a".into(),
        ..v1::Webhook::default()
    };
    destination_of(name, v1::destination_type::Type::Webhook(webhook))
}

/// Returns a rule that is valid if its references exist.
fn rule(name: &str, triggers: &[&str], destinations: &[&str]) -> v1::Rule {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    v1::Rule {
        name: name.into(),
        trigger_names: texts(triggers),
        destination_names: texts(destinations),
        ..v1::Rule::default()
    }
}
