import { Link } from "@tanstack/react-router";

/** The name of a topic, which leads to its page. */
export function TopicLink({ id, name }: { id: string; name: string }) {
  return (
    <Link to="/topics/$topicId" params={{ topicId: id }}>
      {name}
    </Link>
  );
}
