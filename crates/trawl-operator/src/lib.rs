//! The controllers that carry out NetworkTaps and CaptureJobs.
