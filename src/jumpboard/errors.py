"""The one exception for bad input: its message is one line that a user can act on."""


class InputError(ValueError):
    """Names the file or key, the value found and what is accepted. Commands print it and leave with status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
