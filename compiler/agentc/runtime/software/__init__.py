"""Software stacks on this machine: read a lock, find a Python, build, and start programs in
them with a short list of variables."""
