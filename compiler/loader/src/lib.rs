//! pktc-loader.
