//! pktc-object.
