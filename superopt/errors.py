"""Every error superopt raises on purpose, in one tree.

    SuperoptError
    ├── BadInput                 exit 2: the caller must change something
    │   ├── BadModel             not ONNX, truncated, cyclic, ill-typed, too new
    │   ├── BadExternalData      missing, too short, or outside the model's folder
    │   ├── BadOption            a flag or setting that makes no sense
    │   ├── BadText              a line of text form or rule that does not parse
    │   ├── CannotWrite          the output path is not writable, the disk is full
    │   └── CannotRun            onnxruntime refuses the model or its inputs
    ├── CannotReplay             exit 1: a rewrite that a trace tells of cannot be made
    ├── WorkerDied               exit 1: the child process crashed; the original was kept
    └── LimitHit                 exit 3: a limit on time, memory or size was reached

Each message says what was found, what was expected and where. Nothing else escapes `superopt.cli`
except a bug, which shows its traceback.
"""


class SuperoptError(Exception):
    """Base of all errors that are answers, not bugs."""

    exit_code = 1


class BadInput(SuperoptError):
    exit_code = 2


class BadModel(BadInput):
    pass


class BadExternalData(BadInput):
    pass


class BadOption(BadInput):
    pass


class CannotWrite(BadInput):
    pass


class CannotRun(BadInput):
    pass


class BadText(BadInput):
    """`file:line:column: expected X, found Y`, with the line and a caret under the place."""

    def __init__(self, message: str, source: str, line: int, column: int, text: str) -> None:
        self.message, self.source, self.line, self.column = message, source, line, column
        super().__init__(f"{source}:{line}:{column}: {message}\n  {text}\n  {' ' * (column - 1)}^")


class CannotReplay(SuperoptError):
    exit_code = 1


class WorkerDied(SuperoptError):
    exit_code = 1

    def __init__(self, message: str, *, crashed: bool = False) -> None:
        """`crashed`: by its own doing; nobody else ended it."""
        self.crashed = crashed
        super().__init__(message)


class LimitHit(SuperoptError):
    exit_code = 3
