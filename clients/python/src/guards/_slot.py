"""Slots: the few places of an activity whose limit is a log."""

from __future__ import annotations

import math
import random
import threading
from typing import TYPE_CHECKING

from guards._breaker import PAUSE
from guards._decision import Decision
from guards._errors import ValidationError
from guards._moment import Moment
from guards._options import Settings
from guards._request import Request, with_receipt

if TYPE_CHECKING:
    import asyncio

# How long before its end a slot is lost, in seconds. Until then another caller can't get it, even if the clocks of the
# guard's instances differ.
EARLY = 2.0


class Slot:
    """A place that a check took: see Guards.slot.

    A slot without a receipt holds nothing: it is not renewed, not released and
    never lost. So it is in an outage, and if the decision is unlimited,
    bypassed, shadow or a duplicate. If a renewal is answered without a receipt,
    the slot keeps the last one, and its end.
    """

    decision: Decision
    """The decision of the check."""

    def __init__(self, decision: Decision, sent: Moment, settings: Settings) -> None:
        self.decision = decision
        self._settings = settings
        self._receipt = decision  # of the check or of the last renewal
        self._held = decision.allowed and decision.has_receipt  # whether there is something to release
        self._is_lost = False
        self._since = sent  # when the receipt was asked for; the next two are seconds after it
        self._lost_after = math.inf
        self._due_after = 0.0  # when the next renewal is sent
        self._sent: Moment | None = None  # when the first renewal with this receipt was sent
        self._repeat_after = 0.0
        self._ended = threading.Event()
        self._renewals: asyncio.Task[None] | None = None  # with asyncio
        vars(decision)["_slot"] = self._held
        if self._held and decision.held_until is not None:
            self._hold(sent, decision)

    @property
    def allowed(self) -> bool:
        """Whether the user may go on."""
        return self.decision.allowed

    @property
    def lost(self) -> bool:
        """Whether the work must stop, because somebody else may get the slot.

        It has expired, or no renewal got through until 2 s before its end.
        """
        if self._since.age >= self._lost_after:
            self._is_lost = True
        return self._is_lost

    def _hold(self, sent: Moment, decision: Decision) -> None:
        """Keep the slot for as long as an answer says.

        The time counts from when the request was sent, because the answer may
        have come late. The guard's clock need not agree with this machine's.
        """
        lasts = ((decision.held_until or 0) - (decision.at or 0)) / 1000
        self._receipt, self._since = decision, sent
        self._lost_after, self._due_after = lasts - EARLY, lasts / 3
        self._sent, self._repeat_after = None, 0.0

    def _left(self) -> float | None:
        """Return the seconds until the next renewal; None: there is none. Look each second, because a freeze uses them up."""
        return None if not self._held or self.lost else max(0.0, self._due_after - self._since.age)

    def _renewal(self) -> Request:
        if self._sent is None:
            self._sent = Moment()  # a repeat gets the answer to the first one
        return with_receipt(self._settings, "renew", self._receipt)

    def _repeat(self) -> None:
        """Plan to repeat a renewal that failed: at once, and then once a second."""
        self._due_after, self._repeat_after = self._since.age + self._repeat_after + random.random() / 10, PAUSE

    def _renewed(self, decision: Decision) -> None:
        if self._ended.is_set() or self.lost:
            return
        if not decision.allowed:
            self._held, self._is_lost = False, True
        elif decision.has_receipt and decision.held_until is not None:
            if self._held and self._sent is not None:
                self._hold(self._sent, decision)
        else:  # nothing is limited now, for example because a live mode is off; that can end, and then the slot counts again
            age = self._since.age
            self._due_after, self._sent, self._repeat_after = age + max(PAUSE, (self._lost_after - age) / 3), None, 0.0

    def _release(self) -> Request | None:
        """End the holding, and return the request that frees the slot; None: there is nothing to free."""
        self._ended.set()
        held, self._held = self._held, False
        if not self.lost:
            self._lost_after = math.inf
        return with_receipt(self._settings, "release", self._receipt) if held else None

    def _must_be_of_a_log(self) -> None:
        if self._held and self.decision.held_until is None:
            message = f"the limit of {self.decision.activity} is not a log, so it has no slots"
            raise ValidationError(message, self._settings.prefix + self.decision.guard)


def before_the_second_release() -> float:
    """Return how long to wait after a release that failed, in seconds. Before, the breaker would refuse."""
    return PAUSE + random.random() / 20
