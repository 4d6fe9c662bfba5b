"""How each rule set reads what happened, where the sets differ: a reading never changes within a released set.

A log is judged again by the set that its findings name, so every reading that was ever released stays here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

LONGEST = 128
"""Characters of a name that stand in a subject or in what was observed."""
_LONGEST_TEXT = 1024
_LONGEST_ITEM = 256
_MOST_ITEMS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What one rule set does; docs/rules.md says of each why it is so."""

    once_a_message: bool
    """What one message says twice is found once."""
    by_sends: bool
    """`weaker-authorization` holds a task to what its sends carried, not to what its capture states."""
    by_peer_task: bool
    """The first terminal state and the acknowledged pin count for the task of the peer that has them: a resend may
    open a second one."""
    by_payload: bool
    """What is said again is told by what it says, not by its octets with their envelope; a new question is asked
    anew, whatever the answer."""
    told_late: bool
    """A stream that is taken up again, and a push, may tell of a time before what is known."""
    by_source: bool
    """Order is known within one source alone: live recording, or one import of one file."""
    by_stated_demand: bool
    """`auth-demand` is certain only by what can mean nothing else: what is refused as malformed may be shown again, and
    a challenge of a name that nobody registered may ask for the key that the card names."""
    doubts_files: bool
    """A file that shows no credential may have been cleaned of them: what rests on that is suspected."""
    whole_names: bool
    """A name that is cut in a subject brings a digest along, so that two long ones stay two."""

    well_formed: bool
    """Names in a pointer are escaped (RFC 6901), and what was observed is bounded, so that it fits into a record."""

    in_pushes: bool
    """`identity-swap` looks at pushes too; the envelope of a push is no `version-skew`."""
    by_major: bool
    """Requests in two versions of one major number, from 1 on, are in one version, as answers are."""
    by_first_scheme: bool
    """A parameter of a challenge in front of any scheme is none."""
    whole_pins: bool
    """A pin that names no hash and no form is none."""
    own_pins: bool
    """An echo is held against the pin that the capture states, and only if it names no other log or task: a pin that
    came with the request is its client's, whose contract may be another than a proxy froze."""
    heeds_cuts: bool
    """A text that something was cut out of is no other text for that."""
    by_run: bool
    """Each import of a file has windows of its own between the cards in it."""

    def observed(self, observed: dict[str, Json]) -> JsonObject:
        """Return what was observed as a finding states it, without the members that are None."""
        stated: JsonObject = {}
        for name, value in observed.items():
            if value is not None:
                stated[name] = _bounded(value) if self.well_formed else value
        return stated

    def in_subject(self, name: str, longest: int = LONGEST) -> str:
        """Return a name as it stands in a subject: whole, or its beginning and a digest of the whole."""
        if len(name) <= longest:
            return name
        if not self.whole_names:
            return name[:longest]
        return f"{name[:longest]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _bounded(value: Json) -> Json:
    """Cut a text, or the texts of a list and the list itself."""
    if isinstance(value, list):
        return [item[:_LONGEST_ITEM] if isinstance(item, str) else item for item in value[:_MOST_ITEMS]]
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value


READINGS: dict[str, Readings] = {
    "1": Readings(
        once_a_message=False,
        by_sends=False,
        by_peer_task=False,
        by_payload=False,
        told_late=False,
        by_source=False,
        by_stated_demand=False,
        doubts_files=False,
        whole_names=False,
        well_formed=False,
        in_pushes=False,
        by_major=False,
        by_first_scheme=False,
        whole_pins=False,
        own_pins=False,
        heeds_cuts=False,
        by_run=False,
    ),
    "2": Readings(
        once_a_message=True,
        by_sends=True,
        by_peer_task=True,
        by_payload=True,
        told_late=True,
        by_source=True,
        by_stated_demand=True,
        doubts_files=True,
        whole_names=True,
        well_formed=True,
        in_pushes=True,
        by_major=True,
        by_first_scheme=True,
        whole_pins=True,
        own_pins=True,
        heeds_cuts=True,
        by_run=True,
    ),
}
"""The readings of every rule set, by its name as in `finding.RULE_SETS`."""
