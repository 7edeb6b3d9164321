//! Host to host: the duty cycles that join the protocols and the sockets.
#![forbid(unsafe_code)]
