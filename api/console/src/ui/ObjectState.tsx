// The state of an object in a word, and its explanation: what was asked, done and answered, and what is next.

import { type LabelProps, ProgressStep, ProgressStepper, Spinner } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { ApiError, type Condition, call, type Explanation } from "../lib/client";
import { moment } from "../lib/format";
import { Problem } from "./Problem";
import { StateLabel } from "./StateLabel";

type Shown = { id: string; deleted_at?: string | null; status: { conditions: Condition[] } };

function word(shown: Shown): { text: string; status: "success" | "warning" | "danger" | "info" } {
  const found = (type: string) => shown.status.conditions.find((each) => each.type === type);
  if (shown.deleted_at) return { text: "Deleting", status: "warning" };
  if (found("Stalled")?.status === "True") return { text: "Stalled", status: "danger" };
  if (found("Reachable")?.status === "False") return { text: "Unreachable", status: "danger" };
  const ready = found("Ready");
  if (ready?.reason === "Paused" || ready?.reason === "Unmanaged")
    return { text: ready.reason, status: "warning" };
  if (ready === undefined || ready.status === "True") return { text: "Ready", status: "success" };
  return { text: ready.status === "False" ? "Not ready" : "Pending", status: "info" };
}

/** The state that the conditions of an object come to. */
export function ObjectState({ shown, name }: { shown: Shown; name: string }) {
  return <State id={shown.id} name={name} {...word(shown)} />;
}

type StateProps = {
  id: string;
  orElse?: string;
  name: string;
  text: string;
  status: LabelProps["status"];
};

/** A state that is known already, explained: of `id`, or of `orElse` if that is gone. */
export function State({ id, orElse, name, text, status }: StateProps) {
  const title = `${name}: ${text.toLowerCase()}`;
  return (
    <StateLabel name={name} text={text} status={status} title={title} size="medium">
      <Explained id={id} orElse={orElse} />
    </StateLabel>
  );
}

function explained(id: string): Promise<Explanation> {
  return call<Explanation>("GET", `/v1/explain?object=${encodeURIComponent(id)}`);
}

function Explained({ id, orElse }: { id: string; orElse?: string }) {
  const found = useQuery({
    queryKey: ["explain", id, orElse],
    queryFn: () =>
      explained(id).catch((error: unknown) => {
        if (orElse && error instanceof ApiError && error.status === 404) return explained(orElse);
        throw error;
      }),
  });
  if (found.isPending) return <Spinner aria-label="Loading" />;
  if (found.isError) return <Problem error={found.error} />;
  const steps = found.data.steps;
  return (
    <>
      <p>
        <strong>{found.data.summary}</strong>
      </p>
      <br />
      <ProgressStepper isVertical aria-label="History">
        {steps.map((step, index) => (
          <ProgressStep
            key={`${step.at}${step.what}`}
            id={`step-${index}`}
            titleId={`step-title-${index}`}
            variant={index === steps.length - 1 ? "info" : "default"}
            aria-label={step.what}
            description={`${moment(step.at)} UTC · ${step.why}${step.next && ` → ${step.next}`}`}
          >
            {step.what}
          </ProgressStep>
        ))}
      </ProgressStepper>
    </>
  );
}
