"""`verdicts.claims`: tests each claim on what was measured, with the noise of both sides."""
