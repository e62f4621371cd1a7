"""Tokens, which say who asks: made once, told once, and kept by nobody but their user."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """A token nobody guesses: 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> bytes:
    """By which a token is known again. As a token is 256 random bits, nobody comes from this to the token, however fast he reckons."""
    return hashlib.sha256(token.encode()).digest()
