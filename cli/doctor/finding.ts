import { z } from 'zod';
import { plural } from '../../api/plural.ts';
import { DoctorOutput } from '../command-line/output-schemas.ts';

/** What a check found. */
export type Finding =
  | { readonly level: 'ok'; readonly check: string; readonly what: string }
  | {
      /** A failure keeps Shale from working; a warning may. */
      readonly level: 'warning' | 'failure';
      readonly check: string;
      readonly what: string;
      /** How to mend it. */
      readonly mend: string;
    };

/** @returns what a check of this name found. */
export function findings(check: string) {
  return {
    ok: (what: string): Finding => ({ level: 'ok', check, what }),
    warning: (what: string, mend: string): Finding => ({ level: 'warning', check, what, mend }),
    failure: (what: string, mend: string): Finding => ({ level: 'failure', check, what, mend }),
  };
}

/** @returns findings for people: what is wrong with how to mend it below. */
export function formatFindings(found: readonly Finding[]): string {
  const width = 'failure'.length;
  return found
    .flatMap((finding) => [
      `${finding.level.padEnd(width)}  ${finding.check}: ${finding.what}`,
      ...(finding.level === 'ok' ? [] : [`${' '.repeat(width)}  -> ${finding.mend}`]),
    ])
    .join('\n');
}

/** Bytes of a termination message that a kubelet keeps (Kubernetes, "Determine the Reason for Pod Failure"). */
const MAX_BYTES = 4096;
/** Characters; a registry's answer may be long. */
const LONGEST_WHAT = 400;

const Report = z.array(DoctorOutput.element);

/** @returns findings as a pod's termination message; those that don't fit are counted. */
export function formatReport(found: readonly Finding[]): string {
  const short = found.map((finding) => ({ ...finding, what: finding.what.slice(0, LONGEST_WHAT) }));
  // What is wrong comes first: it is what must not be lost.
  const inOrder = short.toSorted((a, b) => Number(a.level === 'ok') - Number(b.level === 'ok'));
  for (let count = inOrder.length; count > 0; count -= 1) {
    const text = JSON.stringify([...inOrder.slice(0, count), ...lost(inOrder, count)]);
    if (Buffer.byteLength(text) <= MAX_BYTES) return text;
  }
  return '[]';
}

function lost(found: readonly Finding[], count: number): Finding[] {
  const more = found.length - count;
  if (more === 0) return [];
  return [
    { level: 'warning', check: 'registries', what: plural(more, 'more finding'), mend: 'fix these first' },
  ];
}

/** @returns undefined for what formatReport didn't write. */
export function parseReport(text: string): readonly Finding[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = Report.safeParse(value);
  return parsed.success ? (parsed.data as Finding[]) : undefined;
}
