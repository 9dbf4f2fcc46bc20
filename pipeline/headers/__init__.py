"""Header texts to facts: one small table-driven module for each kind.

Each ``read_...`` takes the text as written (None: the property is absent) and returns the value with
the flags of what was doubtful; none raises on any text.
"""
