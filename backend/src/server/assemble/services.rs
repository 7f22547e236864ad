//! Creates the gRPC services.

use std::sync::Arc;

use bellwether_proto::{
    cloud::data_receiver_service_server,
    v1::{
        audit_service_server, backup_service_server, calendar_service_server, check_service_server,
        client_service_server, config_service_server, contact_service_server,
        delivery_service_server, destination_service_server, drill_service_server,
        enrichment_table_service_server, escalation_policy_service_server,
        event_management_service_server, event_query_service_server, group_service_server,
        heartbeat_service_server, inhibition_service_server, insight_service_server,
        intake_mapping_service_server, link_service_server, overview_service_server,
        pending_service_server, response_service_server, rule_service_server,
        schedule_service_server, settings_service_server, sign_in_service_server,
        silence_service_server, trigger_service_server, view_service_server,
    },
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::server::{HealthReporter, health_reporter};

use super::Modules;
use crate::{
    config::Config,
    error::Error,
    limits::{ANSWER_BYTES_MAX, REQUEST_BYTES_MAX},
    ops::{
        calendar::{CalendarApi, Calendars},
        config::Impacts,
        contact::Contacts,
        delivery::Deliveries,
        destination::Destinations,
        drill::{DrillApi, Drills},
        enrichment::{EnrichmentPreviews, EnrichmentTableApi, EnrichmentTables},
        escalation_policy::{EscalationPolicies, EscalationPolicyApi, PolicyPreview},
        fields::FieldCache,
        heartbeat::{Expectations, HeartbeatKeys, HeartbeatPreviews, Heartbeats},
        inhibition::{InhibitionApi, InhibitionPreviews, Inhibitions},
        intake_mapping::{Evaluator, Handshakes, Mappings, RejectedDocuments, ThreadActions},
        link::{SignedLinks, link_config},
        noise::NoiseReports,
        notify_open::OpenNotifier,
        response::Responses,
        rule::{Installation, RuleApi, Rules},
        saved_view::{SavedViews, ViewApi},
        schedule::Schedules,
        settings::InstallationSettings,
        sign_in::SignInStates,
        silence::SilenceOperations,
        trigger::{TriggerApi, Triggers},
    },
    rpc::{
        audit_log::AuditApi, backup::BackupApi, check::CheckApi, client::ClientApi,
        config::ConfigApi, contact::ContactApi, data_receiver::DataReceiver, delivery::DeliveryApi,
        destination::DestinationApi, event_management::EventManagementApi,
        event_query::EventQueryApi, group::GroupApi, heartbeat::HeartbeatApi, insight::InsightApi,
        intake_mapping::IntakeMappingApi, link::LinkApi, logs, overview::OverviewApi,
        pending::PendingApi, response::ResponseApi, schedule::ScheduleApi, settings::SettingsApi,
        sign_in::SignInApi, silence::SilenceApi,
    },
    server::{health::report_health, reflection},
    store::engine::Condition,
};

impl Modules {
    #[expect(clippy::too_many_lines, reason = "a row for each service")]
    pub(super) async fn services(
        &self,
        config: &Config,
        streams: CancellationToken,
    ) -> Result<(Routes, HealthReporter), Error> {
        let installation = Installation {
            settings: self.deciding.ruleset.settings(),
            // Previews are displayed rather than sent, so their links must not contain valid
            // signatures.
            links: link_config(config, &self.store, &self.clock, &self.audit)
                .with_masked_signatures(),
            renderers: self.sender.renderers(),
        };
        let (store, clock) = (|| self.store.clone(), || Arc::clone(&self.clock));
        let ruleset = || Arc::clone(&self.deciding.ruleset);
        let fields = FieldCache::new(store(), clock());
        let deliveries = Deliveries::new(store(), clock())
            .with_holds(self.holds.clone())
            .with_fields(fields.clone());
        let events = || {
            let (fields, deliveries) = (fields.clone(), deliveries.clone());
            EventQueryApi {
                store: store(),
                clock: clock(),
                ruleset: ruleset(),
                fields,
                deliveries,
                shutdown: streams.clone(),
            }
        };
        let (deciding, intake) = (|| self.deciding.clone(), || self.intake.clone());
        let groups = || GroupApi {
            deciding: deciding(),
            intake: intake(),
        };
        let responses = || Responses::new(deciding(), intake(), deliveries.clone());
        let signed = || SignedLinks::new(store(), clock(), config.link_lifetime);
        let tester = self.tester(config);
        let opens = OpenNotifier::new(deciding(), intake());
        let impacts = Arc::new(Impacts::new(self.configuration(), deciding()));
        let logs = logs::serve(DataReceiver::new(intake(), clock()), config.logs.clone());
        let servers = [
            audit_service_server::serve(AuditApi {
                log: Arc::clone(&self.audit),
            }),
            backup_service_server::serve(BackupApi::new(store(), streams.clone())),
            calendar_service_server::serve(CalendarApi {
                calendars: Calendars::new(store(), clock()),
            }),
            check_service_server::serve(CheckApi::new(store(), streams.clone())),
            contact_service_server::serve(ContactApi::new(
                Contacts::new(store(), clock()),
                Arc::clone(&tester),
                signed(),
                &config.link_base,
            )),
            enrichment_table_service_server::serve(EnrichmentTableApi {
                tables: EnrichmentTables::new(store(), clock()),
                previews: EnrichmentPreviews::new(
                    EnrichmentTables::new(store(), clock()),
                    ruleset(),
                ),
            }),
            escalation_policy_service_server::serve(EscalationPolicyApi {
                policies: EscalationPolicies::new(store(), clock()),
                preview: PolicyPreview::new(EscalationPolicies::new(store(), clock()), ruleset()),
            }),
            response_service_server::serve(ResponseApi {
                responses: responses(),
            }),
            schedule_service_server::serve(ScheduleApi::new(
                Schedules::new(store(), clock()),
                signed(),
                &config.link_base,
            )),
            trigger_service_server::serve(TriggerApi {
                triggers: Triggers::new(store(), clock()),
                opens: opens.clone(),
                shutdown: streams.clone(),
            }),
            destination_service_server::serve(DestinationApi::new(
                Destinations::new(store(), clock()).with_guard(Arc::clone(&self.egress)),
                Arc::clone(&tester),
                ruleset(),
            )),
            rule_service_server::serve(RuleApi {
                rules: Rules::new(store(), clock()),
                opens,
                installation: installation.clone(),
            }),
            client_service_server::serve(ClientApi {
                clients: self.clients.clone(),
                keys: Arc::clone(&self.keys),
            }),
            config_service_server::serve(ConfigApi {
                configuration: self.configuration(),
                impacts,
            }),
            insight_service_server::serve(InsightApi {
                reports: NoiseReports::new(store(), clock()),
            }),
            delivery_service_server::serve(DeliveryApi {
                deliveries: deliveries.clone(),
                installation,
            }),
            event_query_service_server::serve(events()),
            event_management_service_server::serve(EventManagementApi {
                deciding: deciding(),
                intake: intake(),
            }),
            settings_service_server::serve(SettingsApi {
                settings: InstallationSettings::new(store(), clock()),
                store: store(),
            }),
            sign_in_service_server::serve(SignInApi::new(
                self.users.as_ref().map(|it| Arc::clone(it.sign_ins())),
                SignInStates::new(store(), clock()),
            )),
            silence_service_server::serve(SilenceApi {
                silences: SilenceOperations::new(deciding(), intake()),
            }),
            group_service_server::serve(groups()),
            drill_service_server::serve(DrillApi {
                drills: Drills::new(store(), clock()),
                intake: intake(),
            }),
            heartbeat_service_server::serve(HeartbeatApi {
                heartbeats: Heartbeats::new(store(), clock()),
                expectations: Expectations::new(deciding(), intake()),
                keys: HeartbeatKeys::new(store(), clock()),
                previews: HeartbeatPreviews::new(Heartbeats::new(store(), clock()), deciding()),
            }),
            inhibition_service_server::serve(InhibitionApi {
                inhibitions: Inhibitions::new(store(), clock()),
                previews: InhibitionPreviews::new(Inhibitions::new(store(), clock()), deciding()),
            }),
            intake_mapping_service_server::serve(IntakeMappingApi {
                mappings: Mappings::new(store(), clock()),
                receiver: DataReceiver::new(intake(), clock()),
                evaluator: Evaluator::new(self.sender.renderers()),
                handshakes: Handshakes::new(self.sender.clone()),
                actions: ThreadActions::new(deciding(), intake()),
                rejected: RejectedDocuments::default(),
                clock: clock(),
            }),
            pending_service_server::serve(PendingApi {
                deciding: deciding(),
                intake: intake(),
            }),
            link_service_server::serve(LinkApi {
                audit: Arc::clone(&self.audit),
                links: signed(),
                events: events(),
                groups: groups(),
                responses: responses(),
                schedules: Schedules::new(store(), clock()),
                contacts: Contacts::new(store(), clock()),
            }),
            overview_service_server::serve(OverviewApi::new(
                store(),
                clock(),
                ruleset(),
                config.data_dir.clone(),
            )),
            view_service_server::serve(ViewApi {
                views: SavedViews::new(store(), clock()),
            }),
            data_receiver_service_server::serve(DataReceiver::new(intake(), clock())),
        ];
        let mut routes = logs.add_to(Routes::default());
        for server in servers {
            routes = server
                .max_decoding_message_size(REQUEST_BYTES_MAX)
                .max_encoding_message_size(ANSWER_BYTES_MAX)
                .add_to(routes);
        }
        let (reporter, health) = health_reporter();
        report_health(&reporter, &Condition::default(), false).await;
        let routes = reflection::add_services(routes.add_service(health));
        Ok((routes, reporter))
    }
}
