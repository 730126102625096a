"""Comments in JSON that people write: // to the end of the line, and /* */. The programs allow them."""

import re

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)


def without_comments(text: str) -> str:
    """The text with a blank for each comment; lines keep their numbers."""

    def blank(found: re.Match[str]) -> str:
        token = found[0]
        return token if token.startswith('"') else " " + "\n" * token.count("\n")

    return _STRING_OR_COMMENT.sub(blank, text)
