// The same act as a line of the CLI, a curl, or Python. What is quoted, is quoted for its language.

export type Recipe = { cli: string; curl: string; python: string };

export function shell(text: string): string {
  return /^[A-Za-z0-9_./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function curl(method: string, path: string, body?: unknown, etag?: string): string {
  const lines = [`curl -sS -X ${method} ${shell(location.origin + path)}`];
  lines.push(`-H "Authorization: Bearer $HEADRACE_KEY"`);
  if (etag) lines.push(`-H 'If-Match: "${etag}"'`);
  if (body !== undefined) {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    lines.push(`-H 'Content-Type: ${type}'`, `-d ${shell(JSON.stringify(body))}`);
  }
  return lines.join(" \\\n  ");
}

export function python(body: string): string {
  return `import headrace\nwith headrace.connect() as b:\n    ${body}`;
}
