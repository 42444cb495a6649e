//! Kubernetes client set-up, server-side apply, health endpoints and start-up shared by the programs.
