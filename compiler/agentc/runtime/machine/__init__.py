"""The machine under a job: processes and their ends, limits of time and memory, GPUs, nodes."""
