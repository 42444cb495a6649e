//! Processes of one cluster's pods, found from outside: the tests' means to kill and to stop them.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// A process of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub cmdline: String,
}

/// Processes named `program` whose command line contains `needle`.
pub fn processes(program: &str, needle: &str) -> Vec<Process> {
    let Ok(dir) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    dir.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let raw = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).ok()?;
            let cmdline = String::from_utf8_lossy(&raw).replace('\0', " ");
            let argv0 = cmdline.split(' ').next()?.rsplit('/').next()?.to_owned();
            (argv0 == program && cmdline.contains(needle)).then_some(Process { pid, cmdline })
        })
        .collect()
}

/// Processes named `program` in the network namespace `netns` (a name under /run/netns).
pub fn processes_in_netns(program: &str, netns: &str) -> Result<Vec<Process>> {
    use std::os::unix::fs::MetadataExt;
    let want = fs::metadata(Path::new("/run/netns").join(netns))
        .with_context(|| format!("no namespace {netns}"))?
        .ino();
    Ok(processes(program, "")
        .into_iter()
        .filter(|p| fs::metadata(format!("/proc/{}/ns/net", p.pid)).is_ok_and(|m| m.ino() == want))
        .collect())
}

/// Sends `signal` (for example `KILL`) and fails unless the process was there to receive it.
pub fn signal(pid: u32, signal: &str) -> Result<()> {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status()?;
    if !status.success() {
        bail!("process {pid} could not be sent {signal}");
    }
    Ok(())
}

/// Waits until a process named `program` with `needle` in its command line exists.
pub async fn wait_for_process(program: &str, needle: &str, within: Duration) -> Result<Process> {
    let end = Instant::now() + within;
    loop {
        if let Some(p) = processes(program, needle).into_iter().next() {
            return Ok(p);
        }
        if Instant::now() > end {
            bail!("no {program} process with {needle} within {within:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
