"""RL in one resumable job: ArCHer and its baselines, which play and learn in turns, and offline
ArCHer. See README.md."""
