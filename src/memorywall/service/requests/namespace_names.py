"""Names of namespaces: how requests name them, and the forms in which they are stored.

New names are stored in NFC. Older entries may have other forms of a name, such as NFD. A namespace
of a person is named `user/ann/prefs`. Beside a confidential or restricted entry about the person
the stored name has a digest in place of `ann`. All forms are one name: requests find all of them, a
key of an entry is unique over them, and new entries get the permissions of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from memorywall.records.entry import Entry, is_expired
from memorywall.records.errors import ValidationError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import name_forms
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.encryption.opened_key import DIGEST_MARK
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_namespace
from memorywall.storage.port import Store
from memorywall.tiers.shared import PREFIX as SHARED_PREFIX

USER_PREFIX = "user/"


def own_namespace(principal: Principal, namespace: str) -> str:
    """Returns the full name of a namespace that a request names: that of its subject if it is bound
    to exactly one."""
    name = shown_namespace(principal, namespace)
    subjects = principal.subjects or ()
    if len(subjects) != 1 or name.startswith(SHARED_PREFIX):
        return name
    for one in name_forms(subjects[0]):
        prefix = f"{USER_PREFIX}{one}/"
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return f"{USER_PREFIX}{subjects[0]}/{name}"


def shown_namespace(principal: Principal, namespace: str) -> str:
    """Returns a stored namespace with the name of a subject of the request in place of its
    digest."""
    subjects = principal.subjects or ()
    if subjects and namespace.startswith(USER_PREFIX + DIGEST_MARK):
        digests = (principal.subject_forms or ())[len(subjects) : 2 * len(subjects)]
        for subject, digest in zip(subjects, digests, strict=True):
            prefix = f"{USER_PREFIX}{digest}/"
            if namespace.startswith(prefix):
                return f"{USER_PREFIX}{subject}/{namespace.removeprefix(prefix)}"
    return namespace


def check_full_name(namespace: str) -> str:
    """The full name of the namespace of a new entry. Raises ValidationError for a stored form,
    which cannot be compared with the name."""
    if namespace.startswith(USER_PREFIX + DIGEST_MARK):
        raise ValidationError(
            "`namespace` is a stored form; name the person in place of what begins with"
            f" `{DIGEST_MARK}`"
        )
    return namespace


async def namespace_forms(context: OperationContext, name: str) -> tuple[str, ...]:
    """Returns the stored forms of a full name or prefix, the given one first."""
    person = _person_of(name)
    if person is None:
        return (name,) if name.isascii() else tuple(dict.fromkeys((name, *name_forms(name))))
    digests = {
        one: await context.service.cipher.find_digest(context.transaction, one)
        for one in name_forms(person)
    }
    return _forms_of_person(name, person, digests)


async def all_forms(context: OperationContext, names: Iterable[str]) -> tuple[str, ...]:
    """Returns the stored forms of some full names or prefixes."""
    return tuple([form for name in names for form in await namespace_forms(context, name)])


async def forms_of_limits(
    cipher: EnvelopeCipher, store: Store, tenant: str, names: Iterable[str], now: str
) -> tuple[str, ...]:
    """Returns the stored forms of the full names that a key is limited to, outside of
    transactions."""
    forms: dict[str, None] = {}
    for name in names:
        person = _person_of(name)
        if person is None:
            forms.update(dict.fromkeys((name, *name_forms(name))))
            continue
        await cipher.prepare_digests(store, tenant, now)
        digests = {one: cipher.prepared_digest(tenant, one) for one in name_forms(person)}
        forms.update(dict.fromkeys(_forms_of_person(name, person, digests)))
    return tuple(forms)


async def stored_names(context: OperationContext, namespace: str) -> tuple[str, ...]:
    """Returns the stored forms of a namespace that a request names, the full name first."""
    return await namespace_forms(context, own_namespace(context.principal, namespace))


async def stored_namespace(context: OperationContext, entry: Entry) -> str:
    """Returns the stored form of the namespace of a new confidential or restricted entry with its
    full name: with a digest in place of the name of a subject of the entry."""
    person = _person_of(entry.namespace)
    if person is None or person not in entry.subjects:
        return entry.namespace
    cipher = context.service.cipher
    digest = await cipher.literal_digest(context.transaction, person, context.now)
    return check_namespace(_renamed(entry.namespace, person, digest))


def is_named(wanted: EntryFilter) -> bool:
    """Whether `stored_filter` may change a filter."""
    return bool(wanted.about) or (wanted.namespace or wanted.namespace_prefix) is not None


async def stored_filter(
    context: OperationContext, wanted: EntryFilter, *, for_reading: bool = False
) -> EntryFilter:
    """The filter of a request with all stored forms of its namespace or prefix, and of its
    subject.

    for_reading: whether a request inside a session means the namespace without its subject as well,
        because the session shows what is about its subject or about nobody; default: false
    """
    is_inside = for_reading and context.principal.session is not None
    names_of = _names_inside if is_inside else stored_names
    if wanted.namespace is not None:
        name, *others = await names_of(context, wanted.namespace)
        if name != wanted.namespace or others:
            wanted = structs.replace(wanted, namespace=name, aliases=tuple(others))
    elif wanted.namespace_prefix is not None:
        name, *others = await names_of(context, wanted.namespace_prefix)
        if name != wanted.namespace_prefix or others:
            wanted = structs.replace(wanted, namespace_prefix=name, aliases=tuple(others))
    if len(wanted.about) == 1:
        forms = list(name_forms(wanted.about[0]))
        for subject in tuple(forms):
            digest = await context.service.cipher.find_digest(context.transaction, subject)
            if digest is not None:
                forms.append(digest)
        wanted = structs.replace(wanted, about=tuple(forms))
    return wanted


async def _names_inside(context: OperationContext, namespace: str) -> tuple[str, ...]:
    """Returns the stored forms of a namespace with and without the subject of the session."""
    names = await stored_names(context, namespace)
    plain = await namespace_forms(context, shown_namespace(context.principal, namespace))
    return tuple(dict.fromkeys((*names, *plain)))


async def find_holders(context: OperationContext, entry: Entry) -> list[Entry]:
    """Returns the entries that have the name of an entry, in any stored form, including expired
    ones that the sweep has not removed yet.

    entry: the entry with the full name of its namespace
    """
    found = [
        await context.transaction.entries.find(
            entry.tier, entry.owner, namespace, key, session or None
        )
        for namespace in await namespace_forms(context, entry.namespace)
        for key in name_forms(entry.key)
        for session in name_forms(entry.scope.session_id or "")
    ]
    return [one for one in found if one is not None]


def has_several_forms(entry: Entry) -> bool:
    """Whether the name of an entry may be stored in several forms, of which the store knows only
    one."""
    if entry.namespace.startswith(USER_PREFIX):
        return True
    session = entry.scope.session_id
    return not (
        entry.namespace.isascii() and entry.key.isascii() and (session is None or session.isascii())
    )


async def find_holder(context: OperationContext, entry: Entry) -> Entry | None:
    """Returns the live entry that has the name of an entry; see `find_holders`."""
    holders = await find_holders(context, entry)
    return next((one for one in holders if not is_expired(one, context.now)), None)


async def find_namespaces(context: OperationContext, name: str) -> list[Namespace]:
    """Returns the stored namespaces of a name, one for each stored form that entries have."""
    forms = await stored_names(context, name)
    if name.startswith(USER_PREFIX + DIGEST_MARK):
        # The name cannot be computed from its digest.
        known = await context.transaction.namespaces.list_for("")
        forms = tuple([one.name for one in known if name in await all_forms(context, (one.name,))])
    found = [await context.transaction.namespaces.get(form) for form in forms]
    return [one for one in found if one is not None]


def _person_of(name: str) -> str | None:
    """Returns the person in a name `user/<person>/...`; None without one, or with a digest."""
    if not name.startswith(USER_PREFIX):
        return None
    person, slash, _ = name.removeprefix(USER_PREFIX).partition("/")
    return person if slash and not person.startswith(DIGEST_MARK) else None


def _renamed(name: str, person: str, form: str) -> str:
    return f"{USER_PREFIX}{form}/{name.removeprefix(f'{USER_PREFIX}{person}/')}"


def _forms_of_person(name: str, person: str, digests: Mapping[str, str | None]) -> tuple[str, ...]:
    """Returns the forms of a name with a person, the given one first.

    digests: the digest of each form of the person; None for one that no entry has
    """
    places = name_forms(name.removeprefix(f"{USER_PREFIX}{person}/"))
    people = (form for pair in digests.items() for form in pair if form is not None)
    forms = (f"{USER_PREFIX}{form}/{place}" for form in people for place in places)
    return tuple(dict.fromkeys((name, *forms)))
