import { sentenceTable, wrapped } from '../command-line/fitted-text.ts';
import { markdownItem, markdownRow } from '../command-line/markdown.ts';
import { packageRows } from '../command-line/package-rows.ts';
import {
  vulnerabilityRemarks,
  vulnerabilityRows,
  vulnerabilitySummary,
} from '../command-line/vulnerability-rows.ts';
import type { ImageDiff } from './image-diff.ts';

/** What changes apart from packages: what happens to it, its kind, its name, and what it was and will be. */
type Row = readonly [change: string, kind: string, name: string];

/**
 * @param columns of the terminal; undefined: not a terminal.
 * @returns the output of `shale image diff` as text.
 */
export function imageDiffText(diff: ImageDiff, columns: number | undefined): string {
  const blocks = [
    wrapped(diff.summary, '  ', columns),
    tableOf(['CHANGE', 'PACKAGE', 'VERSION'], packageRows(diff.packages ?? []), columns),
    tableOf(['CHANGE', 'WHAT', 'NAME'], otherRows(diff), columns),
    tableOf(
      ['CHANGE', 'SEVERITY', 'VULNERABILITY', 'PACKAGES'],
      vulnerabilityRows(diff.vulnerabilities),
      columns,
    ),
    [vulnerabilitySummary(diff.vulnerabilities), ...vulnerabilityRemarks(diff.vulnerabilities)].flatMap(
      (line) => wrapped(line, '  ', columns),
    ),
    diff.unknown.flatMap((why) => wrapped(`not compared: ${why}`, '  ', columns)),
  ].filter(({ length }) => length > 0);
  return blocks.map((lines) => lines.join('\n')).join('\n\n');
}

function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
): readonly string[] {
  return rows.length === 0 ? [] : sentenceTable(head, rows, columns);
}

function otherRows(diff: ImageDiff): readonly Row[] {
  const rows = (change: string, kind: string, names: readonly string[]) =>
    names.map((name): Row => [change, kind, name]);
  const both = (kind: string, { added, removed }: ImageDiff['kernels']) => [
    ...rows('removed', kind, removed),
    ...rows('added', kind, added),
  ];
  const { units, files = [] } = diff;
  return [
    ...both('kernel', diff.kernels),
    ...both('kernel argument', diff.kernelArguments),
    ...rows('removed', 'unit', units.removed),
    ...rows('disabled', 'unit', units.disabled),
    ...rows('masked', 'unit', units.masked),
    ...rows('unmasked', 'unit', units.unmasked),
    ...rows('enabled', 'unit', units.enabled),
    ...both('preset', diff.presets),
    ...accountRows('user', diff.users),
    ...accountRows('group', diff.groups),
    ...both('user or group allocated at boot', diff.allocated),
    ...files.map(({ change, kind, subject }): Row => [change, `config's ${kind}`, subject]),
  ];
}

function accountRows(kind: string, accounts: ImageDiff['users']): readonly Row[] {
  return accounts.map(({ name, from, to }) => {
    if (from === undefined) return ['added', kind, `${name} (${to})`];
    if (to === undefined) return ['removed', kind, `${name} (${from})`];
    return ['changed', kind, `${name} (${from} -> ${to}): its files keep the owner ${from}`];
  });
}

/** @returns the output of `shale image diff` as Markdown, for a comment on a pull request. */
export function imageDiffMarkdown(diff: ImageDiff): string {
  const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    rows.length === 0
      ? []
      : ['', markdownRow(head), `|${'-|'.repeat(head.length)}`, ...rows.map(markdownRow)];
  const folded = (name: string, head: readonly string[], rows: readonly (readonly string[])[]) =>
    rows.length === 0
      ? []
      : ['', `<details><summary>${name}</summary>`, ...table(head, rows), '', '</details>'];
  return [
    `### ${diff.from.image} -> ${diff.to.image}`,
    '',
    markdownItem(diff.summary),
    ...diff.unknown.map((why) => markdownItem(`**not compared:** ${why}`)),
    markdownItem(vulnerabilitySummary(diff.vulnerabilities)),
    ...vulnerabilityRemarks(diff.vulnerabilities).map(markdownItem),
    ...table(['change', 'what', 'name'], otherRows(diff)),
    ...folded('packages', ['change', 'package', 'version'], packageRows(diff.packages ?? [])),
    ...folded(
      'vulnerabilities',
      ['change', 'severity', 'vulnerability', 'packages'],
      vulnerabilityRows(diff.vulnerabilities),
    ),
  ].join('\n');
}
