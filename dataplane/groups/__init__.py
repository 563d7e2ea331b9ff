"""Consumer groups: assignment of partitions, membership, and handover of partitions; pure."""
