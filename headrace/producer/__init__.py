"""Producing: records are collected into batches, and batches are sent to nodes in order, once."""
