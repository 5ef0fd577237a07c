"""ArCHer's released trainer beside ours: the same numbers, and the seconds of both."""
