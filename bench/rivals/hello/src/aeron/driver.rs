//! Aeron's media driver, until it is killed: both ends reach each other through it.
use rusteron_media_driver::{AeronDriver, AeronDriverContext};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let context = AeronDriverContext::new()?;
    context.set_dir_delete_on_start(true)?;
    let driver = AeronDriver::new(&context)?;
    driver.start(true)?;
    loop {
        driver.main_idle_strategy(driver.main_do_work()?);
    }
}
