"""The typed intermediate representation: names bound, edges typed, rounds unrolled."""
