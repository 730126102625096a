"""Times of a story are ns."""

MS, S = 10**6, 10**9
