"""Preloaded first, it changes nothing: so that both sides have as many modules."""
