"""`rollout.react`: lets a served policy act in an environment, many episodes at a time."""
