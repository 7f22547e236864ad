//! Puts the rooms together: store, work in the background, services, sockets.

mod deadline;
mod listener;
mod oversize;
