"""The lock of a spec: everything outside of it that its results depend on, by revision and digest.

`references` records what compiling asks for, `collect` makes a lock of a compilation, `document`
writes and reads its file, `compare` finds what is out of date, `hub` asks a model hub.
"""
