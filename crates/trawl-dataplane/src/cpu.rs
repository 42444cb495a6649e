//! Which CPU a receive thread runs on: the least used one of those that the process may use.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs of the process with the number of receive threads that sit there.
static TABLE: OnceLock<Mutex<Vec<(usize, usize)>>> = OnceLock::new();

fn table() -> &'static Mutex<Vec<(usize, usize)>> {
    TABLE.get_or_init(|| {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        Mutex::new(cpus.map(|cpu| (cpu, 0)).collect())
    })
}

/// A CPU that a receive thread has for itself as far as there are enough. Given back on drop.
#[derive(Debug)]
pub struct Seat(Option<usize>);

/// Takes the least used CPU; of several the last, since the first ones get most interrupts.
#[must_use]
pub fn take() -> Seat {
    let mut table = table().lock().unwrap_or_else(PoisonError::into_inner);
    let least = table.iter_mut().rev().min_by_key(|(_, uses)| *uses);
    Seat(least.map(|(cpu, uses)| {
        *uses += 1;
        *cpu
    }))
}

impl Seat {
    /// The CPU; none when the system did not tell which there are.
    #[must_use]
    pub fn cpu(&self) -> Option<usize> {
        self.0
    }

    /// Keeps the calling thread on this CPU. A system that refuses leaves it where it is, which costs speed only.
    pub fn sit(&self) {
        if let Some(cpu) = self.0 {
            let mut set = CpuSet::new();
            set.set(cpu);
            let _ = sched_setaffinity(None, &set);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = table().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, uses)) = table.iter_mut().find(|(cpu, _)| Some(*cpu) == self.0) {
            *uses -= 1;
        }
    }
}

/// Keeps the calling thread off the CPUs of receive threads, when there are others.
pub fn stand_aside() {
    let table = table().lock().unwrap_or_else(PoisonError::into_inner);
    let mut set = CpuSet::new();
    for (cpu, _) in table.iter().filter(|(_, uses)| *uses == 0) {
        set.set(*cpu);
    }
    // A single CPU left would be a bottleneck where a busy receive CPU is none: the scheduler knows better.
    if set.count() > 1 {
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sits_alone_as_long_as_there_are_cpus() {
        let all = table().lock().unwrap().len();
        let seats: Vec<_> = (0..all).map(|_| take()).collect();
        let mut cpus: Vec<_> = seats.iter().filter_map(Seat::cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), all);
        drop(seats);
    }
}
