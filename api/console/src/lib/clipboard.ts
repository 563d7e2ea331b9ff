/** Puts text on the clipboard; false if the browser lets no page do that. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP from another machine there is no such clipboard; the older way is open still.
    return copiedByEvent(text);
  }
}

function copiedByEvent(text: string): boolean {
  let isSet = false;
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    // Other listeners, such as a dialog that keeps the focus, must not replace the text.
    event.stopImmediatePropagation();
    isSet = true;
  };
  document.addEventListener("copy", put, { capture: true, once: true });
  document.execCommand("copy");
  document.removeEventListener("copy", put, { capture: true });
  return isSet;
}
