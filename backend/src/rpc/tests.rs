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
    data_receiver_service_client::DataReceiverServiceClient, data_receiver_service_server,
};
use bellwether_proto::v1::{
    self, client_service_client::ClientServiceClient, client_service_server,
    destination_service_client::DestinationServiceClient, destination_service_server,
    event_management_service_client::EventManagementServiceClient, event_management_service_server,
    event_query_service_client::EventQueryServiceClient, event_query_service_server,
    rule_service_client::RuleServiceClient, rule_service_server,
    trigger_service_client::TriggerServiceClient, trigger_service_server,
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
    access::tests::Access, client::ClientApi, data_receiver::DataReceiver,
    destination::DestinationApi, event_management::EventManagementApi, event_query::EventQueryApi,
};
use crate::{
    clock::Clock as _,
    domain::{Role, SharedSettings},
    message::Links,
    ops::{
        client::{Clients, Keys},
        delivery::Deliveries,
        destination::Destinations,
        fields::FieldCache,
        notify_open::OpenNotifier,
        rule::{Installation, RuleApi, Rules},
        ruleset::Ruleset,
        trigger::{TriggerApi, Triggers},
    },
    samples::{self, world},
    send::Renderers,
    sending::SenderParts,
};

type World = world::World<Served>;

/// Connection of a caller with the role `admin` to the services.
struct Served {
    channel: Channel,
    access: Access,
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
        let world = world::World::under(&[]).await;
        let access = Access::open(&world).await;
        let Access { clients, keys, .. } = &access;
        let guarded = access.guard().protect_routes(routes(&world, clients, keys));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(keys).run(CancellationToken::new()));
        tasks.spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            let server = Server::builder().add_routes(guarded);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        let key = access.key("root", Role::Admin).await;
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).unwrap();
        let part = Served {
            channel: endpoint.connect().await.unwrap(),
            access,
            key: Bearer(key),
            _tasks: tasks,
        };
        world.with(part)
    }

    async fn key(&self, name: &str, role: Role) -> Bearer {
        Bearer(self.access.key(name, role).await)
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

fn routes(world: &world::World, clients: &Clients, keys: &Arc<Keys>) -> Routes {
    let node = world.node();
    let (deciding, intake) = (&node.deciding, node.intake.clone());
    let store = || world.store.clone();
    let clock = || world.clock();
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
    let rules = RuleApi {
        rules: Rules::new(store(), clock()),
        opens: opens.clone(),
        installation,
    };
    let events = EventQueryApi {
        store: store(),
        clock: clock(),
        ruleset: Arc::clone(&ruleset),
        fields: FieldCache::new(store(), clock()),
        deliveries: Deliveries::new(store(), clock()),
        shutdown: CancellationToken::new(),
    };
    let triggers = Triggers::new(store(), clock());
    let receiver = DataReceiver::new(intake.clone(), clock());
    let servers = [
        trigger_service_server::serve(TriggerApi {
            triggers,
            opens,
            shutdown: CancellationToken::new(),
        }),
        destination_service_server::serve(destination_api(world, ruleset)),
        rule_service_server::serve(rules),
        client_service_server::serve(ClientApi {
            clients: clients.clone(),
            keys: Arc::clone(keys),
        }),
        event_query_service_server::serve(events),
        event_management_service_server::serve(EventManagementApi {
            deciding: deciding.clone(),
            intake,
        }),
        data_receiver_service_server::serve(receiver),
    ];
    servers
        .into_iter()
        .fold(Routes::default(), |routes, server| server.add_to(routes))
}

fn destination_api(world: &world::World, ruleset: Arc<Ruleset>) -> DestinationApi {
    let sending = SenderParts::at(Arc::clone(&world.clock));
    let tester = Arc::new(samples::tester(&world.store, &sending));
    let destinations = Destinations::new(world.store.clone(), world.clock());
    DestinationApi::new(destinations.with_guard(sending.guard()), tester, ruleset)
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
