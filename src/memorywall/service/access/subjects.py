"""Subjects: binding of requests to people, and the subjects of entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain

import msgspec

from memorywall.records.entry import MOST_SUBJECTS, SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import MemoryAccessError, ValidationError
from memorywall.records.identifiers import name_forms, normalize_name
from memorywall.records.principal import Principal
from memorywall.service.encryption.opened_key import DIGEST_MARK
from memorywall.service.requests.namespace_names import USER_PREFIX, forms_of_limits, own_namespace
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_name

LONGEST_SUBJECT = 128


def check_subject(field: str, subject: str, *, is_new: bool = True) -> str:
    """A valid id of a person in NFC: a name that can be one segment of a path and is no digest.

    is_new: see `check_name`
    """
    without = f"/*,{DIGEST_MARK}"
    return check_name(field, subject, longest=LONGEST_SUBJECT, without=without, is_new=is_new)


def parse_subjects(text: str) -> tuple[str, ...]:
    """The people of an `X-User` header: names, separated by commas, each once.

    Raises ValidationError for an invalid name and for more than `MOST_SUBJECTS` names.
    """
    given = (one.strip(" \t") for one in text.split(","))
    names = dict.fromkeys(check_subject("X-User", one, is_new=False) for one in given)
    if len(names) > MOST_SUBJECTS:
        raise ValidationError(f"`X-User` may name at most {MOST_SUBJECTS} people")
    return tuple(names)


async def bind_subject(
    service: SharedServices, call: OperationCall, *, is_inside: bool = False
) -> OperationCall:
    """The call with its principal bound to the subjects of the request. A key that is limited to
    one subject binds a request that names none.

    is_inside: whether the request is inside a session, which the operation accepts

    Raises MemoryAccessError if the key is limited to other subjects, if a key limited to several
    names none, and for an operation that does not accept bound requests; ValidationError.
    """
    principal = call.principal
    named = principal.only_subject if call.subject is None else call.subject
    if call.operation.public or (named is None and not principal.limited_to):
        return call
    if named is None:
        raise MemoryAccessError("this key is limited to subjects; name some in `X-User`")
    subjects = parse_subjects(named)
    if not (is_inside or call.operation.reads_subject):
        advice = (
            "use a key without this limit"
            if principal.limited_to
            else "call it without `X-User` or `for_user`"
        )
        raise MemoryAccessError(
            f"`{call.operation.name}` is not available to a request that is bound to a subject;"
            f" {advice}"
        )
    await service.cipher.prepare_digests(service.store, principal.tenant, service.now())
    digest = partial(service.cipher.prepared_digest, principal.tenant)
    forms, others = list[str](), list[str]()
    for subject in subjects:
        name, *older = name_forms(subject)
        forms.append(digest(name))
        stored = [one for old in older for one in (old, digest(old))]
        others += stored
        if principal.limited_to and {forms[-1], *stored}.isdisjoint(principal.limited_to):
            raise MemoryAccessError("this key is limited to other subjects")
    bound = replace(principal, subjects=subjects, subject_forms=(*subjects, *forms, *others))
    if principal.namespaces is not None:
        # The key names namespaces as its holder does; the entries have the stored forms.
        full = chain.from_iterable((one, own_namespace(bound, one)) for one in principal.namespaces)
        places = await forms_of_limits(
            service.cipher, service.store, principal.tenant, full, service.now()
        )
        bound = replace(bound, namespaces=places)
    fingerprint = call.fingerprint + b"\0" + ",".join(subjects).encode()
    return msgspec.structs.replace(call, principal=bound, subject=named, fingerprint=fingerprint)


async def subject_form(service: SharedServices, tenant: str, subject: str) -> str:
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
        named = tuple(check_subject("X-Subject", one) for one in principal.subjects)
    return check_count(named)


def sole_subject(principal: Principal, given: str | None) -> str | None:
    """The person of a session: the given one, or that of the request; None for nobody.

    Raises ValidationError for a request that is bound to several subjects, MemoryAccessError for a
    subject outside of the binding.
    """
    subjects = check_subjects(principal, () if given is None else (given,))
    if len(subjects) > 1:
        raise ValidationError("a session has one subject; bind the request to one person")
    return subjects[0] if subjects else None


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
    others = [one for one in dict.fromkeys(map(normalize_name, derived)) if one not in own]
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


def check_reseal(old: Entry, new: Entry) -> None:
    """Raises ValidationError if an update would write a subject's name into a namespace in clear
    text, or leave it there."""
    if old.sensitivity == new.sensitivity or not old.namespace.startswith(USER_PREFIX):
        return
    was, will = (one.sensitivity in SEALED_SENSITIVITIES for one in (old, new))
    if was is will:
        return
    name = old.namespace.split("/")[1]
    if name in old.subjects:
        raise ValidationError(
            "`sensitivity` of an entry in the namespace of a subject cannot become sealed or"
            " unsealed; create the entry anew"
        )
