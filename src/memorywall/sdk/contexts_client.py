"""`client.context`, sync and async."""

from __future__ import annotations

from memorywall.sdk.contexts import ContextsCore
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking


class ContextsClient(Facade[ContextsCore]):
    """Compiles contexts, shows them again, and records what became of them."""

    __call__ = blocking(ContextsCore.compile)
    get = blocking(ContextsCore.get)
    outcome = blocking(ContextsCore.outcome)


class AsyncContextsClient(AsyncFacade[ContextsCore]):
    """The async variant of `ContextsClient`."""

    __call__ = awaiting(ContextsCore.compile)
    get = awaiting(ContextsCore.get)
    outcome = awaiting(ContextsCore.outcome)
