"""The version of Glowplug, readable without package metadata (which costs 30 ms to look up)."""

VERSION = "0.1.0"
