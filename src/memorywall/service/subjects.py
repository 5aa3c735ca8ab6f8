"""Subjects: binding of requests to people, and the namespaces of subjects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from msgspec import structs

from memorywall.records.entry import MOST_SUBJECTS, SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import MemoryAccessError, ValidationError
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Principal
from memorywall.service.context import ServiceContext
from memorywall.service.opened_key import DIGEST_MARK
from memorywall.service.operation_context import OperationCall, OperationContext
from memorywall.service.validation import check_name
from memorywall.tiers.shared import PREFIX as SHARED_PREFIX

LONGEST_SUBJECT = 128
USER_PREFIX = "user/"


def check_subject(field: str, subject: str) -> str:
    """A valid id of a person: a name that can be one segment of a path and is no digest."""
    return check_name(field, subject, longest=LONGEST_SUBJECT, without=f"/*,{DIGEST_MARK}")


async def bind_subject(service: ServiceContext, call: OperationCall) -> OperationCall:
    """The call with its principal bound to the subject of the request.

    Raises MemoryAccessError if the key is limited to other subjects, if a limited key names none,
    and for an operation that does not accept bound requests; ValidationError.
    """
    principal = call.principal
    if call.operation.public or (call.subject is None and not principal.limited_to):
        return call
    if call.subject is None:
        raise MemoryAccessError("this key is limited to subjects; name one in `X-Subject`")
    subject = check_subject("X-Subject", call.subject)
    if not call.operation.reads_subject:
        raise MemoryAccessError(
            f"`{call.operation.name}` is not available to a request that is bound to a subject;"
            " call it without `X-Subject` or `for_user`"
        )
    form = await subject_form(service, principal.tenant, subject)
    if principal.limited_to and form not in principal.limited_to:
        raise MemoryAccessError("this key is limited to other subjects")
    bound = replace(principal, subjects=(subject,), subject_forms=(subject, form))
    if principal.namespaces is not None:
        # The key names namespaces as its holder does; the entries have the stored forms.
        forms = (namespace_forms(bound, name) for name in principal.namespaces)
        bound = replace(bound, namespaces=tuple(chain.from_iterable(forms)))
    fingerprint = call.fingerprint + b"\0" + subject.encode()
    return replace(call, principal=bound, fingerprint=fingerprint)


async def subject_form(service: ServiceContext, tenant: str, subject: str) -> str:
    """Returns the name of a subject in sealed entries and keys: a digest keyed by the tenant."""
    await service.cipher.prepare_digests(service.store, tenant, service.now())
    return service.cipher.prepared_digest(tenant, subject)


def check_subjects(principal: Principal, given: Iterable[str]) -> tuple[str, ...]:
    """The subjects of a new entry: the given ones and those of the request.

    Raises MemoryAccessError for a subject outside of the binding, ValidationError.
    """
    named = tuple(dict.fromkeys(check_subject("subjects", one) for one in given))
    if principal.subjects is not None:
        if not set(named) <= set(principal.subjects):
            raise MemoryAccessError("this request is bound to another subject")
        named = principal.subjects
    return check_count(named)


def check_count(subjects: tuple[str, ...]) -> tuple[str, ...]:
    """Raises ValidationError for more than `MOST_SUBJECTS` subjects."""
    if len(subjects) > MOST_SUBJECTS:
        raise ValidationError(
            f"an entry may be about at most {MOST_SUBJECTS} subjects; anonymise what is about more"
        )
    return subjects


async def merge_subjects(
    context: OperationContext, own: tuple[str, ...], derived: Iterable[str]
) -> tuple[str, ...]:
    """The subjects of an entry and those of its sources, each once.

    derived: as the sources store them; a digest whose name is known counts once, as the name
    """
    others = [one for one in dict.fromkeys(derived) if one not in own]
    if any(one.startswith(DIGEST_MARK) for one in others):
        digest = context.service.cipher.literal_digest
        names = [*own, *(one for one in others if not one.startswith(DIGEST_MARK))]
        known = {await digest(context.transaction, name, context.now) for name in names}
        others = [one for one in others if one not in known]
    return check_count((*own, *others))


async def include_subjects(
    context: OperationContext, subjects: Iterable[str], others: Iterable[str]
) -> bool:
    """Whether subjects contain all others, each by its name or its digest."""
    missing = set(others).difference(subjects)
    if not missing:
        return True
    digest = context.service.cipher.literal_digest
    known = {await digest(context.transaction, one, context.now) for one in subjects}
    return known.issuperset(
        [await digest(context.transaction, one, context.now) for one in missing]
    )


def own_namespace(principal: Principal, namespace: str, sensitivity: str) -> str:
    """Returns the namespace that a bound request names: that of its subject.

    For confidential and restricted entries the stored name contains a digest instead of the
    subject.
    """
    if not principal.subject_forms or namespace.startswith(SHARED_PREFIX):
        return namespace
    subject, form = principal.subject_forms
    shown = form if sensitivity in SEALED_SENSITIVITIES else subject
    return f"{USER_PREFIX}{shown}/{_rest(principal, namespace)}"


def namespace_forms(principal: Principal, namespace: str) -> tuple[str, ...]:
    """Returns the stored forms of the namespace of a bound request: the given one first."""
    if not principal.subject_forms or namespace.startswith(SHARED_PREFIX):
        return (namespace,)
    rest = _rest(principal, namespace)
    forms = (f"{USER_PREFIX}{one}/{rest}" for one in principal.subject_forms)
    return tuple(dict.fromkeys((namespace, *forms)))


def shown_namespace(principal: Principal, namespace: str) -> str:
    """A stored namespace in the form for a bound request, with the subject's name."""
    if not principal.subject_forms:
        return namespace
    subject, form = principal.subject_forms
    prefix = f"{USER_PREFIX}{form}/"
    if not namespace.startswith(prefix):
        return namespace
    return f"{USER_PREFIX}{subject}/{namespace.removeprefix(prefix)}"


def own_filter(principal: Principal, wanted: EntryFilter) -> EntryFilter:
    """The filter of a bound request, with the namespace of its subject."""
    if not principal.subject_forms:
        return wanted
    named = wanted.namespace if wanted.namespace is not None else wanted.namespace_prefix
    if named is None or named.startswith(SHARED_PREFIX):
        return wanted
    subject, form = principal.subject_forms
    rest = _rest(principal, named)
    own, alias = f"{USER_PREFIX}{subject}/{rest}", f"{USER_PREFIX}{form}/{rest}"
    if wanted.namespace is not None:
        return structs.replace(wanted, namespace=own, aliases=(alias,))
    return structs.replace(wanted, namespace_prefix=own, aliases=(alias,))


async def with_subject_forms(context: OperationContext, wanted: EntryFilter) -> EntryFilter:
    """The filter with all stored forms of its subject."""
    if len(wanted.about) != 1:
        return wanted
    form = await context.service.cipher.find_digest(context.transaction, wanted.about[0])
    return wanted if form is None else structs.replace(wanted, about=(wanted.about[0], form))


def check_reseal(old: Entry, new: Entry) -> None:
    """Raises ValidationError if an update would write a subject's name into a namespace in clear
    text, or leave it there."""
    was, will = (one.sensitivity in SEALED_SENSITIVITIES for one in (old, new))
    if was is will or not old.namespace.startswith(USER_PREFIX):
        return
    name = old.namespace.split("/")[1]
    if name in old.subjects:
        raise ValidationError(
            "`sensitivity` of an entry in the namespace of a subject cannot become sealed or"
            " unsealed; create the entry anew"
        )


def _rest(principal: Principal, namespace: str) -> str:
    for one in principal.subject_forms or ():
        prefix = f"{USER_PREFIX}{one}/"
        if namespace.startswith(prefix):
            return namespace.removeprefix(prefix)
    return namespace
