"""What acts: rollouts, searches, revisions, evaluations."""
