//! State machines of CaptureJob and NetworkTap: facts in, decision out.
