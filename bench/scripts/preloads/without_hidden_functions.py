"""Preloaded first, it keeps a standby from finding the functions that TensorFlow's libraries keep to themselves."""

from glowplug.standby.server import warming

warming.addresses = lambda path, names: {}
