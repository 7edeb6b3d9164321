//! Workers that run what is built, while the next is being built.

use super::build::Build;
use super::report::Report;
use super::work::{Done, Work};
use anyhow::Result;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Workers beyond one for each CPU: most of what runs waits.
const BEYOND: usize = 1;

/// Work that is to be done and where its results go.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    logs: &'a Path,
    report: &'a Report,
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    work: VecDeque<Work>,
    busy: Vec<&'static str>,
    is_closed: bool,
}

/// The machine's CPUs.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Number of programs that run at once.
pub(crate) fn workers() -> usize {
    cpus() + BEYOND
}

impl<'a> Pool<'a> {
    pub(crate) fn new(logs: &'a Path, report: &'a Report) -> Self {
        Self { logs, report, open: Mutex::default(), changed: Condvar::new() }
    }

    /// Builds, and adds each test program when it is built; returns whether all were.
    pub(crate) fn build(&self, build: Build) -> Result<bool> {
        let (name, start) = (build.name, Instant::now());
        println!("==> {name}");
        let (built, cpu_seconds) = build.run(|program| {
            Work::tests(&program, cpus()).into_iter().for_each(|work| self.add(work));
        })?;
        let failed = u64::from(!built);
        self.report.step(Done {
            name: name.to_owned(),
            failed,
            time: start.elapsed(),
            cpu_seconds,
            ..Done::default()
        });
        Ok(built)
    }

    /// Runs `work` here, before what is built next.
    pub(crate) fn step(&self, work: Work) -> Result<()> {
        println!("==> {}", work.name);
        self.report.step(work.run(self.logs)?);
        Ok(())
    }

    /// Leaves `work` to the workers.
    pub(crate) fn add(&self, work: Work) {
        self.lock().work.push_back(work);
        self.changed.notify_all();
    }

    /// Lets the workers go when everything is done.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// One worker's life.
    pub(crate) fn work(&self) {
        while let Some(work) = self.next() {
            let done = work.run(self.logs).unwrap_or_else(|error| Done {
                name: work.name.clone(),
                failed: 1,
                output: format!("{error:#}\n"),
                ..Done::default()
            });
            self.report.step(done);
            if let Some(group) = work.group {
                self.lock().busy.retain(|busy| *busy != group);
                self.changed.notify_all();
            }
        }
    }

    /// The first work whose group is free; `None` when there will be no more.
    fn next(&self) -> Option<Work> {
        let mut open = self.lock();
        loop {
            let is_free = |work: &Work| work.group.is_none_or(|group| !open.busy.contains(&group));
            if let Some(at) = open.work.iter().position(is_free) {
                let work = open.work.remove(at)?;
                open.busy.extend(work.group);
                return Some(work);
            }
            if open.is_closed && open.work.is_empty() {
                return None;
            }
            open = self.changed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_never_beside_itself() {
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report::default();
        let pool = Pool::new(folder.path(), &report);
        let script = "mkdir held || exit 1; sleep 0.05; rmdir held";
        for name in ["a", "b", "c"] {
            pool.add(Work::script(name, folder.path(), &["sh", "-c", script]).of("killers"));
        }
        pool.close();
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| pool.work()))));
        assert!(report.print(), "two of them ran at once");
    }

    #[test]
    fn a_failure_is_told() {
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report::default();
        let pool = Pool::new(folder.path(), &report);
        pool.add(Work::script("fails", folder.path(), &["false"]));
        pool.add(Work::script("is not there", folder.path(), &["./none"]));
        pool.close();
        pool.work();
        assert!(!report.print());
    }
}
