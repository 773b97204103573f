"""Copy-as-Decode (arXiv 2604.18170): an edit written as copies of the source and new text. Pure.

A program is a row of primitives with nothing between them::

    <copy lines="i-j"/>                whole lines i to j of the first source
    <copy file="2" lines="i-j"/>       of the second
    <copy span="i:a-j:b"/>             from byte column a of line i up to, not with, byte column b of line j
    <gen>TEXT</gen>                    new text

Lines count from 1, end at ``\\n`` only and hold it; columns count bytes from 0. In TEXT one backslash is added to every
``</gen>``, after its slash (``</\\gen>``, and ``</\\\\gen>`` for that), and taken away on reading. Numbers have no
leading zeros. The empty program is the empty file.
"""
