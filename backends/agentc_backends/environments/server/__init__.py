"""Serves any text environment over AgentGym's HTTP protocol, with what search and rollouts need.

How to serve an environment of your own:

1. Write a class with the members of `environment.Environment`: what it declares (`name`,
   `reward_range`, ...), `tasks`, `reset`, `step`, `identity`, `close`. One object is one episode
   at a time; constructing it must be cheap, for each session gets one. `Expert` and `Snapshots`
   are further members for environments that declare these capabilities.
2. Say `blocking = True` when `reset` or `step` wait for something (a process, a network, a lock)
   or take more than about a millisecond. They then run in threads, one call at a time for each
   session, and never hold up other sessions. Otherwise they run on the event loop.
3. Declare its settings once, as a dataclass of `settings.setting`s, and write `job_serve.py`:
   `opener, main = program.program(Settings, open_world)`.
4. Where AgentGym's released client of the same world should find what it expects, declare its
   names and shapes as the member `dialect`, a `dialect.Dialect`. Most need none.

An action that the world refuses is an observation, never an exception. `EpisodeError` means that
a call makes no sense now (a step before the first reset); `EnvironmentFailure` that the world
itself is broken (a simulator died): clients take that as an infrastructure error and try again.
"""
