"""When progress bars appear."""

SECONDS_BEFORE_PROGRESS = 3
