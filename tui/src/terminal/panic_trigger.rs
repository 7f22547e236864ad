//! Panics on demand in debug builds, to test the state that a panic leaves behind.

#[cfg(debug_assertions)]
mod imp {
    use std::io;

    use tokio::{
        signal::unix::{Signal, SignalKind, signal},
        task::JoinSet,
    };

    /// SIGUSR1 causes a panic in a separate task, SIGUSR2 in the main loop.
    pub(crate) struct PanicTrigger {
        task: Signal,
        main: Signal,
        tasks: JoinSet<()>,
    }

    impl PanicTrigger {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self {
                task: signal(SignalKind::user_defined1())?,
                main: signal(SignalKind::user_defined2())?,
                tasks: JoinSet::new(),
            })
        }

        #[expect(clippy::panic, reason = "that is what it is for")]
        pub(crate) async fn wait(&mut self) {
            loop {
                tokio::select! {
                    _ = self.task.recv() => {
                        self.tasks.spawn(async { panic!("panic in a task, requested by a test") });
                    }
                    _ = self.main.recv() => panic!("panic in the console, requested by a test"),
                }
            }
        }
    }
}

#[cfg(not(debug_assertions))]
mod imp {
    use std::io;

    pub(crate) struct PanicTrigger;

    impl PanicTrigger {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn wait(&mut self) {
            std::future::pending().await
        }
    }
}

pub(super) use imp::PanicTrigger;
