"""`rollout.verifiers`: tasksets of the package verifiers, played under their own harnesses against
the stage's model server (docs/external.md)."""
