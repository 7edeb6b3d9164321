mod contract;
mod hostile;
mod sessions;
mod source;
mod subscriber;
