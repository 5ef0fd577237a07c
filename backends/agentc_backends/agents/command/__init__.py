"""`rollout.command`: a program of the user's own, which asks a model through OpenAI's API and acts
through a door of the job, plays each episode (docs/external.md)."""
