//! pktc-ir.
