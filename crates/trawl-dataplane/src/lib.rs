//! AF_XDP and AF_PACKET rings, fan-out to captures, and the pcapng writer.
