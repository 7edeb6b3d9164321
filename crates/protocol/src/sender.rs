//! A publisher's session, towards any number of receivers.
