"""What every artifact must be, checked in the job that made it before anything is published."""
