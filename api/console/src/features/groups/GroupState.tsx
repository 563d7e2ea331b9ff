// The state of a group in a word, and what that word means.

import { StateLabel } from "../../ui/StateLabel";

const STATES = {
  STABLE: {
    text: "Stable",
    status: "success",
    meaning:
      "Every partition has a member that reads it, and every member knows what is its own. " +
      "It moves again when a member comes, goes, or falls silent.",
  },
  MOVING: {
    text: "Moving",
    status: "info",
    meaning:
      "Partitions change hands: the one before finishes and commits, its commits are refused from " +
      "then on, and only then the next one begins. A member that does not let go is waited for as " +
      "long as its timeout, 10 s unless it said else.",
  },
  EMPTY: {
    text: "No members",
    status: "warning",
    meaning:
      "Nobody reads. What the group has committed stays: the next member goes on where the last " +
      "one stopped. Records that retention removes meanwhile are not read any more.",
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
      {known?.meaning ?? "A later release knows more of this state."}
    </StateLabel>
  );
}
