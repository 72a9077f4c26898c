"""Traces: their keys, their files, and how they are made, kept and run again."""
