//! Runs a custom command with limits on its time and output.

use std::{io, os::fd::OwnedFd, process::Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::{Child, Command},
    time::timeout,
};

use crate::{limits, model::message::ProgramOutput};

/// Runs a program without a shell and without input. Dropping the future kills it and the
/// processes that it started.
pub(super) async fn run(words: Vec<String>) -> ProgramOutput {
    let mut text = Vec::new();
    let end = match start(&words) {
        Ok((mut group, reader)) => {
            let run = timeout(limits::PROGRAM, group.read_to_end(reader, &mut text));
            match run.await {
                Ok(Ok(end)) => end,
                Ok(Err(error)) => format!("failed to read its output: {error}"),
                Err(_elapsed) => format!("stopped after {} s", limits::PROGRAM.as_secs()),
            }
        }
        Err(error) => {
            let program = words.first().map_or("", String::as_str);
            format!("failed to run `{program}`: {error}")
        }
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    ProgramOutput { text, end }
}

/// Starts a program that runs on its own, such as a browser.
pub(super) fn start_detached(program: &str, argument: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    let command = command.arg(argument).stdin(Stdio::null());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(drop)
}

/// A program and its process group, which is killed on drop.
struct ProcessGroup {
    child: Child,
    id: Option<Pid>,
}

fn start(words: &[String]) -> io::Result<(ProcessGroup, pipe::Receiver)> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let (reader, writer) = io::pipe()?;
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let child = command.spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok((ProcessGroup { child, id }, reader))
}

impl ProcessGroup {
    /// Reads the output until it ends or reaches the limit, and returns the reason for the end.
    async fn read_to_end(
        &mut self,
        mut reader: pipe::Receiver,
        text: &mut Vec<u8>,
    ) -> io::Result<String> {
        let mut chunk = vec![0; 8 * 1024];
        loop {
            let length = reader.read(&mut chunk).await?;
            if length == 0 {
                break;
            }
            text.extend_from_slice(&chunk[..length]);
            if text.len() > limits::OUTPUT_BYTES {
                text.truncate(limits::OUTPUT_BYTES);
                let most = limits::OUTPUT_BYTES / 1024;
                return Ok(format!("stopped after {most} KiB of output"));
            }
        }
        let status = self.child.wait().await?;
        // The group has ended, and its id may be used again.
        self.id = None;
        Ok(status.to_string())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // An error means that the group has ended.
            let _ended = kill_process_group(id, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn words(run: &[&str]) -> Vec<String> {
        run.iter().map(|it| (*it).to_owned()).collect()
    }

    #[tokio::test]
    async fn output_and_status_of_a_program_are_returned() {
        let output = run(words(&[
            "sh",
            "-c",
            "echo out; echo \"$1\" >&2; exit 3",
            "x",
            "a b; c",
        ]));
        let output = output.await;
        assert_eq!(output.text, "out\na b; c\n");
        assert_eq!(output.end, "exit status: 3");
        let output = run(words(&["no-such-program-here"])).await;
        assert!(output.end.contains("failed to run `no-such-program-here`"));
        assert!(run(Vec::new()).await.end.contains("failed to run"));
    }

    #[tokio::test]
    async fn endless_output_is_stopped_at_the_limit() {
        let output = run(words(&["yes"])).await;
        assert_eq!(output.text.len(), limits::OUTPUT_BYTES);
        assert_eq!(output.end, "stopped after 256 KiB of output");
    }

    #[tokio::test]
    async fn dropped_run_kills_the_processes_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let run = run(words(&["sh", "-c", &script]));
        let stopped = timeout(Duration::from_secs(1), run).await;
        assert!(stopped.is_err(), "the program does not end");
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        for _ in 0..100 {
            let state = std::fs::read_to_string(&stat);
            if state.is_err() || state.is_ok_and(|it| it.contains(") Z ")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the process still runs");
    }
}
