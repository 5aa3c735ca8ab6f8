"""The operations of a client itself: `remember` and `recall`, and those on the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Unpack

from memorywall.records.errors import RequestError
from memorywall.sdk import retry
from memorywall.sdk.client_state import whoami
from memorywall.sdk.corrections import CorrectionsCore
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.episodes import EpisodesCore
from memorywall.sdk.errors import decode, raise_for
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.fields import WriteOptions, checked_text, entry_fields, lifetime
from memorywall.sdk.filters import without_absent
from memorywall.sdk.indexing import may_wait
from memorywall.sdk.models import Identity, MemoryEntry, SearchResults
from memorywall.sdk.retry import call
from memorywall.sdk.values import remembered_value
from memorywall.wire.erasure import ForgetAgentResponse, ForgetResponse
from memorywall.wire.kinds import (
    EvictResponse,
    KindResponse,
    SchemaListResponse,
    SchemaResponse,
    TierListResponse,
    TierResponse,
)
from memorywall.wire.operations import OPERATIONS_BY_NAME
from memorywall.wire.parameters import parameters_of
from memorywall.wire.quotas import QuotaResponse
from memorywall.wire.service import (
    CapabilitiesResponse,
    DiscoveryResponse,
    ReadinessResponse,
    StatusResponse,
    TenantStatusResponse,
)
from memorywall.wire.worthiness import WorthinessResponse

Shape = TypeVar("Shape")


class ServiceCore(CorrectionsCore, EpisodesCore):
    """`remember`, `recall` and corrections, and the operations on the server itself, as request
    generators."""

    @may_wait
    def remember(
        self,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        user: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Stores a text and returns its entry.

        The entry is new: episodic memory of the client's agent in the namespace `remembered`, with
        a key that the server makes and the value `{"text": text}`, with the member `metadata` if
        some is given. When episodic memory is full, the least recently used entries are evicted,
        unless they are `pinned`. With `for_user` the entry is about that person. The options are
        the fields of `memory.set`.

        `worthiness` of the entry says whether the text is worth keeping, and by which rule. If
        readable memory says the same already, nothing is stored, the entry that says it is
        returned, and the rule is `duplicate`.

        metadata: an object about the text, such as `{"channel": "email"}`; the condition
            `where='value.metadata.channel = "email"'` finds it
        user: the person that the text is about, as by `client.for_user`

        Raises ValidationError for an empty text and for metadata that is no object,
        ValueTooLargeError, MemoryCapacityError, MemoryAccessError, and RuleError if the tenant
        refuses what is not worth keeping; what a person says is never refused.
        """
        fields = entry_fields(remembered_value(checked_text(text), metadata), options)
        body = {**fields.pop("value"), **fields, **without_absent({"user": user})}
        fence = fencing_token_of(self._state, options.get("fencing_token"))
        return (yield from self.send_remembered(body, fence))

    def recall(
        self,
        question: str,
        *,
        user: str | None = None,
        namespace: str | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> RequestGenerator[SearchResults]:
        """Returns the readable entries that answer a question best, best first: see
        `memory.search`. Nothing is returned if none of them probably answers it; `left_out` of the
        result counts what was found.

        All readable memory is searched, not only what `remember` has stored. With `for_user` it is
        memory about that person, and memory without a subject.

        user: the person that the question is asked for, as by `client.for_user`
        namespace: only in this namespace, or a prefix followed by `*`; default: all
        limit: the most hits; default 10, maximum 100
        strict: if the question names things that memory has by name, only what is about these

        Raises ValidationError for a question without a word.
        """
        return (
            yield from self.answer(
                question, user=user, namespace=namespace, limit=limit, strict=strict
            )
        )

    def capabilities(self) -> RequestGenerator[CapabilitiesResponse]:
        """Returns the features and limits of the server."""
        return call("get_capabilities", CapabilitiesResponse)

    def discover(self) -> RequestGenerator[DiscoveryResponse]:
        """Returns the OpenIntent discovery document."""
        return call("discover", DiscoveryResponse)

    def health(self) -> RequestGenerator[StatusResponse]:
        """Returns whether the server is alive."""
        return call("health", StatusResponse)

    def ready(self) -> RequestGenerator[ReadinessResponse]:
        """Returns whether the server can read its store and open sealed values, and the embedding
        lag."""
        return call("ready", ReadinessResponse)

    def status(self) -> RequestGenerator[TenantStatusResponse]:
        """Returns the state of the server, and the entries by tier and background jobs of the
        tenant, for administrators of the tenant. Raises MemoryAccessError."""
        return call("get_status", TenantStatusResponse)

    def metrics(self) -> RequestGenerator[str]:
        """Returns the metrics of the server in Prometheus' text format."""
        response = yield from retry.send_repeatable(Request(operation="metrics"))
        raise_for(response)
        return response.body.decode()

    def tiers(self) -> RequestGenerator[list[TierResponse]]:
        """Returns the tiers of the tenant and their properties."""
        return (yield from call("list_tiers", TierListResponse)).tiers

    def narrow_tier(
        self,
        memory_type: str,
        *,
        capacity: int | None = None,
        default_ttl: str | None = None,
        eviction: str | None = None,
        admission: Literal["promoted"] | None = None,
    ) -> RequestGenerator[TierResponse]:
        """Narrows a tier of the tenant; for tenant administrators. An omitted field gets the value
        of the server again. Returns the changed tier.

        capacity: entries, at most the server's capacity of the tier
        default_ttl: the `ttl` of entries without one, such as "30d"
        eviction: "refuse", "lru", "lfu", "oldest" or "utility"
        admission: "promoted" closes the tier: what an agent writes itself waits as a proposal
        Raises MemoryAccessError, ValidationError, ResourceNotFoundError.
        """
        ttl = None if default_ttl is None else lifetime(default_ttl, "default_ttl")
        limits = {"capacity": capacity, "default_ttl": ttl, "eviction": eviction}
        limits["admission"] = admission
        return call("narrow_tier", TierResponse, memory_type=memory_type, body=limits)

    def quota(self) -> RequestGenerator[QuotaResponse]:
        """Returns the quota of the tenant and its usage; for tenant administrators. Raises
        MemoryAccessError."""
        return call("get_quota", QuotaResponse)

    def set_quota(
        self, *, entries: int | None = None, bytes: int | None = None
    ) -> RequestGenerator[QuotaResponse]:
        """Sets a quota of the tenant; for tenant administrators. An omitted limit is removed, and
        that of the operator applies. Returns the quota that applies.

        entries: the most entries of all tiers together, at most those of the operator
        bytes: the most bytes of the JSON texts of their values, likewise

        Raises MemoryAccessError, ValidationError.
        """
        return call("set_quota", QuotaResponse, body={"entries": entries, "bytes": bytes})

    def worthiness(self) -> RequestGenerator[WorthinessResponse]:
        """Returns the rules that say which texts are worth keeping, how often each has decided for
        the tenant, and what happens to the others; for tenant administrators. Raises
        MemoryAccessError."""
        return call("get_worthiness", WorthinessResponse)

    def set_worthiness(self, mode: str | None) -> RequestGenerator[WorthinessResponse]:
        """Sets what the tenant does with texts that are not worth keeping; for tenant
        administrators.

        mode: "off" to judge nothing, "mark" to say so in the reply, "refuse"; None for what the
            settings of the server say

        Raises MemoryAccessError, ValidationError.
        """
        return call("set_worthiness", WorthinessResponse, body={"mode": mode})

    def evict(
        self,
        memory_type: str,
        target: int,
        *,
        agent_id: str | None = None,
        task_id: str | None = None,
        namespace: str | None = None,
        policy: str | None = None,
        dry_run: bool = False,
    ) -> RequestGenerator[EvictResponse]:
        """Evicts entries of a tier until `target` are left, for administrators of the tenant.

        agent_id: the owner of the entries, in a tier that is isolated by agent
        task_id: only entries that are bound to this task, in a tier with a capacity for each task
        namespace: the namespace of the entries, in a tier that is isolated by namespace
        policy: "lru", "lfu", "oldest" or "utility"; default: the policy of the tier, required where
            that is "refuse"
        dry_run: return the entries without evicting them

        Raises MemoryAccessError, ValidationError, ResourceNotFoundError.
        """
        asked = {
            "target": target,
            "agent_id": agent_id,
            "task_id": task_id,
            "namespace": namespace,
            "policy": policy,
            "dry_run": dry_run,
        }
        return call(
            "evict_entries", EvictResponse, memory_type=memory_type, body=without_absent(asked)
        )

    def schemas(self) -> RequestGenerator[list[KindResponse]]:
        """Returns the kinds of values that the server supports."""
        return (yield from call("list_schemas", SchemaListResponse)).schemas

    def schema(self, kind: str) -> RequestGenerator[SchemaResponse]:
        """Returns a kind and the JSON Schema of its values. Raises ResourceNotFoundError."""
        return call("get_schema", SchemaResponse, kind=kind)

    def forget(self, user: str, *, wait: int = 0) -> RequestGenerator[ForgetResponse]:
        """Erases everything about a person, with derived entries, for administrators of the tenant.
        After an interruption, call it again to complete the erasure.

        user: the id of the person, as entries name it in `subjects`
        wait: seconds to wait until the bytes have left the files, up to 20; `bytes_left_in_files`
            of the result tells whether some are left, and a repeated call tells it later

        Raises MemoryAccessError, ValidationError.
        """
        return call("forget_subject", ForgetResponse, query={"wait": wait}, subject=user)

    def forget_agent(
        self, agent_id: str, *, wait: int = 0
    ) -> RequestGenerator[ForgetAgentResponse]:
        """Erases everything that only an agent owns, revokes its API keys and destroys its data
        keys, for administrators of the tenant. Its entries in shared memory remain. After an
        interruption, call it again to complete the erasure.

        wait: as for `forget`

        Raises MemoryAccessError, ValidationError.
        """
        query = {"wait": wait}
        return call("forget_agent", ForgetAgentResponse, query=query, agent_id=agent_id)

    def call(self, operation: str, /, **parameters: Any) -> RequestGenerator[Any]:
        """Returns the result of any operation with a JSON request and response, as dicts, lists and
        scalars; for operations without a method of their own. Without a result, and where
        `if_none_match` names the current ETag, returns None.

        operation: its name in the reference
        parameters: the parameters of its path, query and body by name, `if_match`,
            `if_none_match`, `media_type` and `fencing_token`; use `**{"scope.task_id": ...}` for a
            name with a dot

        Raises RequestError for an unknown operation name, and the errors of the operation.
        """
        record = OPERATIONS_BY_NAME.get(operation)
        if record is None or not record.is_json:
            raise RequestError("there is no operation of this name that takes and answers JSON")
        given = parameters_of(record, parameters)
        request = Request(
            operation=operation,
            path=given.path,
            query=retry.texts(given.query),
            body=given.body,
            if_match=given.if_match,
            if_none_match=given.if_none_match,
            media_type=given.media_type,
            fencing_token=None if given.fencing_token is None else int(given.fencing_token),
        )
        response = yield from retry.send(request)
        return None if response.status in (204, 304) else decode(response, object)

    def whoami(self) -> RequestGenerator[Identity]:
        """Returns the principal and the permissions of the client's key."""
        return whoami(self._state)
