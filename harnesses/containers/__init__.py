"""What workloads that run in Docker containers share: the daemon, how containers of ours are known, their bounds."""
