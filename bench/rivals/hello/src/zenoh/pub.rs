//! The publishing end over Zenoh.
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::qos::CongestionControl;

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> zenoh::Result<()> {
    let session = zenoh::open(zenoh::Config::default()).wait()?;
    let publisher = session.declare_publisher("hello");
    let publisher = publisher.congestion_control(CongestionControl::Block).wait()?;
    let start = Instant::now();
    while !publisher.matching_status().wait()?.matching() {
        if start.elapsed() > PATIENCE {
            return Err("no subscriber came".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    publisher.put("Hello, world").wait()?;
    session.close().wait()
}
