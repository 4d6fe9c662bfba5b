"""What a finding of each rule is about, in a sentence for people. docs/rules.md has what each establishes, in full."""

from __future__ import annotations

ABOUT: dict[str, str] = {
    "pin-mismatch": "the pin came back with another contract than the frozen one",
    "version-skew": "a message is in another protocol version than the frozen interface",
    "auth-demand": "the peer asked for a credential outside of the frozen contract",
    "interface-drift": "an exchange left the interface of the frozen contract",
    "extension-dropped": "a later send does not ask for an extension that the task began with",
    "auth-not-exercised": "the contract demands a credential, the request carried none, and the peer took it",
    "weaker-authorization": "the task ran under less than a newer card asks; not established: when it changed",
    "illegal-transition": "a state came after the task's first terminal one",
    "unknown-state": "a state came that no version of A2A spells so",
    "identity-swap": "a message speaks of another task or context than it belongs to",
    "history-divergence": "the history that the peer tells differs from what was recorded",
    "artifact-rewritten": "an artifact is another one than when it was complete",
    "late-after-final": "a stream went on behind the event that ended it",
    "duplicate-id": "one id stands for two contents",
    "duplicate-keys": "a body holds one member twice, with two values",
    "pin-dropped": "a Task lacks the pin that the peer had acknowledged",
    "validator-lied": "one entity tag stands for two cards",
    "signature-broken": "a signature of the card does not verify under a trusted key",
    "halves-disagree": "the 1.0 and the 0.3 half of the card state different terms",
    "refetch-as-input": "a card was fetched while the task ran, and a send or cancel followed",
    "self-inflicted-cancel": "the task was cancelled after a card fetch that brought other capabilities alone",
    "rejected-after-probe": "a card was fetched between the send and the peer's `rejected`",
    "task-error-mismatch": "an error or a failure speaks of what the frozen card has otherwise",
}
"""By the name of the rule."""

UNKNOWN = "a rule that this version does not know"
"""In the place of a sentence, where a newer version recorded the finding."""
