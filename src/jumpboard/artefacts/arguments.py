"""Command lines whose errors are one line and status 2, for commands and stages alike."""

import argparse
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """An argument parser that does not print its usage over the error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")
