mod arrival;
mod contract;
mod hostile;
mod outages;
mod parity;
mod sessions;
mod source;
mod subscriber;
