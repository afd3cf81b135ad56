"""What a run or a release holds, for a person: the same tables in a terminal and on one self-contained page."""
