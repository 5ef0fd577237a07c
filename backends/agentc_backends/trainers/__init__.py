"""Trainers: one folder for each library, and what they have in common."""
