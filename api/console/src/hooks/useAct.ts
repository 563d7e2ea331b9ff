// An act: a mutation that is not begun again while it runs. Two clicks are one act, also where the
// second comes before the button could say that it is busy.

import { type UseMutationOptions, useMutation } from "@tanstack/react-query";
import { useRef } from "react";

/** What the button of an act needs of it. */
export type Act = { mutate: () => void; isPending: boolean; error: Error | null };

export function useAct<Data, Given = void>(options: UseMutationOptions<Data, Error, Given>) {
  const act = useMutation(options);
  const isRunning = useRef(false);
  const mutate = (given: Given) => {
    if (isRunning.current) return;
    isRunning.current = true;
    act.mutate(given, {
      onSettled: () => {
        isRunning.current = false;
      },
    });
  };
  return { ...act, mutate };
}
