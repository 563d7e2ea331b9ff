"""Reading: sessions of groups, subscriptions, fetchers, and the consumers on top."""
