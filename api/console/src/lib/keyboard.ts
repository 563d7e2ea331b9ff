/** Whether a key means text, or something to the browser, and no shortcut. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target.closest("input,textarea,select,[role=dialog]") !== null
  );
}
