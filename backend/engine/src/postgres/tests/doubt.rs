//! Tests of broken connections and of commits in doubt.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::sleep,
};

use super::{fresh, open};
use crate::{
    Engine,
    change::{Action, Change, Expect, Lane},
    error::EngineError,
    kind::Kind,
    position::LogPosition,
    postgres::Address,
};

const CALLERS: u8 = 6;
const CALLS: u8 = 60;

/// Starts a proxy that cuts each connection after a random time, once `begun` is set.
async fn cutting(to: SocketAddr, begun: watch::Receiver<bool>) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut from, _)) = listener.accept().await {
            let mut begun = begun.clone();
            connections.spawn(async move {
                let Ok(mut to) = TcpStream::connect(to).await else {
                    return;
                };
                // Some connections must last long enough for a commit on a slow machine.
                let longest_ms = [60, 240, 960, 3_840][rand::random_range(0..4)];
                let life = Duration::from_millis(rand::random_range(20..longest_ms));
                let end = async {
                    drop(begun.wait_for(|begun| *begun).await);
                    sleep(life).await;
                };
                // The server still processes the data that was already forwarded.
                tokio::select! {
                    () = end => {}
                    _ = copy_bidirectional(&mut from, &mut to) => {}
                }
            });
        }
    });
    (own, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_never_misreport_a_commit() {
    let Some(address) = fresh().await else { return };
    let port = address.config.get_ports()[0];
    let (begin, begun) = watch::channel(false);
    let (proxy, _tasks) = cutting(SocketAddr::from(([127, 0, 0, 1], port)), begun).await;
    let url = format!("postgres://{}@{proxy}/postgres", super::server::USER);
    let password = super::server::PASSWORD;
    let schema = address.schema.trim_matches('"');
    let through = Address::parse(&url, Some(password), schema).unwrap();
    let cut = open(&through).await;
    begin.send_replace(true);
    let call = async |caller: u8| {
        let mut answers = Vec::new();
        for number in 0..CALLS {
            let put = Action::Put(vec![caller, number]);
            let put = Change::new(Kind::Rule, &[caller, number], Expect::Absent, put);
            let lane = if number % 5 == 0 {
                Lane::Admin
            } else {
                Lane::Bulk
            };
            answers.push(cut.apply(lane, vec![put].into()).await);
        }
        answers
    };
    let answers = join_all((0..CALLERS).map(call)).await;
    let direct = open(&address).await;
    let mut answered = 0;
    for (caller, answers) in (0..CALLERS).zip(answers) {
        for (number, answer) in (0..CALLS).zip(answers) {
            let rows = direct
                .get(Kind::Rule, &[vec![caller, number]])
                .await
                .unwrap();
            let version = rows[0].as_ref().map(|row| row.version);
            match answer {
                Ok(applied) => {
                    assert_eq!(version, Some(applied.version), "{caller} {number}");
                    answered += 1;
                }
                Err(EngineError::Indeterminate(_)) => {}
                Err(error) => assert_eq!(version, None, "{caller} {number}: {error:?}"),
            }
        }
    }
    assert!(answered > 0);
    let head = direct.log_head().await.unwrap();
    let steps = direct
        .log_after(LogPosition::START, 10_000)
        .await
        .unwrap()
        .unwrap();
    let positions: Vec<_> = steps.iter().map(|step| step.position.to_number()).collect();
    assert_eq!(positions, (1..=head.to_number()).collect::<Vec<_>>());
}
