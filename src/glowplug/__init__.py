"""Glowplug measures, explains and removes the cold start of TensorFlow."""
