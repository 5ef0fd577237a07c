"""Trainers that act and learn in turns: ArCHer and its rivals, in one resumable job."""
