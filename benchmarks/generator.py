"""The load generator's process, and the handle the benchmark holds it by.

It is a process of its own so that its work never shares an interpreter with anything measured,
and one process for the whole run so that it keeps the ids and versions it was told.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import signal
from multiprocessing.connection import Connection
from threading import RLock
from typing import Self

import uvloop
from tqdm import tqdm

from benchmarks.direct import measure_directly
from benchmarks.load import Conversation, drive
from benchmarks.plan import Borrow, Command, Direct, LoadResult, Measure, Reply, Sample, Seed
from benchmarks.seeding import fill
from benchmarks.workloads import Stock, conversations

Answer = LoadResult | list[Reply] | Exception | None
ANSWER_TIMEOUT = 60.0


class GeneratorError(Exception):
    """The load generator could not do what it was asked to."""


class Generator:
    """Starts the load generator, sends it commands, and ends it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def tell(self, command: Seed | Borrow) -> None:
        """Have a store filled or borrowed; filling has its own time limit."""
        self._ask(command, None)

    def sample(self, command: Sample) -> list[Reply]:
        """Get some replies."""
        answer = self._ask(command, ANSWER_TIMEOUT)
        assert isinstance(answer, list)
        return answer

    def measure(self, command: Measure | Direct) -> LoadResult:
        """Load a server or its database for some seconds."""
        answer = self._ask(command, command.seconds + ANSWER_TIMEOUT)
        assert isinstance(answer, LoadResult)
        return answer

    def _ask(self, command: Command, timeout: float | None) -> Answer:
        self._pipe.send(command)
        if not self._pipe.poll(timeout):
            raise GeneratorError(f"no answer to {type(command).__name__} in {timeout} seconds")
        try:
            answer: Answer = self._pipe.recv()
        except EOFError:
            raise GeneratorError("the load generator has died") from None
        if isinstance(answer, Exception):
            raise GeneratorError(str(answer)) from answer
        return answer


class _Recording:
    """Lets one conversation say so many things, and keeps every reply."""

    def __init__(self, conversation: Conversation, requests: int) -> None:
        self._conversation = conversation
        self._left = requests
        self.replies: list[Reply] = []

    def next_request(self) -> bytes | None:
        if not self._left:
            return None
        self._left -= 1
        return self._conversation.next_request()

    def accept_response(self, status: int, body: bytes) -> bool:
        """Keep the reply and judge it as the conversation does."""
        self.replies.append(Reply(status=status, body=body))
        return self._conversation.accept_response(status, body)


def _serve(pipe: Connection) -> None:
    """Do what comes over the pipe until it closes."""
    # Ctrl-C reaches the whole process group; the benchmark itself ends this process then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing here makes cycles, and a collection over a million ids would pause the load.
    gc.disable()
    # The usual lock of tqdm outlives a process that is killed.
    tqdm.set_lock(RLock())
    stocks: dict[str, Stock] = {}
    while True:
        try:
            command: Command = pipe.recv()
        except EOFError:
            return
        try:
            answer: Answer = uvloop.run(_obey(command, stocks))
        except Exception as error:
            # Some exceptions do not survive a pickle; their text always does.
            answer = GeneratorError(f"{type(error).__name__}: {error}")
        pipe.send(answer)


async def _obey(command: Command, stocks: dict[str, Stock]) -> Answer:
    match command:
        case Seed():
            stocks[command.stock] = await fill(command)
            return None
        case Borrow():
            stocks[command.stock] = stocks[command.source].borrowed()
            return None
        case Sample():
            stock = stocks[command.stock]
            (conversation,) = conversations(command.operation, stock, command.endpoint, 1)
            recording = _Recording(conversation, command.requests)
            result = await drive(command.endpoint.ports, [recording], math.inf, ANSWER_TIMEOUT)
            if result.errors:
                raise GeneratorError(f"sampling {command.operation}: {result.first_error}")
            return recording.replies
        case Measure():
            stock = stocks[command.stock]
            talk = conversations(command.operation, stock, command.endpoint)
            return await drive(command.endpoint.ports, talk, command.seconds)
        case Direct():
            return await measure_directly(command, stocks[command.stock])
