//! pktc-lower.
