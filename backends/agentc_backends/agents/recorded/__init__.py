"""What a program of others asks of a model server, recorded by episode, and rows made of it.

`recorder.py` stands between program and server (`passing.py`, `event_reader.py`, `serving.py`);
`exchange.py` is one request with its reply; `history.py` and `exact.py` rebuild the conversation,
or say why it cannot be proved. Who runs programs is elsewhere.
"""
