//! The programs that write a file each: the peers, and captured without its daemon.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Tcpdump,
    Dumpcap,
    Netsniff,
    Record,
    RecordNode,
}

pub const PEERS: [Tool; 3] = [Tool::Tcpdump, Tool::Dumpcap, Tool::Netsniff];

impl Tool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcpdump => "tcpdump",
            Self::Dumpcap => "dumpcap",
            Self::Netsniff => "netsniff-ng",
            Self::Record => "captured AF_XDP",
            Self::RecordNode => "captured AF_PACKET",
        }
    }

    /// Starts it, and returns when it receives.
    pub fn start(
        self,
        world: &World,
        captured: &Path,
        file: &Path,
        filter: Option<&str>,
    ) -> Outcome<Writing> {
        let mut command = world.command();
        self.arguments(&mut command, &world.near, captured, file, filter);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut writing = Writing {
            child,
            file: file.to_owned(),
        };
        let began = Instant::now();
        while !file.exists() {
            if let Some(status) = writing.child.try_wait()? {
                return Err(format!(
                    "{} ended before it began, with {status}: {command:?}",
                    self.name()
                )
                .into());
            }
            if began.elapsed() > Duration::from_secs(10) {
                return Err(format!("{} does not begin to write", self.name()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        Ok(writing)
    }

    fn arguments(
        self,
        command: &mut Command,
        near: &str,
        captured: &Path,
        file: &Path,
        filter: Option<&str>,
    ) {
        match self {
            Self::Tcpdump => {
                command
                    .args(["tcpdump", "-Z", "root", "-n", "-i", near, "-B", "65536", "-w"])
                    .arg(file)
                    .args(filter);
            }
            Self::Dumpcap => {
                command
                    .args(["dumpcap", "-q", "-i", near, "-B", "64", "-w"])
                    .arg(file);
                command.args(filter.iter().flat_map(|filter| ["-f", filter]));
            }
            Self::Netsniff => {
                command.args(["netsniff-ng", "--in", near, "--out"]).arg(file);
                command.args(["--ring-size", "64MiB", "-s"]).args(filter);
            }
            Self::Record | Self::RecordNode => {
                command.arg(captured).args([
                    "record",
                    "--interface",
                    near,
                    "--duration",
                    "1h",
                    "--max-size",
                    "1Gi",
                    "-o",
                ]);
                command
                    .arg(file)
                    .args(filter.iter().flat_map(|filter| ["--filter", filter]));
                command.args((self == Self::RecordNode).then_some("--node"));
            }
        }
    }
}

/// A program that writes a file.
pub struct Writing {
    pub child: Child,
    pub file: PathBuf,
}

impl Writing {
    /// Ends it as a user would.
    pub fn finish(&mut self) -> Outcome<()> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}
