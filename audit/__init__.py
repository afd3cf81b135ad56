"""The human audit: people check a sample of the labels, and their verdicts are applied to the run's files."""
