"""The human audit: which steps are sampled, and what a reviewer is given to judge them by."""
