"""How messages become text, tokens and labels: made once here, for every trainer and server.

`formats.py` renders messages as segments, `chat_template.py` finds the same segments in the
template that a tokenizer ships, `tokens.py` turns segments into token ids with a mask, `rows.py`
does it for the rows of a data set and counts what is cut or left out.
"""
