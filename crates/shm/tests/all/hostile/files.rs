//! Directories and files that are not what they should be.

use super::{PATIENCE, Scene, WINDOW_BYTES};
use lanecast_os::process::own_user;
use lanecast_shm::{Domain, DomainSettings, OpenError, clean, inspect};
use lanecast_transport::{Publish, Transport};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn open(directory: &Path, window_bytes: u64) -> Result<Domain, OpenError> {
    Domain::open(DomainSettings {
        directory: directory.to_owned(),
        window_bytes,
        ..DomainSettings::default()
    })
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

#[test]
fn entries_that_are_no_files_are_named_and_passed_over() {
    let mut scene = Scene::new();
    let path = |name: &str| scene.path().join(name);
    let beacon = path(&format!("{}.ring", scene.beacon.session()));
    symlink(beacon, path("0000000000000001.ring")).expect("a link");
    fs::create_dir(path("0000000000000002.ring")).expect("a directory");
    let pipe = path("0000000000000003.ring");
    assert!(run("mkfifo", &[pipe.to_str().expect("a path")]), "a pipe");
    fs::write(path("0000000000000004.ring"), b"").expect("an empty file");
    fs::write(path("nonsense.ring"), b"no number").expect("a file");
    let reports = inspect(&scene.path()).expect("the directory");
    let errors: Vec<_> = reports.iter().filter_map(|report| report.as_ref().err()).collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    for (number, error) in (1..).zip(&errors) {
        assert!(error.to_string().contains(&format!("{number:016x}.ring: ")), "{error}");
    }
    clean(&scene.path(), true).expect("the directory");
    drop(scene.subscriber("anything"));
    drop(open(&scene.path(), WINDOW_BYTES).expect("a domain"));
    assert!(scene.path().join("0000000000000002.ring").is_dir(), "what is not ours stays");
    assert!(scene.path().join("nonsense.ring").exists(), "what is not ours stays");
    assert!(scene.beacon.drain(PATIENCE).is_complete());
}

#[test]
fn a_directory_open_to_strangers_is_refused() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("a mode");
    let error = open(directory.path(), WINDOW_BYTES).expect_err("strangers may write").to_string();
    assert!(error.contains("chmod 700") && error.contains("mode 777"), "{error}");
    let file = directory.path().join("file");
    fs::write(&file, b"").expect("a file");
    let error = open(&file, WINDOW_BYTES).expect_err("no directory").to_string();
    assert!(error.contains("not a directory"), "{error}");
}

#[test]
fn an_unreadable_session_is_named() {
    if own_user() == 0 {
        println!("skipped: to the superuser nothing is unreadable");
        return;
    }
    let mut scene = Scene::new();
    let path = scene.path().join("0000000000000001.ring");
    fs::write(&path, b"secret").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o0)).expect("a mode");
    let reports = inspect(&scene.path()).expect("the directory");
    let errors: Vec<_> = reports.iter().filter_map(|report| report.as_ref().err()).collect();
    assert!(errors.iter().any(|error| error.to_string().contains("denied")), "{errors:?}");
    drop(scene.subscriber("anything"));
}

/// A file system of its own; unmounted when dropped.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().expect("a path")]);
    }
}

#[test]
fn a_full_file_system_is_an_error_with_advice() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    let place = directory.path().join("small");
    fs::create_dir(&place).expect("a directory");
    let target = place.to_str().expect("a path");
    let options = ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", target];
    if own_user() != 0 || !run("mount", &options) {
        println!("skipped: only the superuser mounts a small file system");
        return;
    }
    let _mount = Mount(place.clone());
    let domain = open(&place, 4 << 20).expect("the directory itself has room");
    let error = domain.publisher("t").expect_err("four times what there is").to_string();
    assert!(error.contains("no room for") && error.contains("smaller window"), "{error}");
    // Ones that fit, until there is no more room: each either works in full or is refused.
    let domain = open(&place, WINDOW_BYTES).expect("a domain");
    let mut publishers = Vec::new();
    let error = loop {
        match domain.publisher("t") {
            Ok(publisher) => publishers.push(publisher),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("no room for"), "{error}");
    assert!(!publishers.is_empty());
    for publisher in &mut publishers {
        (0..100).for_each(|_| publisher.send(&[7; 8_000]).expect("memory that is really there"));
    }
    drop(open(&place, WINDOW_BYTES).expect("a domain without counters is a domain"));
}
