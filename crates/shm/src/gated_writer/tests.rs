use super::*;
use crate::session;
use crate::settings::Visibility;
use std::cell::RefCell;

fn writer() -> GatedWriter {
    let settings = DomainSettings { visibility: Visibility::Process, ..DomainSettings::default() };
    let new = session::create(&settings).expect("a session");
    let session = LocalSession::new(None, new.number, new.segment, false, None, |_| {});
    GatedWriter::new(&settings, Arc::new(session.expect("its state")), Arc::default())
}

/// A subscriber that reads between a look and the announcement of the sleep wakes nothing.
#[test]
fn a_wait_looks_once_more_after_its_announcement() {
    let mut writer = writer();
    let looks = RefCell::new(Vec::new());
    let is_announced = |writer: &mut GatedWriter| {
        let waits = writer.segment().gate().publisher_waits.load(Ordering::Relaxed) != 0;
        looks.borrow_mut().push(waits);
        waits
    };
    assert!(writer.wait_until(SLEEP_MAX, is_announced), "{looks:?}");
    assert_eq!(looks.into_inner(), [false, true]);
    assert_eq!(writer.segment().gate().publisher_waits.load(Ordering::Relaxed), 0);
}
