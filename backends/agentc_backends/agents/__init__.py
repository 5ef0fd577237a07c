"""What acts: the client of both kinds of servers, rollouts, searches, revisions, evaluations."""
