// The state of a group in a word, and what that word means.

import { StateLabel } from "../../ui/StateLabel";

const STATES = {
  STABLE: {
    text: "Stable",
    status: "success",
    meaning:
      "Every partition is assigned to a member, and every member has its assignment. The group " +
      "rebalances when a member joins, leaves or stops responding.",
  },
  MOVING: {
    text: "Rebalancing",
    status: "info",
    meaning:
      "Partitions are moving between members. The previous member finishes and commits before the " +
      "next one starts; its later commits are rejected. If a member does not release its " +
      "partitions, the group waits for its timeout: 10 s by default.",
  },
  EMPTY: {
    text: "Empty",
    status: "warning",
    meaning:
      "The group has no active consumers. Committed offsets are kept: the next member resumes where " +
      "the last one stopped. Records that retention deletes in the meantime are not delivered.",
  },
} as const;

export function GroupState({ state, name }: { state: string; name: string }) {
  const known = STATES[state as keyof typeof STATES];
  const text = known?.text ?? state;
  return (
    <StateLabel
      name={name}
      text={text}
      status={known?.status}
      title={`${name}: ${text.toLowerCase()}`}
    >
      {known?.meaning ?? "This console does not know the state. The server may be newer."}
    </StateLabel>
  );
}
