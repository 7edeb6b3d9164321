//! Members in processes of their own, under load: killed, stopped, and continued.
//!
//! The test executable plays the members itself: see [`actor`].

mod actor;

use actor::{PART, ViewLine};
use lanecast_system_tests::{Process, wait_for};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const NAMES: [&str; 4] = ["ann", "ben", "cas", "dot"];

/// Four members of one group.
struct Scene {
    members: Vec<(&'static str, Process)>,
    _directory: TempDir,
}

impl Scene {
    /// Starts the members, and waits until they are together and load the group.
    fn new(way: &str) -> Self {
        // Scenes of other tests and other runs speak elsewhere on the network.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let run = std::process::id().wrapping_mul(16).wrapping_add(next);
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let start = |name| {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["processes::actor::acts", "--exact", "--ignored", "--nocapture"]);
            let domain = directory.path().join("domain");
            command.env(PART, format!("{way} {name} {run} {}", domain.display()));
            (name, Process::start(command, Stdio::piped()).expect("a member"))
        };
        let scene = Self { members: NAMES.map(start).into(), _directory: directory };
        scene.until_together("at first");
        scene.under_load();
        scene
    }

    /// The views that a member was in, oldest first.
    fn views(process: &Process) -> Vec<ViewLine> {
        let out = process.out();
        assert!(!out.contains("broken="), "{out}");
        out.lines().filter_map(ViewLine::parse).collect()
    }

    /// Waits until the last view of each has exactly the members that are here; returns it.
    fn until_together(&self, what: &str) -> Vec<ViewLine> {
        let mut names: Vec<&str> = self.members.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        let together = || {
            let views = self.members.iter().map(|(_, process)| Self::views(process).pop());
            let views: Vec<ViewLine> = views.collect::<Option<_>>()?;
            let is_one = views.iter().all(|view| view.epoch == views[0].epoch);
            let is_ours = views.iter().all(|view| view.sorted_members() == names);
            (is_one && is_ours).then_some(views)
        };
        let waited = wait_for(what, PATIENCE, || Ok(together()));
        waited.unwrap_or_else(|error| {
            let out = |(name, process): &(&str, Process)| {
                let (out, err) = (process.out(), process.err());
                let last: Vec<&str> = out.lines().rev().take(8).collect();
                format!("{name}: {last:#?} {err}\n")
            };
            panic!("{error}: {}", self.members.iter().map(out).collect::<String>())
        })
    }

    /// Waits until each member has received a good many more messages.
    fn under_load(&self) {
        let counts = || self.members.iter().map(|(_, process)| loads(process)).collect::<Vec<_>>();
        let before = counts();
        let grown = || counts().iter().zip(&before).all(|(now, before)| *now > before + 1);
        wait_for("load", PATIENCE, || Ok(grown().then_some(()))).expect("load");
    }

    /// Takes out the coordinator, or else the last member of the view.
    fn take(&mut self, is_coordinator: bool) -> (&'static str, Process) {
        let view = Self::views(&self.members[0].1).pop().expect("a view");
        let name = if is_coordinator { &view.members[0] } else { &view.members[3] };
        let at = self.members.iter().position(|(it, _)| it == name).expect("a member");
        self.members.remove(at)
    }

    /// Checks that members that went from the view `epoch` to the next one together delivered the
    /// same messages in it. A busy machine may part them.
    fn check_same(&self, epoch: u64) {
        let passages = self.members.iter().map(|(name, process)| {
            let out = process.out();
            let mut lines = out.lines();
            let ended = lines.find(|it| it.starts_with(&format!("ended={epoch} ")));
            let next = lines.find(|it| it.starts_with("view=")).expect("the view has ended");
            let next: Vec<&str> = next.split(' ').collect();
            ((next[0].to_owned(), next[2].to_owned()), (ended.map(str::to_owned), name))
        });
        let mut together = BTreeMap::<_, Vec<_>>::new();
        passages.for_each(|(next, ended)| together.entry(next).or_default().push(ended));
        for (next, members) in together {
            let first = members[0].0.as_ref().expect("the view has ended");
            assert!(first.contains(':'), "messages were delivered: {first}");
            for (ended, name) in &members {
                assert_eq!(ended.as_ref(), Some(first), "{name}, on the way to {next:?}");
            }
        }
    }

    /// Ends all members, which leave the group.
    fn finish(self) {
        for (name, mut process) in self.members {
            process.end_input();
            let out = process.finish(PATIENCE).and_then(|done| done.good()).expect(name);
            assert!(out.contains("left=true") && !out.contains("broken="), "{name}: {out}");
        }
    }
}

/// Number of times that a member said that it received another share of messages.
fn loads(process: &Process) -> usize {
    process.out().matches("loaded=").count()
}

fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_micros()).expect("before 586512")
}

/// A member is killed under load: the others agree on a view without it, and have delivered the
/// same messages before.
fn survive_a_kill(way: &str, is_coordinator: bool) {
    let mut scene = Scene::new(way);
    let before = Scene::views(&scene.members[0].1).pop().expect("a view").epoch;
    let (dead, process) = scene.take(is_coordinator);
    let killed = micros();
    process.kill().expect("a member to kill");
    let views = scene.until_together("the view of the survivors");
    // One that follows before it saw the end of the connection itself does not know the reason; on
    // a busy machine silence may be noticed before it.
    let reasons: Vec<&str> = views.iter().flat_map(|view| &view.left).map(String::as_str).collect();
    let [crashed, told, silent] =
        ["Crashed", "Unresponsive", "Silent"].map(|why| format!("{dead}/{why}"));
    assert!(reasons.contains(&crashed.as_str()), "by the system's word: {reasons:?}");
    let is_known = |it: &&str| [&crashed, &told, &silent].iter().any(|known| *known == it);
    assert!(reasons.iter().all(is_known), "{reasons:?}");
    let slowest = views.iter().map(|view| view.at.saturating_sub(killed)).max();
    println!("new view after {} us ({way}, {is_coordinator})", slowest.unwrap_or(0));
    scene.check_same(before);
    scene.under_load();
    scene.finish();
}

#[test]
fn a_member_dies_in_shared_memory() {
    survive_a_kill("shm", false);
}

#[test]
fn a_coordinator_dies_in_shared_memory() {
    survive_a_kill("shm", true);
}

#[test]
fn a_member_dies_behind_tcp() {
    survive_a_kill("tcp", false);
}

#[test]
fn a_coordinator_dies_behind_multicast() {
    survive_a_kill("rm", true);
}

/// A member that stands still is left out, and comes back when it goes on.
fn survive_a_stop(way: &str) {
    let mut scene = Scene::new(way);
    let before = Scene::views(&scene.members[0].1).pop().expect("a view").epoch;
    let (name, process) = scene.take(false);
    process.signal(Signal::STOP).expect("a member to stop");
    scene.until_together("the view without the one that stands still");
    scene.check_same(before);
    scene.under_load();
    process.signal(Signal::CONT).expect("a member to continue");
    scene.members.push((name, process));
    scene.until_together("the view of all again");
    scene.under_load();
    scene.finish();
}

#[test]
fn a_member_stands_still_in_shared_memory() {
    survive_a_stop("shm");
}

#[test]
fn a_member_stands_still_behind_tcp() {
    survive_a_stop("tcp");
}
