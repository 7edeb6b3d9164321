//! Members on hosts, a process each, and what they tell of their views.

use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Network, possible, wait_for};
use std::collections::BTreeMap;
use std::time::Duration;

/// All transports of groups between hosts.
pub(crate) const ALL: [&str; 3] = ["rm", "ru", "tcp"];
/// Longer than anything takes that is waited for here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a scene with each transport, beside each other: they mostly wait.
pub(crate) fn each(scene: impl Fn(&str) -> Result<()> + Sync) -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let scene = &scene;
    std::thread::scope(|scope| {
        let scenes = ALL.map(|transport| scope.spawn(move || scene(transport)));
        for (scene, transport) in scenes.into_iter().zip(ALL) {
            scene.join().expect("no panic").context(transport)?;
        }
        Ok(())
    })
}

/// Whether there is time for more.
pub(crate) fn has_time() -> bool {
    std::env::var_os("LONG_TESTS").is_some()
}

/// A view, as a member tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewLine {
    pub(crate) epoch: u64,
    /// Microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) is_merged: bool,
    /// Names by rank.
    pub(crate) members: Vec<String>,
    /// Names with the reasons.
    pub(crate) left: Vec<String>,
}

impl ViewLine {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("view=")?.split(' ');
        let mut word = || words.next();
        let list = |text: &str| {
            let names = text.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        Some(Self {
            epoch: word()?.parse().ok()?,
            at: word()?.parse().ok()?,
            is_merged: word()? == "true",
            members: list(word()?),
            left: list(word()?),
        })
    }

    fn sorted_members(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.members.iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// A member, its host's number, and its name.
pub(crate) struct Seat {
    pub(crate) host: usize,
    name: String,
    pub(crate) actor: Actor,
}

impl Seat {
    /// The views that the member was in, oldest first.
    pub(crate) fn views(&self) -> Vec<ViewLine> {
        let out = self.actor.out();
        // The last line may be half of one.
        let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.filter_map(|line| ViewLine::parse(line.trim_end_matches('\n'))).collect()
    }

    /// The line of what it delivered in a view, and its next view.
    fn passage(&self, epoch: u64) -> Option<(String, (u64, Vec<String>))> {
        let out = self.actor.out();
        let prefix = format!("ended={epoch} ");
        let mut lines = out.lines();
        let ended = lines.find_map(|line| line.strip_prefix(&prefix))?.to_owned();
        let next = lines.find_map(ViewLine::parse)?;
        Some((ended, (next.epoch, next.members)))
    }
}

/// Members of one group, a host each.
pub(crate) struct Scene {
    pub(crate) net: Network,
    pub(crate) seats: Vec<Seat>,
    words: String,
    started: usize,
}

impl Scene {
    /// Starts `count` members, and waits until they are together and hear of each other.
    pub(crate) fn start(transport: &str, count: usize, words: &str) -> Result<Self> {
        let net = Network::bridged(count)?;
        net.send_frames()?;
        let words = format!("transport={transport} {words}");
        let mut scene = Self { net, seats: Vec::new(), words, started: 0 };
        for host in 0..count {
            scene.add(host)?;
        }
        scene.until_together("at first")?;
        scene.until_load()?;
        Ok(scene)
    }

    /// Starts a member with a new name on a host.
    pub(crate) fn add(&mut self, host: usize) -> Result<()> {
        let name = format!("m{}", self.started);
        self.started += 1;
        let place = self.net.host(host);
        let words = format!("member {} name={name} address={}", self.words, place.v4());
        let actor = Actor::start(place, &words)?;
        self.seats.push(Seat { host, name, actor });
        Ok(())
    }

    /// Waits until the last view of each of these members has exactly them.
    pub(crate) fn until_these_are_together(
        &self,
        what: &str,
        which: &[usize],
    ) -> Result<Vec<ViewLine>> {
        let seats: Vec<&Seat> = which.iter().map(|at| &self.seats[*at]).collect();
        let mut names: Vec<&str> = seats.iter().map(|seat| seat.name.as_str()).collect();
        names.sort_unstable();
        let together = || {
            let views = seats.iter().map(|seat| seat.views().pop()).collect::<Option<Vec<_>>>()?;
            let is_one = views.iter().all(|view| view.epoch == views[0].epoch);
            let is_ours = views.iter().all(|view| view.sorted_members() == names);
            (is_one && is_ours).then_some(views)
        };
        wait_for(what, PATIENCE, || Ok(together())).with_context(|| self.story())
    }

    /// Waits until all members are in one view of exactly them.
    pub(crate) fn until_together(&self, what: &str) -> Result<Vec<ViewLine>> {
        self.until_these_are_together(what, &(0..self.seats.len()).collect::<Vec<_>>())
    }

    /// Waits until each member has received a good many more messages.
    pub(crate) fn until_load(&self) -> Result<()> {
        let before: Vec<u64> = self.seats.iter().map(|seat| seat.actor.read()).collect();
        let has_more = |(seat, before): (&Seat, &u64)| seat.actor.read() > before + 200;
        let all = || Ok(self.seats.iter().zip(&before).all(has_more).then_some(()));
        wait_for("messages", PATIENCE, all).with_context(|| self.story())
    }

    /// The view of the first member.
    pub(crate) fn view(&self) -> Result<ViewLine> {
        self.seats[0].views().pop().context("no view")
    }

    /// The place of the member with this rank.
    pub(crate) fn at_rank(&self, rank: usize) -> Result<usize> {
        let name = &self.view()?.members[rank];
        self.seats.iter().position(|seat| seat.name == *name).context("no such member")
    }

    /// Checks that members that went from the view `epoch` to the next one together delivered the
    /// same messages in it. A busy machine may part them, and keep some from that view; returns the
    /// largest number that stayed together.
    pub(crate) fn check_same(&self, epoch: u64) -> Result<usize> {
        let mut together = BTreeMap::<_, Vec<_>>::new();
        let was_there = |seat: &&Seat| seat.views().iter().any(|view| view.epoch == epoch);
        for seat in self.seats.iter().filter(was_there) {
            let ended = seat.passage(epoch);
            let (ended, next) =
                ended.context("the view has ended").with_context(|| self.story())?;
            together.entry(next).or_default().push((ended, &seat.name));
        }
        for (next, members) in &together {
            let (first, name) = &members[0];
            ensure!(first.contains(':'), "{name} received nothing in view {epoch}");
            for (ended, other) in members {
                ensure!(ended == first, "{name} and {other} differ on the way to {next:?}");
            }
        }
        Ok(together.values().map(Vec::len).max().unwrap_or(0))
    }

    /// Microseconds from `moment` to the first suspicion after it, of any member.
    pub(crate) fn first_suspicion(&self, moment: u64) -> Option<u64> {
        let times = self.seats.iter().flat_map(|seat| {
            let out = seat.actor.out();
            let lines = out.lines().filter_map(|line| line.strip_prefix("suspected="));
            lines
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                .collect::<Vec<_>>()
        });
        times.filter_map(|at| at.checked_sub(moment)).min()
    }

    /// Ends all members, which leave the group.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.seats.iter_mut().try_for_each(|seat| seat.actor.end())?;
        let leave = |seat: &mut Seat| {
            ensure!(seat.actor.tells("has_left")? == "true", "{} did not leave", seat.name);
            Ok(())
        };
        let left = self.seats.iter_mut().try_for_each(leave);
        left.with_context(|| self.seats.iter().map(|it| it.actor.story()).collect::<String>())?;
        self.seats.into_iter().try_for_each(|seat| seat.actor.finish().map(drop))
    }

    fn story(&self) -> String {
        let last = |seat: &Seat| {
            let out = seat.actor.out();
            let told = out.lines().filter(|line| !line.starts_with("at="));
            let lines: Vec<&str> = told.collect();
            let from = lines.len().saturating_sub(8);
            format!("{} at {}: {:#?}\n", seat.name, seat.actor.read(), &lines[from..])
        };
        self.seats.iter().map(last).collect()
    }
}
