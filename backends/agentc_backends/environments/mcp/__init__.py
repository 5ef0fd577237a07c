"""env.mcp: any server of the Model Context Protocol as an environment (see README.md).

`settings.py` and `backend.py` declare, `job_serve.py` is the program; `translation.py` is between
words and the protocol, and only `connection.py` imports the SDK.
"""
