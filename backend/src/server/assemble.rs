//! Every room of the service with what it needs from the others.

use std::{net::SocketAddr, sync::Arc};

use bellwether_proto::{
    FILE_DESCRIPTOR_SET,
    cloud::data_receiver_service_server::DataReceiverServiceServer,
    v1::{
        backup_service_server::BackupServiceServer, check_service_server::CheckServiceServer,
        client_service_server::ClientServiceServer, delivery_service_server::DeliveryServiceServer,
        destination_service_server::DestinationServiceServer,
        event_management_service_server::EventManagementServiceServer,
        event_query_service_server::EventQueryServiceServer,
        overview_service_server::OverviewServiceServer, rule_service_server::RuleServiceServer,
        trigger_service_server::TriggerServiceServer,
    },
};
use rand::{SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;
use tonic::service::{Routes, RoutesBuilder};
use tower::util::MapResponseLayer;

use super::{
    StartError, deadline::DeadlineLayer, decoding, direct::Direct, front::Front, panics, work::Work,
};
use crate::{
    clock::Clock,
    config::Config,
    delivery::{Dispatcher, Retention, recovery},
    destination::{Guard as EgressGuard, Sender},
    error::Error,
    limits::{ANSWER_BYTES_MAX, REQUEST_BYTES_MAX},
    ops::{
        client::{Clients, Keys},
        deciding::Deciding,
        delivery::{Deliveries, Holds},
        destination::{Destinations, Tester},
        disk_space::DiskSpaceWatch,
        intake::{Intake, IntakeWorkers},
        notify_open::NotifyOpen,
        receipt::ReceiptSweep,
        recent::Traffic,
        review::Reviewer,
        rule::{Installation, Rules},
        ruleset::Ruleset,
        trigger::Triggers,
    },
    rpc::{
        access::{Guard, Refusals},
        backup::Backups,
        check::Checks,
        client::ClientApi,
        data_receiver::DataReceiver,
        delivery::DeliveryCalls,
        destination::DestinationApi,
        event_management::EventManagement,
        event_query::EventQueries,
        overview::Overviews,
        rule::RuleApi,
        trigger::TriggerApi,
    },
    store::{self, Store},
};

/// What the services and the work beside them share.
struct Rooms {
    store: Store,
    clock: Arc<dyn Clock>,
    clients: Clients,
    keys: Arc<Keys>,
    deciding: Deciding,
    intake: Intake,
    sender: Sender,
    egress: Arc<EgressGuard>,
    holds: Holds,
}

/// The service, ready to be served and started.
pub(super) struct Assembled {
    /// The services, for calls without a socket.
    pub(super) routes: Routes,
    /// The same for calls past HTTP.
    pub(super) direct: Direct,
    /// The same for connections.
    pub(super) front: Front,
    /// What goes on beside the calls.
    pub(super) work: Work,
}

/// Opens the store and puts the services and the work beside them together. `own` is the address
/// that no message may go to; `streams` ends those that would go on for ever.
pub(super) async fn assemble(
    config: &Config,
    clock: Arc<dyn Clock>,
    own: SocketAddr,
    streams: CancellationToken,
) -> Result<Assembled, StartError> {
    let store = store::open(config).await?;
    let clients = Clients::new(store.clone(), Arc::clone(&clock));
    clients.ensure_admin(&config.data_dir).await?;
    recovery::recover(&store, clock.as_ref()).await?;
    let own_listeners = [&[own][..], &config.egress.own].concat();
    let egress = Arc::new(EgressGuard::new(&config.egress, own_listeners));
    let deciding = Deciding {
        store: store.clone(),
        clock: Arc::clone(&clock),
        ruleset: Arc::new(Ruleset::load(store.clone()).await.map_err(Error::from)?),
        lifetime: config.lifetime,
        traffic: Arc::new(Traffic::default()),
    };
    let (intake, workers) = Intake::new(deciding.clone());
    let sink = Arc::new(intake.clone());
    let rooms = Rooms {
        keys: Arc::new(Keys::open(store.clone(), Arc::clone(&clock)).await?),
        deciding,
        intake,
        sender: Sender::new(config, Arc::clone(&egress), Arc::clone(&clock), Some(sink)),
        egress,
        holds: Holds::default(),
        store,
        clock,
        clients,
    };
    let reports = rooms.intake.clone();
    let refusals = Refusals::new(move |event| reports.report(event, Vec::new()));
    let guard = Guard::new(Arc::clone(&rooms.keys), Arc::new(refusals));
    let work = rooms.work(config, workers);
    let receiver = DataReceiver::new(rooms.intake.clone(), Arc::clone(&rooms.clock));
    let receiver = Arc::new(receiver);
    let routes = checked(rooms.services(config, streams)?, &guard);
    let intake = DataReceiverServiceServer::from_arc(Arc::clone(&receiver))
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .max_encoding_message_size(ANSWER_BYTES_MAX);
    Ok(Assembled {
        front: Front::new(&guard, intake, routes.clone()),
        direct: Direct::new(guard, receiver),
        routes,
        work,
    })
}

impl Rooms {
    fn work(&self, config: &Config, workers: IntakeWorkers) -> Work {
        let clock = || Arc::clone(&self.clock);
        let dispatcher = Dispatcher::new(
            self.store.clone(),
            clock(),
            self.sender.clone(),
            config.delivery.clone(),
            StdRng::from_os_rng(),
        )
        .with_holds(self.holds.clone());
        let retention = Retention::new(self.store.clone(), clock(), config.delivery.retention);
        let reviewer = Reviewer::new(self.deciding.clone(), self.intake.clone());
        let disk_space = DiskSpaceWatch::new(self.store.clone(), clock(), self.intake.clone());
        let receipts = ReceiptSweep::new(self.store.clone(), clock());
        let keys = Arc::clone(&self.keys);
        let mut work = Work::default();
        work.add("intake", |stop| workers.run(stop));
        work.add("review", |stop| reviewer.run(stop));
        work.add("disk space watch", |stop| disk_space.run(stop));
        work.add("dispatcher", |stop| dispatcher.run(stop));
        work.add("retention", |stop| retention.run(stop));
        work.add("receipt sweep", |stop| receipts.run(stop));
        work.add("key watch", |stop| keys.run(stop));
        work
    }

    fn tester(&self, config: &Config) -> Tester {
        let clock = Arc::clone(&self.clock);
        let delivery = config.delivery.clone();
        Tester::new(self.store.clone(), clock, self.sender.clone(), delivery)
    }

    fn services(&self, config: &Config, streams: CancellationToken) -> Result<Routes, Error> {
        let installation = Installation {
            tenant: config.tenant.clone(),
            link_base: config.link_base.clone(),
        };
        let (store, clock) = (|| self.store.clone(), || Arc::clone(&self.clock));
        let ruleset = || Arc::clone(&self.deciding.ruleset);
        let traffic = || Arc::clone(&self.deciding.traffic);
        let opens = NotifyOpen::new(self.deciding.clone(), self.intake.clone());
        let mut services = RoutesBuilder::default();
        macro_rules! serve {
            ($($server:ident: $service:expr,)*) => {
                $(services.add_service(
                    $server::new($service)
                        .max_decoding_message_size(REQUEST_BYTES_MAX)
                        .max_encoding_message_size(ANSWER_BYTES_MAX),
                );)*
            };
        }
        serve! {
            BackupServiceServer: Backups::new(store(), streams.clone()),
            CheckServiceServer: Checks::new(store(), streams.clone()),
            TriggerServiceServer:
                TriggerApi::new(Triggers::new(store(), clock()), opens.clone(), streams.clone()),
            DestinationServiceServer:
                DestinationApi::new(Destinations::new(store(), clock()).behind(Arc::clone(&self.egress)), self.tester(config)),
            RuleServiceServer: RuleApi::new(Rules::new(store(), clock()), opens, installation),
            ClientServiceServer: ClientApi::new(self.clients.clone(), Arc::clone(&self.keys)),
            DeliveryServiceServer: DeliveryCalls::new(Deliveries::new(store(), clock()).with_holds(self.holds.clone())),
            EventQueryServiceServer: EventQueries::new(store(), clock(), ruleset(), streams),
            EventManagementServiceServer: EventManagement::new(self.deciding.clone(), self.intake.clone()),
            OverviewServiceServer: Overviews::new(store(), clock(), traffic(), ruleset()),
            DataReceiverServiceServer: DataReceiver::new(self.intake.clone(), clock()),
        }
        let (_reporter, health) = tonic_health::server::health_reporter();
        services.add_service(health);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let fault = |fault| Error::Internal(Box::new(fault));
        services.add_service(reflection().build_v1().map_err(fault)?);
        services.add_service(reflection().build_v1alpha().map_err(fault)?);
        Ok(services.routes())
    }
}

/// Puts what every call passes before all services: from the outside in, panics, messages that
/// cannot be decoded, the time limit, and admission.
fn checked(routes: Routes, guard: &Guard) -> Routes {
    let guarded = guard.protect(routes).into_axum_router();
    let checked = guarded
        .layer(DeadlineLayer)
        .layer(MapResponseLayer::new(decoding::rewrite))
        .layer(panics::layer());
    Routes::from(checked)
}
