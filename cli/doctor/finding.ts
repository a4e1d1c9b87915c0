import { z } from 'zod';
import { plural } from '../../api/plural.ts';

/** The result of a check. */
const Finding = z.discriminatedUnion('level', [
  z.strictObject({ level: z.literal('ok'), check: z.string(), what: z.string() }),
  z.strictObject({
    /** A failure prevents Shale from working; a warning may. */
    level: z.enum(['warning', 'failure']),
    check: z.string(),
    what: z.string(),
    /** How to fix it. */
    fix: z.string(),
  }),
]);
export type Finding = z.infer<typeof Finding>;

/** As `-o json` prints them, and a probe in its termination message. */
export const DoctorOutput = z.array(Finding);

/** @returns functions that create the findings of a check. */
export function findings(check: string) {
  return {
    ok: (what: string): Finding => ({ level: 'ok', check, what }),
    warning: (what: string, fix: string): Finding => ({ level: 'warning', check, what, fix }),
    failure: (what: string, fix: string): Finding => ({ level: 'failure', check, what, fix }),
  };
}

/** @returns those of the findings that there are. */
export function found(...results: readonly (Finding | false)[]): Finding[] {
  return results.filter((result) => result !== false);
}

/** Nodes named in a finding; the others are counted. */
const NAMED_NODES = 5;

/** @returns the names of nodes in a finding: `a, b, c, d, e and 2 more nodes`. */
export function namedNodes(names: readonly string[], most = NAMED_NODES): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${plural(more, 'more node')}` : ''}`;
}

/** @returns findings as text: each problem with its fix below. */
export function formatFindings(results: readonly Finding[]): string {
  const width = 'failure'.length;
  return results
    .flatMap((finding) => [
      `${finding.level.padEnd(width)}  ${finding.check}: ${finding.what}`,
      ...(finding.level === 'ok' ? [] : [`${' '.repeat(width)}  -> ${finding.fix}`]),
    ])
    .join('\n');
}

/** Bytes of a termination message that a kubelet keeps (Kubernetes, "Determine the Reason for Pod Failure"). */
const MAX_BYTES = 4096;
/** Characters; the response of a registry may be long. */
const LONGEST_WHAT = 400;

/** @returns findings as the termination message of a pod; those that don't fit are counted. */
export function formatReport(results: readonly Finding[]): string {
  const short = results.map((finding) => ({ ...finding, what: finding.what.slice(0, LONGEST_WHAT) }));
  // Problems come first, so that they are not among those that are cut.
  const inOrder = short.toSorted((a, b) => Number(a.level === 'ok') - Number(b.level === 'ok'));
  for (let count = inOrder.length; count > 0; count -= 1) {
    const text = JSON.stringify([...inOrder.slice(0, count), ...lost(inOrder, count)]);
    if (Buffer.byteLength(text) <= MAX_BYTES) return text;
  }
  return '[]';
}

function lost(results: readonly Finding[], count: number): Finding[] {
  const more = results.length - count;
  if (more === 0) return [];
  return [
    { level: 'warning', check: 'registries', what: plural(more, 'more finding'), fix: 'fix these first' },
  ];
}

/** @returns undefined when formatReport didn't write the text. */
export function parseReport(text: string): readonly Finding[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = DoctorOutput.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}
