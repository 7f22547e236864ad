//! Assembles the modules of the service.

mod services;

use std::{net::SocketAddr, sync::Arc};

use bellwether_proto::cloud::data_receiver_service_server;
use rand::{SeedableRng as _, rngs::StdRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;
use tower::util::MapResponseLayer;

use super::{
    StartError,
    counted::CountedLayer,
    deadline::DeadlineLayer,
    decoding,
    direct::Direct,
    exposition::Exposition,
    front::Front,
    health::Health,
    panics,
    work::{TaskSet, run_while_leading},
};
use crate::{
    background::Background,
    clock::Clock,
    config::{Config, ReportPublisher},
    delivery::{Dispatcher, DispatcherStatus, EgressWatch, PingTask, Retention, recovery},
    error::{Error, log_failure},
    limits::{ANSWER_BYTES_MAX, DIALECT_BYTES_MAX},
    metrics::LabelValues,
    oidc::SignIns,
    ops::{
        audit::AuditLog,
        certificate::CertificateWatch,
        client::{Clients, Keys},
        clock_watch::ClockWatch,
        config::Configuration,
        decision_context::DecisionContext,
        delivery::QueueHolds,
        destination::{FailingWatch, Tester},
        heartbeat::{BeatFlush, HeartbeatWatch},
        hold_watch::HoldWatch,
        intake::{Intake, IntakeWorkers},
        link::link_config,
        oncall_watch::OnCallWatch,
        receipt::ReceiptSweep,
        review::{AgeReviewer, Reviewer},
        ruleset::Ruleset,
        settings::{self, SettingsWatch},
        statistics::CounterAging,
        store_loss,
        store_watch::StoreWatch,
    },
    rpc::{
        access::{CallGuard, Refusals, SignedInUsers, refusal_words},
        code,
        data_receiver::{DataReceiver, dialect_words},
        methods,
    },
    scan::ScanService,
    send::{EgressGuard, PingFailure, RenderPurpose, Sender},
    store::{self, Duty, Engine, Store},
};

struct Modules {
    store: Store,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    clients: Clients,
    keys: Arc<Keys>,
    users: Option<Arc<SignedInUsers>>,
    audit: Arc<AuditLog>,
    deciding: DecisionContext,
    intake: Intake,
    sender: Sender,
    egress: Arc<EgressGuard>,
    holds: QueueHolds,
    dispatcher: watch::Sender<DispatcherStatus>,
    unreached: watch::Sender<Vec<String>>,
    publisher: ReportPublisher,
}

pub(super) struct AssembledServer {
    pub(super) routes: Routes,
    pub(super) direct: Direct,
    pub(super) front: Front,
    pub(super) work: TaskSet,
    pub(super) certificate: CertificateWatch,
    pub(super) metrics: Arc<Exposition>,
    /// The engine, closed after all other parts have stopped.
    pub(super) engine: Arc<dyn Engine>,
}

/// Opens the store and assembles services and background work. `own` is the address that messages
/// must not be sent to. `streams` ends streams that would run forever.
pub(super) async fn assemble(
    config: &Config,
    clock: Arc<dyn Clock>,
    own: SocketAddr,
    streams: CancellationToken,
) -> Result<AssembledServer, StartError> {
    let store = store::open(&config.location()).await?;
    let engine = Arc::clone(store.engine());
    let assembled = assemble_with_store(store, config, clock, own, streams).await;
    if assembled.is_err() {
        drop(engine.close().await);
    }
    assembled
}

async fn assemble_with_store(
    store: Store,
    config: &Config,
    clock: Arc<dyn Clock>,
    own: SocketAddr,
    streams: CancellationToken,
) -> Result<AssembledServer, StartError> {
    let engine = Arc::clone(store.engine());
    let (modules, workers) = Modules::open(store, config, clock, own).await?;
    modules.store.metrics().create_series(&known_labels());
    if let Some(losses) = &config.losses {
        modules.store.metrics().record_store_losses(losses.count);
    }
    let scans = ScanService::start().map_err(StartError::Threads)?;
    let guard = modules
        .guard(scans)
        .with_trusted_proxies(config.proxies.clone());
    let reviewing = Background::start("review").map_err(StartError::Threads)?;
    let (services, health) = modules.services(config, streams).await?;
    let mut work = modules.background_work(config, workers, (reviewing, health));
    if modules.store.engine().is_shared() {
        let clock_watch = Arc::clone(&modules.clock_watch);
        work.add("clock watch", |stop| clock_watch.run(stop));
    }
    if let Some(losses) = &config.losses {
        let event = store_loss::store_loss_event(losses, modules.clock.now_ms());
        let intake = modules.intake.clone();
        work.add("lost commits report", |stop| {
            store_loss::report_store_loss(intake, event, stop)
        });
    }
    let certificate = CertificateWatch::new(
        modules.store.clone(),
        Arc::clone(&modules.clock),
        modules.intake.clone(),
    );
    let metrics = Arc::new(modules.exposition(config, &guard));
    let receiver = DataReceiver::new(modules.intake.clone(), Arc::clone(&modules.clock));
    let receiver = Arc::new(receiver);
    let counted = CountedLayer(modules.store.metrics().clone());
    let routes = with_layers(services, &guard, &counted);
    let intake = data_receiver_service_server::serve_shared(Arc::clone(&receiver))
        .max_decoding_message_size(DIALECT_BYTES_MAX)
        .max_encoding_message_size(ANSWER_BYTES_MAX);
    Ok(AssembledServer {
        front: Front::new(&guard, &counted, intake, routes.clone()),
        direct: Direct::new(guard, receiver, counted.0),
        routes,
        work,
        certificate,
        metrics,
        engine,
    })
}

impl Modules {
    async fn open(
        store: Store,
        config: &Config,
        clock: Arc<dyn Clock>,
        own: SocketAddr,
    ) -> Result<(Self, IntakeWorkers), StartError> {
        let below = store.engine().clock().unwrap_or(clock);
        let clock_watch = ClockWatch::open(store.clone(), below).await;
        let clock_watch = Arc::new(clock_watch.map_err(Error::from)?);
        if !store.engine().is_shared() {
            // The clock may have been set while no process ran.
            if let Err(error) = clock_watch.apply(&store).await {
                log_failure("failed to apply a clock change", &error);
            }
        }
        let clock: Arc<dyn Clock> = clock_watch.clock();
        let clients = Clients::new(store.clone(), Arc::clone(&clock));
        store
            .begin_counting(clock.now_ms())
            .await
            .map_err(Error::from)?;
        if config.database.is_none() {
            clients.ensure_admin(&config.data_dir).await?;
        }
        recovery::recover(&store, clock.as_ref()).await?;
        recovery::record_thread_states(&store).await?;
        settings::store_initial(&store, clock.as_ref(), config).await?;
        let own_listeners = [&[own][..], &config.egress.own].concat();
        let egress = Arc::new(EgressGuard::new(&config.egress, own_listeners));
        let deciding = DecisionContext {
            store: store.clone(),
            clock: Arc::clone(&clock),
            ruleset: Arc::new(Ruleset::load(store.clone()).await.map_err(Error::from)?),
            beats: Arc::default(),
        };
        let (intake, workers) = Intake::new(deciding.clone());
        let sink = Arc::new(intake.clone());
        let users = config.oidc.clone().map(|oidc| {
            let sign_ins = SignIns::new(oidc, Arc::clone(&clock));
            Arc::new(SignedInUsers::new(Arc::new(sign_ins), Arc::clone(&clock)))
        });
        let audit = Arc::new(AuditLog::new(store.clone(), Arc::clone(&clock)));
        let modules = Self {
            users,
            keys: Arc::new(Keys::open(store.clone(), Arc::clone(&clock)).await?),
            sender: Sender::new(
                config,
                deciding.ruleset.settings(),
                Arc::clone(&egress),
                Arc::clone(&clock),
                link_config(config, &store, &clock, &audit),
                Some(sink),
            )
            .with_metrics(store.metrics().clone()),
            audit,
            deciding,
            intake,
            egress,
            holds: QueueHolds::default(),
            dispatcher: watch::Sender::default(),
            unreached: watch::Sender::default(),
            publisher: ReportPublisher::new(Arc::clone(store.engine())),
            store,
            clock,
            clock_watch,
            clients,
        };
        Ok((modules, workers))
    }

    fn guard(&self, scans: ScanService) -> CallGuard {
        let reports = self.intake.clone();
        let refusals = Refusals::new(move |event| reports.report(event, Vec::new()))
            .with_metrics(self.store.metrics().clone());
        let (keys, audit) = (Arc::clone(&self.keys), Arc::clone(&self.audit));
        CallGuard::new(keys, Arc::new(refusals), audit, scans).with_users(self.users.clone())
    }

    fn exposition(&self, config: &Config, guard: &CallGuard) -> Exposition {
        Exposition {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            ruleset: Arc::clone(&self.deciding.ruleset),
            intake: self.intake.clone(),
            guard: guard.clone(),
            holds: self.holds.clone(),
            dispatcher: self.dispatcher.subscribe(),
            data_dir: config.data_dir.clone(),
        }
    }

    fn background_work(
        &self,
        config: &Config,
        workers: IntakeWorkers,
        (threads, reporter): (Background, HealthReporter),
    ) -> TaskSet {
        let clock = Arc::clone(&self.clock);
        let store_watch = StoreWatch::new(self.store.clone(), clock, self.intake.clone());
        let holds = HoldWatch::new(
            self.store.clone(),
            Arc::clone(&self.clock),
            self.intake.clone(),
        );
        let health = Health {
            reporter,
            engine: Arc::clone(self.store.engine()),
            condition: store_watch.condition(),
            renderers: self.sender.renderers(),
            are_holds_late: holds.watch_lateness(),
        };
        let (keys, audit) = (Arc::clone(&self.keys), Arc::clone(&self.audit));
        let mut work = TaskSet::default();
        work.add("intake", |stop| workers.run(stop));
        work.add("store watch", |stop| store_watch.run(stop));
        work.add("health", |stop| health.report_until_shutdown(stop));
        work.add("hold watch", |stop| holds.run(stop));
        work.add("key watch", |stop| keys.run(stop));
        work.add("audit log", |stop| audit.run(stop));
        let beats = BeatFlush::new(self.deciding.clone());
        work.add("beats", |stop| beats.run(stop));
        let settings = SettingsWatch::new(
            self.store.clone(),
            Arc::clone(&self.clock),
            Arc::clone(&self.deciding.ruleset),
            self.intake.clone(),
            (config.clone(), self.publisher.clone()),
        );
        work.add("settings watch", |stop| settings.run(stop));
        if let Some(users) = &self.users {
            let sign_ins = Arc::clone(users.sign_ins());
            work.add("provider keys", |stop| sign_ins.run(stop));
            let users = Arc::clone(users);
            work.add("people watch", |stop| users.run(stop));
        }
        let egress = EgressWatch {
            store: self.store.clone(),
            ruleset: Arc::clone(&self.deciding.ruleset),
            sender: self.sender.clone(),
            unreached: self.unreached.subscribe(),
            publisher: self.publisher.clone(),
        };
        work.add("egress watch", |stop| egress.run(stop));
        if let Some(ping) = config.ping.clone() {
            let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
            let pings = PingTask::new(store, clock, self.sender.clone(), ping);
            work.add("monitor pings", |stop| pings.run(stop));
        }
        let dispatcher = self.dispatcher(config);
        work.add("dispatcher", |stop| dispatcher.run(stop));
        let ageing = AgeReviewer::new(&self.deciding, self.intake.clone());
        let apart = threads.clone();
        work.add("ageing", |stop| apart.run(ageing.run(stop)));
        let engine = || Arc::clone(self.store.engine());
        let (leading, of_the_leader) = (engine(), self.leader_work());
        work.add("leading work", |stop| {
            threads.run(run_while_leading(leading, of_the_leader, stop))
        });
        let engine = engine();
        work.add("store share", |stop| async move {
            stop.run_until_cancelled(engine.cluster().wait_until_forgotten())
                .await;
        });
        work
    }

    /// Creates the dispatcher. If nodes share the store, each node delivers to the destinations
    /// that it owns.
    fn dispatcher(&self, config: &Config) -> Dispatcher {
        Dispatcher::new(
            self.store.clone(),
            Arc::clone(&self.clock),
            self.sender.clone(),
            config.delivery.clone(),
            StdRng::from_os_rng(),
        )
        .with_holds(self.holds.clone())
        .with_unreachable_sender(self.unreached.clone())
        .with_status_channel(self.dispatcher.clone())
    }

    /// Returns a function that creates the leader's work, called each time this node becomes the
    /// leader.
    fn leader_work(&self) -> impl Fn() -> TaskSet + Send + Sync + 'static {
        let (shared, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let (deciding, intake) = (self.deciding.for_leader(Duty::Review), self.intake.clone());
        let clock_watch = Arc::clone(&self.clock_watch);
        move || {
            let store = || shared.for_leader(Duty::Sweep);
            let clock = || Arc::clone(&clock);
            let reviewer = Reviewer::new(deciding.clone(), intake.clone());
            // Commits of this work must not count as progress of the review.
            let expecting = deciding.for_leader(Duty::Sweep);
            let on_call = OnCallWatch::new(expecting.clone(), intake.clone());
            let failing = FailingWatch::new(expecting.clone(), intake.clone());
            let heartbeats = HeartbeatWatch::new(expecting, intake.clone());
            let retention = Retention::new(store(), clock(), deciding.ruleset.settings());
            let aging = CounterAging::new(store(), clock());
            let receipts = ReceiptSweep::new(store(), clock());
            let mut work = TaskSet::default();
            let (steps, leading) = (Arc::clone(&clock_watch), store());
            work.add("clock changes", |stop| steps.run_as_leader(leading, stop));
            work.add("review", |stop| reviewer.run(stop));
            work.add("heartbeats", |stop| heartbeats.run(stop));
            work.add("on call", |stop| on_call.run(stop));
            work.add("failing destinations", |stop| failing.run(stop));
            work.add("retention", |stop| retention.run(stop));
            work.add("counters", |stop| aging.run(stop));
            work.add("receipt sweep", |stop| receipts.run(stop));
            work
        }
    }

    fn configuration(&self) -> Configuration {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        Configuration::new(store, clock, Arc::clone(&self.egress))
    }

    fn tester(&self, config: &Config) -> Arc<Tester> {
        let clock = Arc::clone(&self.clock);
        let delivery = config.delivery.clone();
        let sender = self.sender.clone();
        Arc::new(Tester::new(self.store.clone(), clock, sender, delivery))
    }
}

fn known_labels() -> LabelValues {
    LabelValues {
        dialects: dialect_words().collect(),
        codes: code::errors().collect(),
        methods: methods::method_names().collect(),
        refusals: refusal_words().into(),
        pings: [&["accepted"][..], &PingFailure::WORDS].concat(),
        purposes: RenderPurpose::ALL.map(RenderPurpose::as_str).into(),
    }
}

/// Wraps the services in the layers of every call, from the outside: metrics, panics, decoding
/// errors, deadline, and admission.
fn with_layers(routes: Routes, guard: &CallGuard, counted: &CountedLayer) -> Routes {
    let guarded = guard.protect_routes(routes).into_axum_router();
    let checked = guarded
        .layer(DeadlineLayer)
        .layer(MapResponseLayer::new(decoding::rewrite_response))
        .layer(panics::catch_panic_layer())
        .layer(counted.clone());
    Routes::from(checked)
}
