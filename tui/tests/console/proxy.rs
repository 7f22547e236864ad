//! A proxy for stalling and cutting a connection.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::watch,
    task::JoinSet,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// No data is forwarded, and no error is reported.
    Stalled,
    /// Open and new connections are closed.
    Cut,
}

/// A proxy between a console and a service; dropping it closes all connections.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    fault: Arc<watch::Sender<Fault>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fault = Arc::new(watch::Sender::new(Fault::None));
        let mut tasks = JoinSet::new();
        let message = fault.subscribe();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, service, message.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            fault,
            _tasks: tasks,
        }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

async fn carry(client: TcpStream, service: SocketAddr, fault: watch::Receiver<Fault>) {
    let mut cut = fault.clone();
    let Ok(service) = TcpStream::connect(service).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_service, to_service) = service.into_split();
    tokio::select! {
        _ = cut.wait_for(|fault| *fault == Fault::Cut) => {}
        () = copy(from_client, to_service, fault.clone()) => {}
        () = copy(from_service, to_client, fault) => {}
    }
}

async fn copy(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    mut fault: watch::Receiver<Fault>,
) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        if fault.wait_for(|fault| *fault == Fault::None).await.is_err() {
            return;
        }
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
}
