"""An OpenEnv server of somebody else's, behind agentc's own protocol: we are its client.

`translation.py` fills typed actions and reads observations, `connection.py` speaks the WebSocket
protocol, `environment.py` plays an episode, `job_serve.py` serves it to rollouts and search. The
other way, our worlds for OpenEnv's clients, is `server/openenv.py`.
"""
