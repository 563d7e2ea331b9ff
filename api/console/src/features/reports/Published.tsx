// What a run published: its files by digest, and the figures of its manifest.

import { Alert, Button, Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { grouped } from "../../lib/decimal";
import { size } from "../../lib/format";
import { fileAddress, type ReportRun } from "../../lib/reports";
import { type Column, DataTable } from "../../ui/DataTable";
import { Section } from "../../ui/Section";
import { type PublishedFile, type Result, resultOf } from "./run";

/** States of partitions in which log and meter agree, or will once more is read. */
const GOOD = new Set(["EXACT", "OPEN", "UNVERIFIED"]);

export function Published({ run }: { run: ReportRun }) {
  const result = resultOf(run);
  if (!result) return null;
  return (
    <>
      {result.supersededBy && (
        <Alert
          variant="warning"
          isInline
          component="h2"
          title="Superseded: a later run was published before this one"
        >
          <Link to="/reports/$runId" params={{ runId: result.supersededBy }}>
            {result.supersededBy}
          </Link>{" "}
          has newer data and is shown instead. The files of this run are below.
        </Alert>
      )}
      <Files runId={run.id} files={result.files} />
      <div className="hr-grid">
        <Evidence result={result} />
        <Totals result={result} />
      </div>
    </>
  );
}

const FILE_COLUMNS: Column<PublishedFile>[] = [
  { title: "Name", width: 45, wrap: "anywhere", cell: (file) => file.name },
  { title: "Size", isNumber: true, cell: (file) => size(BigInt(file.bytes)) },
  {
    title: "SHA-256",
    cell: (file) => (
      <span className="hr-mono" title={file.sha256}>
        {file.sha256.slice(0, 16)}…
      </span>
    ),
  },
];

function Files({ runId, files }: { runId: string; files: PublishedFile[] }) {
  // Pages first: they are what people open.
  const order = files.toSorted((a, b) => Number(isPage(b)) - Number(isPage(a)));
  return (
    <Section title="Files">
      <DataTable
        label="Files"
        columns={FILE_COLUMNS}
        rows={order}
        keyOf={(file) => file.name}
        actions={(file) => <Address file={file} href={fileAddress(runId, file.name)} />}
        isCompact
      />
      <p className="hr-note">
        HTML pages open in a sandbox: scripts and network requests are blocked.
      </p>
    </Section>
  );
}

/** A page is opened, anything else is downloaded. */
function Address({ file, href }: { file: PublishedFile; href: string }) {
  const word = isPage(file) ? "Open" : "Download";
  return (
    <Button
      component="a"
      variant={isPage(file) ? "primary" : "link"}
      size="sm"
      href={href}
      {...(isPage(file)
        ? { target: "_blank", rel: "noopener noreferrer" }
        : { download: file.name })}
      aria-label={`${word} ${file.name}`}
    >
      {word}
    </Button>
  );
}

function isPage(file: PublishedFile): boolean {
  return file.name.endsWith(".html");
}

function Evidence({ result }: { result: Result }) {
  return (
    <Section title="Evidence">
      <p>
        {result.complete === null && <Label status="info">Completeness unknown</Label>}
        {result.complete === true && <Label status="success">Complete</Label>}
        {result.complete === false && <Label status="danger">Incomplete</Label>}{" "}
        {result.partitions.map(([state, number]) => (
          <Label key={state} status={GOOD.has(state) ? "success" : "danger"}>
            {grouped(String(number))} {state.toLowerCase()}
          </Label>
        ))}
      </p>
      <p className="hr-note">
        Computed from a snapshot of the inputs with this SHA-256. The same inputs always give the
        same files.
      </p>
      <p className="hr-mono hr-break">{result.input}</p>
    </Section>
  );
}

function Totals({ result }: { result: Result }) {
  return (
    <Section title="Totals">
      <Table aria-label="Totals" variant="compact" borders={false}>
        <Tbody>
          {result.totals.map(([name, value]) => (
            <Tr key={name}>
              <Th scope="row">{name.replaceAll("_", " ")}</Th>
              <Td className="hr-number hr-break">
                {/^-?[0-9]+(\.[0-9]+)?$/.test(value) ? grouped(value) : value}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Section>
  );
}
