"""The sampling engine: batched generation on a torch checkpoint that gives the same tokens whatever
else is in the batch. The embedded server serves it; online RL acts with it in its own process."""
