//! The connection to the service: connects, detects failures, and reconnects after a pause.

use std::{future::pending, sync::Arc, time::Duration};

use bellwether_proto::v1::{GetCallerRequest, client_service_client::ClientServiceClient};
use rand::Rng;
use tokio::{
    sync::{
        Semaphore, mpsc,
        watch::{Receiver, Sender},
    },
    task::{AbortHandle, JoinSet},
    time::{self, Instant},
};
use tonic::{service::interceptor::InterceptedService, transport::Endpoint};

use super::{
    call::Call,
    carrier::{Carrier, KeyHolder, Transport, not_connected},
    failure::{failure, unreachable},
    keys::Keys,
    line::{LastReceiveTime, MonitoredConnector, is_user_active, wait_for_silence},
    protocol::{Command, EventFilter, LinkState, ServerUpdate, Ticket},
    trial,
    watch::{self, ResumePosition},
};
use crate::{
    data::{Caller, Failure, FailureKind},
    limits,
};

/// The console's end of the connection. Dropping it ends the connection's tasks.
#[derive(Debug)]
pub(crate) struct Link {
    commands: mpsc::Sender<Command>,
    updates: mpsc::Receiver<ServerUpdate>,
    attended: Sender<Instant>,
    _tasks: JoinSet<()>,
}

impl Link {
    /// Queues a command without waiting. Returns `false` if the queue is full.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }

    pub(crate) fn record_key_press(&self) {
        self.attended.send_replace(Instant::now());
    }

    /// Waits for the next update, without a timeout.
    ///
    /// # Cancel safety
    /// No message is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> ServerUpdate {
        match self.updates.recv().await {
            Some(update) => update,
            None => pending().await,
        }
    }

    pub(crate) fn try_next(&mut self) -> Option<ServerUpdate> {
        self.updates.try_recv().ok()
    }
}

/// Starts the connection. The first attempt begins immediately.
pub(crate) fn start(endpoint: Endpoint, keys: Keys, keep_alive: bool) -> Link {
    let attended = Sender::new(Instant::now());
    let (commands, command_queue) = mpsc::channel(limits::QUEUE);
    let (update_queue, updates) = mpsc::channel(limits::QUEUE);
    let supervisor = Supervisor {
        endpoint,
        keys,
        commands: command_queue,
        updates: update_queue,
        attended: keep_alive.then(|| attended.subscribe()),
        watched: None,
        followed_with: 0,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(supervisor.run());
    Link {
        commands,
        updates,
        attended,
        _tasks: tasks,
    }
}

#[derive(Clone)]
struct WatchedStream {
    generation: Ticket,
    filter: EventFilter,
    position: ResumePosition,
}

struct Supervisor {
    endpoint: Endpoint,
    keys: Keys,
    commands: mpsc::Receiver<Command>,
    updates: mpsc::Sender<ServerUpdate>,
    /// Time of the last key press; `None` for a service in this process.
    attended: Option<Receiver<Instant>>,
    watched: Option<WatchedStream>,
    followed_with: u64,
}

enum LinkEnd {
    Broken(Failure),
    Over,
}

impl Supervisor {
    async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            self.send_update(ServerUpdate::Link(LinkState::Connecting))
                .await;
            let failure = match self.connect().await {
                Ok((carrier, caller, last_received)) => {
                    failures = 0;
                    self.send_update(ServerUpdate::Link(LinkState::Up(caller)))
                        .await;
                    match self.serve_commands(carrier, last_received).await {
                        LinkEnd::Broken(failure) => failure,
                        LinkEnd::Over => return,
                    }
                }
                Err(failure) => failure,
            };
            let pause = backoff(failures);
            failures = failures.saturating_add(1);
            let retry_in_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            self.send_update(ServerUpdate::Link(LinkState::Down {
                failure,
                retry_in_ms,
            }))
            .await;
            if !self.wait_disconnected(pause).await {
                return;
            }
        }
    }

    async fn send_update(&self, update: ServerUpdate) {
        // An error means that the console has ended. The end of the command queue stops the
        // connection.
        let _closed = self.updates.send(update).await;
    }

    async fn connect(&mut self) -> Result<(Carrier, Caller, LastReceiveTime), Failure> {
        let last_received = LastReceiveTime::now();
        let attempt = connect_over(
            self.endpoint.clone(),
            self.keys.clone(),
            last_received.clone(),
        );
        tokio::pin!(attempt);
        loop {
            tokio::select! {
                result = &mut attempt => {
                    return result.map(|(carrier, caller)| (carrier, caller, last_received));
                }
                command = self.commands.recv() => match command {
                    Some(command) => reject_command(&self.updates, &mut self.watched, command).await,
                    None => pending().await,
                },
            }
        }
    }

    /// Rejects commands while there is no connection. Returns `false` if the console has ended.
    async fn wait_disconnected(&mut self, pause: Duration) -> bool {
        let pause = time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return true,
                command = self.commands.recv() => match command {
                    Some(Command::RetryNow) => return true,
                    Some(command) => reject_command(&self.updates, &mut self.watched, command).await,
                    None => return false,
                },
            }
        }
    }

    async fn serve_commands(
        &mut self,
        carrier: Carrier,
        last_received: LastReceiveTime,
    ) -> LinkEnd {
        let mut calls: JoinSet<Option<Failure>> = JoinSet::new();
        let mut running: Vec<(Ticket, AbortHandle)> = Vec::new();
        let places = Arc::new(Semaphore::new(limits::CALLS_AT_ONCE));
        let mut stream = Stream::closed();
        self.follow_stream(&mut stream, (&carrier, &last_received));
        let mut beside = self.spawn_tasks(&carrier, &last_received);
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Call(ticket, call)) => {
                        running.retain(|(_, handle)| !handle.is_finished());
                        let call = make_call(carrier.clone(), self.updates.clone(), ticket, call);
                        let places = Arc::clone(&places);
                        let call = async move {
                            let _place = places.acquire().await;
                            call.await
                        };
                        running.push((ticket, calls.spawn(call)));
                    }
                    Some(Command::Abandon(ticket)) => {
                        for (_, handle) in running.iter().filter(|(other, _)| *other == ticket) {
                            handle.abort();
                        }
                    }
                    Some(Command::Watch { generation, filter, resume_token }) => {
                        let position = ResumePosition::new(resume_token);
                        self.watched = Some(WatchedStream { generation, filter, position });
                        self.follow_stream(&mut stream, (&carrier, &last_received));
                    }
                    Some(Command::RetryNow) => {}
                    None => return LinkEnd::Over,
                },
                Some(ended) = calls.join_next() => match ended {
                    Ok(Some(failure)) => return LinkEnd::Broken(failure),
                    Ok(None) => {}
                    Err(error) if error.is_panic() => {
                        let words = "internal error in the console; see the log";
                        return LinkEnd::Broken(Failure::new(FailureKind::Internal, words));
                    }
                    Err(_cancelled) => {}
                },
                Some(_silent) = beside.join_next() => {
                    let silent = Failure::new(FailureKind::Unreachable, watch::SILENT);
                    return LinkEnd::Broken(silent);
                }
                ended = stream.join() => match ended {
                    watch::StreamEnd::Broken(failure) => {
                        // The service ends a stream when the key with which it was opened expires.
                        let is_outlived = failure.kind == FailureKind::Unauthenticated
                            && self.keys.change_count() != self.followed_with;
                        if !is_outlived {
                            return LinkEnd::Broken(failure);
                        }
                        self.follow_stream(&mut stream, (&carrier, &last_received));
                    }
                    watch::StreamEnd::Behind => self.follow_stream(&mut stream, (&carrier, &last_received)),
                    watch::StreamEnd::Refused(generation, failure) => {
                        self.send_update(ServerUpdate::WatchRejected { generation, failure }).await;
                        stream = Stream::closed();
                    }
                },
            }
        }
    }

    /// Starts the tasks of a connection, which end if the service is silent for too long.
    fn spawn_tasks(&self, carrier: &Carrier, last_received: &LastReceiveTime) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if self.keys.can_change() {
            tasks.spawn(renew_periodically(self.keys.clone(), self.attended.clone()));
        }
        if let Some(attended) = &self.attended {
            tasks.spawn(wait_for_silence(
                carrier.clone(),
                last_received.clone(),
                attended.clone(),
            ));
        }
        tasks
    }

    fn follow_stream(
        &mut self,
        stream: &mut Stream,
        (carrier, last_received): (&Carrier, &LastReceiveTime),
    ) {
        self.followed_with = self.keys.change_count();
        *stream = match &self.watched {
            Some(watched) => {
                let reports = (self.updates.clone(), last_received.clone());
                Stream::start(carrier.clone(), watched.clone(), reports)
            }
            None => Stream::closed(),
        };
    }
}

/// The stream of events, which also shows that the connection is alive. Dropping it ends the call.
struct Stream(JoinSet<watch::StreamEnd>);

impl Stream {
    fn closed() -> Self {
        Self(JoinSet::new())
    }

    fn start(
        carrier: Carrier,
        watched: WatchedStream,
        reports: (mpsc::Sender<ServerUpdate>, LastReceiveTime),
    ) -> Self {
        let mut task = JoinSet::new();
        let WatchedStream {
            generation,
            filter,
            position,
        } = watched;
        task.spawn(watch::follow_events(
            carrier, generation, filter, position, reports,
        ));
        Self(task)
    }

    async fn join(&mut self) -> watch::StreamEnd {
        match self.0.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(_panicked)) => watch::StreamEnd::Broken(Failure::new(
                FailureKind::Internal,
                "internal error in the console",
            )),
            None => pending().await,
        }
    }
}

/// Renews the key periodically, so that calls use the new one before the old one expires.
async fn renew_periodically(keys: Keys, mut attended: Option<Receiver<Instant>>) {
    loop {
        let pause = if attended.as_mut().is_none_or(is_user_active) {
            limits::KEY_LOOK
        } else {
            limits::KEY_CHECK_UNATTENDED
        };
        time::sleep(pause).await;
        // An error is ignored: the old key may still be valid. If it is not, reconnecting shows the
        // error.
        let _failed = keys.renew().await;
    }
}

pub(crate) async fn connect(endpoint: Endpoint, keys: Keys) -> Result<(Carrier, Caller), Failure> {
    connect_over(endpoint, keys, LastReceiveTime::now()).await
}

async fn connect_over(
    endpoint: Endpoint,
    keys: Keys,
    last_received: LastReceiveTime,
) -> Result<(Carrier, Caller), Failure> {
    keys.renew().await?;
    let channel = endpoint
        .connect_timeout(limits::CONNECT)
        .connect_with_connector(MonitoredConnector::new(last_received))
        .await
        .map_err(|error| unreachable(&error))?;
    let carrier = InterceptedService::new(channel, KeyHolder::new(keys));
    let mut service = ClientServiceClient::new(carrier.clone());
    let call = service.get_caller(GetCallerRequest {});
    let answer = match time::timeout(limits::CONNECT, call).await {
        Ok(answer) => answer.map_err(|status| failure(&status))?,
        Err(_elapsed) => {
            return Err(Failure::new(
                FailureKind::Unreachable,
                "connected, but the service does not respond",
            ));
        }
    };
    let client = answer.into_inner().client.unwrap_or_default();
    let role = client.role();
    let name = client.name;
    Ok((carrier, Caller { name, role }))
}

async fn make_call(
    carrier: Carrier,
    updates: mpsc::Sender<ServerUpdate>,
    ticket: Ticket,
    call: Call,
) -> Option<Failure> {
    let mut reach = Transport::from_carrier(carrier);
    reach.limit = call.limit;
    let answer = if call.method == trial::METHOD {
        trial::run_trial(&mut reach, &updates, ticket, &call.body).await
    } else {
        reach.request(call.service, call.method, &call.body).await
    };
    let _closed = updates.send(ServerUpdate::CallResult(ticket, answer)).await;
    reach.broken
}

async fn reject_command(
    updates: &mpsc::Sender<ServerUpdate>,
    watched: &mut Option<WatchedStream>,
    command: Command,
) {
    match command {
        Command::Call(ticket, _) => {
            let _closed = updates
                .send(ServerUpdate::CallResult(ticket, Err(not_connected())))
                .await;
        }
        Command::Watch {
            generation,
            filter,
            resume_token,
        } => {
            *watched = Some(WatchedStream {
                generation,
                filter,
                position: ResumePosition::new(resume_token),
            });
        }
        Command::Abandon(_) | Command::RetryNow => {}
    }
}

/// Returns the pause after this many consecutive failures: doubled each time, with up to 20 % of
/// jitter.
fn backoff(failures: u32) -> Duration {
    let base = limits::FIRST_PAUSE
        .saturating_mul(1 << failures.min(5))
        .min(limits::LONGEST_PAUSE);
    base.mul_f64(rand::rng().random_range(0.8..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnect_backoff_grows_to_its_maximum() {
        assert!(backoff(0) <= limits::FIRST_PAUSE);
        assert!(backoff(0) >= limits::FIRST_PAUSE.mul_f64(0.79));
        for failures in 0..40 {
            assert!(backoff(failures) <= limits::LONGEST_PAUSE);
        }
        assert!(backoff(30) >= limits::LONGEST_PAUSE.mul_f64(0.79));
    }
}
