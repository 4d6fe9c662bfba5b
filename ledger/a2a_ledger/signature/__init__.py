"""Card signatures: JWS over canonical forms of a card, judged apart from its contract. Pure."""
