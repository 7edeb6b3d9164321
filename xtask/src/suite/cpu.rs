//! CPU time of processes, from proc(5), where the kernel counts hundredths of a second.

/// Seconds that CPUs worked for a process and for its children that have ended; 0 if it is gone.
pub(crate) fn seconds(id: u32) -> f64 {
    times(&id.to_string()).iter().sum()
}

/// Seconds that CPUs worked for everything that this process started and that has ended.
pub(crate) fn seconds_of_ended() -> f64 {
    times("self")[2..].iter().sum()
}

/// User and system time of a process, then those of its children that have ended.
fn times(process: &str) -> [f64; 4] {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // "pid (name) state ppid ...": the times are the 14th to the 17th field.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let mut ticks = fields.split_whitespace().skip(11).flat_map(str::parse::<f64>);
    [(); 4].map(|()| ticks.next().unwrap_or(0.0) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_work_of_a_process_and_of_its_children_is_counted() {
        let before = seconds_of_ended();
        let script = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); echo; read line";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut String::new()).expect("the loop's end");
        assert!(seconds(child.id()) > 0.0);
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert!(seconds_of_ended() > before);
        assert_eq!(seconds(child.id()), 0.0, "it is gone");
    }
}
