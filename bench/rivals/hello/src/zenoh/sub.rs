//! The subscribing end over Zenoh.
use zenoh::Wait;

fn main() -> zenoh::Result<()> {
    let session = zenoh::open(zenoh::Config::default()).wait()?;
    let subscriber = session.declare_subscriber("hello").wait()?;
    let sample = subscriber.recv()?;
    println!("{}", sample.payload().try_to_string()?);
    session.close().wait()
}
