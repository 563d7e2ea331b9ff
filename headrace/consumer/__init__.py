"""Consuming: group sessions, subscriptions, fetchers, and the consumers that use them."""
