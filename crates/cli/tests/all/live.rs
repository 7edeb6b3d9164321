//! `top`, and what `--watch` redraws, on a terminal of their own: a pseudo-terminal, and an
//! interpreter of what is drawn there.

use crate::run::{BINARY, Stage, wait_for};
use pty_process::blocking::{Command, Pts, Pty};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};

/// A process that does not outlive its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn wait(&mut self) -> ExitStatus {
        wait_for("the program's end", || self.0.try_wait().unwrap())
    }
}

/// Runs a program, and stays until a line is typed: when a terminal's first process ends, the
/// system drops the output that was not read yet.
const LEADER: &str = r#""$0" "$@"; code=$?; read -r line; exit $code"#;

/// A program on a terminal.
pub(crate) struct Screen {
    leader: Program,
    pty: Arc<Pty>,
    picture: Arc<Mutex<vt100::Parser>>,
    /// Held so that the terminal can be looked at when the program has ended.
    _pts: Pts,
}

/// Starts a program on a terminal.
fn spawn(stage: &Stage, words: &[&str], rows: u16, columns: u16) -> (Program, Pty, Pts) {
    let (pty, pts) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(rows, columns)).unwrap();
    let command = Command::new(words[0]).args(&words[1..]);
    let command = command.current_dir(stage.path("")).env("TERM", "xterm-256color");
    let command = command.env_remove("LANECAST_CONFIG").env_remove("NO_COLOR");
    let mut command = command.env("LANECAST_SHM__DIRECTORY", stage.path("domain"));
    (Program(command.spawn_borrowed(&pts).unwrap()), pty, pts)
}

/// Whether keys go to the program one by one.
fn is_raw(pty: &Pty) -> bool {
    let modes = tcgetattr(pty).unwrap().local_modes;
    !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
}

fn some(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

impl Screen {
    pub(crate) fn open(stage: &Stage, line: &str, rows: u16, columns: u16) -> Self {
        let words: Vec<&str> =
            ["sh", "-c", LEADER, BINARY].into_iter().chain(line.split_whitespace()).collect();
        let (leader, pty, pts) = spawn(stage, &words, rows, columns);
        let (pty, picture) = (Arc::new(pty), vt100::Parser::new(some(rows), some(columns), 0));
        let picture = Arc::new(Mutex::new(picture));
        let (output, drawn) = (Arc::clone(&pty), Arc::clone(&picture));
        std::thread::spawn(move || {
            let mut part = [0; 1 << 12];
            // When both the program and the test have closed it, the system reports an error.
            while let Ok(length @ 1..) = (&*output).read(&mut part) {
                drawn.lock().unwrap().process(&part[..length]);
            }
        });
        Self { leader, pty, picture, _pts: pts }
    }

    fn lines(&self) -> Vec<String> {
        let picture = self.picture.lock().unwrap();
        let (_, columns) = picture.screen().size();
        picture.screen().rows(0, columns.get()).collect()
    }

    /// Waits for a picture.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&[String]) -> bool) {
        wait_for(&format!("{what} on the screen"), || holds(&self.lines()).then_some(()));
    }

    pub(crate) fn until_shown(&self, text: &str) {
        self.until(text, |lines| lines.iter().any(|line| line.contains(text)));
    }

    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.picture.lock().unwrap().screen_mut().set_size(some(rows), some(columns));
        self.pty.resize(pty_process::Size::new(rows, columns)).unwrap();
    }

    /// Signals the program, if it has not ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let leader = self.leader.0.id();
        let children = std::fs::read_to_string(format!("/proc/{leader}/task/{leader}/children"));
        let program = children.unwrap().split_whitespace().next().map(|id| id.parse().unwrap());
        if let Some(program) = program.and_then(Pid::from_raw) {
            match kill_process(program, signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Whether the terminal shows its other page, or no cursor.
    fn is_special(&self) -> bool {
        let picture = self.picture.lock().unwrap();
        picture.screen().alternate_screen() || picture.screen().hide_cursor()
    }

    /// Waits for the end with this status, after which the terminal must be as it was.
    pub(crate) fn finish(mut self, code: i32) {
        wait_for("the terminal's own page", || (!self.is_special()).then_some(()));
        wait_for("lines and echo", || (!is_raw(&self.pty)).then_some(()));
        self.press("\n");
        let status = self.leader.wait();
        assert_eq!(status.code(), Some(code), "{:?}", self.lines());
        assert!(!self.is_special() && !is_raw(&self.pty), "the terminal is as it was");
    }
}

#[test]
fn top_shows_a_live_stream_at_any_size_and_gives_the_terminal_back() {
    let stage = Stage::new();
    let _subscriber = stage.start("sub prices --once --quiet");
    let mut publisher = stage.start("pub prices --wait-subscribers 1");
    let top = Screen::open(&stage, "top --interval 50ms", 24, 80);
    top.until_shown("lanecast top [1 streams]");
    let pid = publisher.pid().to_string();
    top.until("the publisher", |lines| lines[2].starts_with("prices ") && lines[2].contains(&pid));
    assert!(is_raw(&top.pty) && top.is_special());
    wait_for("a rate on the screen", || {
        publisher.feed("1.2345\n");
        let lines = top.lines();
        let peak = lines.iter().find_map(|line| line.split_once("most "));
        peak.is_some_and(|(_, most)| !most.starts_with("0.0 /s")).then_some(())
    });

    top.resize(12, 40);
    top.until("twelve rows of forty columns", |lines| {
        lines[0].starts_with("lanecast top")
            && lines[11] == "q quit  ? help  Tab view  s sort  r turn"
    });
    top.resize(1, 1);
    top.until("one cell", |lines| lines == ["…"]);
    top.resize(24, 80);
    top.until_shown("prices");

    top.press("2");
    top.until_shown("sessions joined");
    top.press("\t");
    top.until_shown("no errors in ");
    top.press("1/nonsense\r");
    top.until_shown("no sessions like that");
    top.press("q");
    top.finish(0);
    publisher.feed("unharmed\n");
    publisher.finish().good();
}

#[test]
fn every_way_out_of_top_gives_the_terminal_back() {
    let stage = Stage::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let top = Screen::open(&stage, "top", 24, 80);
        top.until_shown("no sessions in ");
        assert!(is_raw(&top.pty) && top.is_special());
        top.signal(signal);
        top.signal(signal);
        top.finish(0);
    }
    for key in ["\u{3}", "\u{1b}", "q"] {
        let top = Screen::open(&stage, "top", 24, 80);
        top.until_shown("no sessions in ");
        top.press(key);
        top.finish(0);
    }
}

#[test]
fn keys_pressed_while_the_size_changes_are_not_lost() {
    let stage = Stage::new();
    let top = Screen::open(&stage, "top", 24, 80);
    top.until_shown("no sessions in ");
    for turn in 0..100 {
        let (key, text) =
            if turn % 2 == 0 { ("3", "no errors in ") } else { ("1", "no sessions in ") };
        top.resize(24 + turn % 3, 80);
        top.press(key);
        top.until_shown(text);
    }
    top.press("q");
    top.finish(0);
}

#[test]
fn top_ends_with_its_terminal() {
    let stage = Stage::new();
    let (mut program, pty, pts) = spawn(&stage, &[BINARY, "top"], 24, 80);
    wait_for("top to take the terminal", || is_raw(&pty).then_some(()));
    drop((pty, pts));
    program.wait();
}

#[test]
fn top_without_a_terminal_or_a_directory_says_so() {
    let stage = Stage::new();
    let done = stage.run("top");
    assert!(done.refused(1).contains("needs a terminal"), "{}", done.err);
    assert!(done.err.contains("lanecast stat --watch"), "{}", done.err);
    assert!(done.out.is_empty(), "{:?}", done.out);
    stage.write("file", "");
    let top = Screen::open(&stage, "top --directory file", 24, 80);
    top.until_shown("lanecast: ");
    top.finish(1);
}

#[test]
fn watching_on_a_terminal_redraws_in_place() {
    let stage = Stage::new();
    for (line, before) in
        [("ls --watch 20ms", "no sessions in "), ("stat --watch 20ms", "no process")]
    {
        let watch = Screen::open(&stage, line, 24, 160);
        watch.until(before, |lines| lines[0].starts_with(before));
        let publisher = stage.start("pub prices --wait-subscribers 1");
        let pid = publisher.pid().to_string();
        watch.until("the publisher", |lines| lines[0].contains("rate") && lines[1].contains(&pid));
        publisher.signal("INT");
        publisher.finish().good();
        watch.until("the first picture again", |lines| {
            lines[0].starts_with(before) && lines[1..].iter().all(String::is_empty)
        });
        watch.signal(Signal::INT);
        watch.finish(0);
    }
}
