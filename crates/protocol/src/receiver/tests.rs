mod contract;
mod hostile;
mod outages;
mod sessions;
mod source;
mod subscriber;
