"""All the nouns within one transaction."""

from __future__ import annotations

from memorywall.storage.postgres.attachments import PostgresAttachments
from memorywall.storage.postgres.coordinators import PostgresCoordinators
from memorywall.storage.postgres.entries import PostgresEntries
from memorywall.storage.postgres.events import PostgresEvents
from memorywall.storage.postgres.identities import PostgresIdentities
from memorywall.storage.postgres.intents import PostgresIntents
from memorywall.storage.postgres.leases import PostgresLeases
from memorywall.storage.postgres.namespaces import PostgresNamespaces
from memorywall.storage.postgres.pending import Mark, Pending
from memorywall.storage.postgres.recall import PostgresRecall
from memorywall.storage.postgres.replies import PostgresDataKeys, PostgresKeptReplies
from memorywall.storage.postgres.session import Session
from memorywall.storage.postgres.tasks import PostgresTasks


class PostgresTransaction:
    """`port.Transaction`; beginning and ending it is the business of who owns the connection.

    last: the end of the tenant's log
    cautious, side_by_side: see `PostgresEntries`
    """

    def __init__(
        self,
        session: Session,
        last: int = 0,
        *,
        cautious: bool = False,
        side_by_side: bool = False,
    ) -> None:
        self.session = session
        self.pending = Pending(session)
        self.entries = PostgresEntries(
            session, self.pending, cautious=cautious, side_by_side=side_by_side
        )
        self.events = PostgresEvents(session, self.pending, last)
        self.namespaces = PostgresNamespaces(session)
        self.identities = PostgresIdentities(session)
        self.replies = PostgresKeptReplies(session)
        self.data_keys = PostgresDataKeys(session)
        self.leases = PostgresLeases(session)
        self.intents = PostgresIntents(session)
        self.tasks = PostgresTasks(session)
        self.coordinators = PostgresCoordinators(session)
        self.attachments = PostgresAttachments(session)
        self.recall = PostgresRecall(session, self.pending)
        self._last = last
        self._mark: Mark = self.pending.mark()
        self._statements = 0

    def begin_script(self) -> None:
        """From here on `undo_script` undoes."""
        self._mark, self._last = self.pending.mark(), self.events.last
        self._statements = self.session.statements

    @property
    def has_noted(self) -> bool:
        """Whether the last script has noted anything that is not written yet."""
        return self.pending.mark() != self._mark

    def undo_script(self) -> bool:
        """Undoes what the last script has done, which may be done only while all of it is noted
        and nothing written. False when it is not."""
        if self.session.statements != self._statements:
            return False
        self.pending.undo(self._mark)
        self.events.last = self._last
        self.entries.forget()
        return True
