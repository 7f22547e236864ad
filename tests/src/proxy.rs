//! A proxy that simulates an unreliable network between a client and a service.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Runtime,
    sync::watch,
    task::JoinSet,
};

use crate::own_threads::own_threads;

/// State of the simulated network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Forwards all traffic.
    Fair,
    /// The proxy does not listen, and open connections are closed.
    Refuses,
    /// Accepts connections and closes them immediately. Open connections are also closed.
    Drops,
    /// Keeps connections open but forwards no data.
    Stalls,
    /// Forwards the client's data but no responses.
    HalfOpen,
    /// Accepts connections and resets them immediately. Open connections are also reset.
    Resets,
    /// Forwards 1000 bytes per second in each direction.
    Slow,
}

/// A proxy on a free port, shut down when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    target: Arc<Mutex<String>>,
    // The proxy has its own thread, so that it works while a test blocks.
    runtime: Option<Runtime>,
}

const SLOW_BYTES: usize = 100;
const SLOW_PAUSE: Duration = Duration::from_millis(100);

impl Proxy {
    /// Starts a proxy that forwards to this address.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub fn start(target: &str) -> Self {
        let (runtime, listener, address) = own_threads();
        let target = Arc::new(Mutex::new(target.to_owned()));
        let (weather, seen) = watch::channel(Weather::Fair);
        let shared = Arc::clone(&target);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            listen(listener, address, shared, seen).await;
        });
        Self {
            address,
            weather,
            target,
            runtime: Some(runtime),
        }
    }

    /// Returns the address on which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the state of the network, including for open connections.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Forwards new connections to another address.
    pub fn lead_to(&self, target: &str) {
        target.clone_into(&mut self.target.lock().unwrap());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A plain drop of the runtime would panic where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}

async fn listen(
    first: TcpListener,
    address: SocketAddr,
    target: Arc<Mutex<String>>,
    mut weather: watch::Receiver<Weather>,
) {
    let mut listener = Some(first);
    let mut connections = JoinSet::new();
    loop {
        let now = *weather.borrow_and_update();
        if now == Weather::Refuses {
            listener = None;
        } else if listener.is_none() {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(address).unwrap();
            listener = Some(socket.listen(64).unwrap());
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = weather.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            accepted = accepted => {
                let Ok((client, _)) = accepted else { continue };
                let target = target.lock().unwrap().clone();
                connections.spawn(carry(client, target, weather.clone()));
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards one connection until either peer or the network state ends it.
async fn carry(client: TcpStream, target: String, weather: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let mut changes = weather.clone();
    let ended = changes
        .wait_for(|weather| matches!(weather, Weather::Refuses | Weather::Drops | Weather::Resets));
    tokio::select! {
        biased;
        ended = ended => {
            if ended.is_ok_and(|weather| *weather == Weather::Resets) {
                client.set_zero_linger().unwrap();
            }
        }
        _ = forward(&client, &server, weather.clone(), &[Weather::Stalls]) => {}
        _ = forward(&server, &client, weather.clone(), &[Weather::Stalls, Weather::HalfOpen]) => {}
    }
}

/// Forwards one direction, and holds the data back while that direction is stalled.
async fn forward(
    from: &TcpStream,
    to: &TcpStream,
    mut weather: watch::Receiver<Weather>,
    stopped_by: &[Weather],
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let room = match *weather.borrow() {
            Weather::Slow => SLOW_BYTES,
            _ => bytes.len(),
        };
        from.readable().await?;
        let length = match from.try_read(&mut bytes[..room]) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let lets_through = weather.wait_for(|weather| !stopped_by.contains(weather));
        drop(lets_through.await);
        let mut rest = &bytes[..length];
        while !rest.is_empty() {
            to.writable().await?;
            match to.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if *weather.borrow() == Weather::Slow {
            tokio::time::sleep(SLOW_PAUSE).await;
        }
    }
}
