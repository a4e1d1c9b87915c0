import { z } from 'zod';
import { by } from '../../api/order.ts';
import { noun, plural } from '../../api/plural.ts';
import { namedNodes } from '../doctor/finding.ts';

const ProcessVersion = z.strictObject({
  state: z.enum(['absent', 'running']),
  /** Absent for a process that is not running or doesn't report one. */
  version: z.string().optional(),
});
export type ProcessVersion = z.infer<typeof ProcessVersion>;

/** Versions of everything that takes part. */
const Versions = z.strictObject({
  /** Of this command. */
  client: z.string(),
  operator: ProcessVersion,
  builder: ProcessVersion,
  /** The nodes whose daemons report a version, by that version; without one: they don't report it. */
  daemons: z
    .array(z.strictObject({ version: z.string().optional(), nodes: z.array(z.string()).readonly() }))
    .readonly(),
});
export type Versions = z.infer<typeof Versions>;

/** As `-o json` prints them; with `--client` the client alone. */
export const VersionOutput = Versions.partial()
  .required({ client: true })
  .extend({ warnings: z.array(z.string()).optional() });

/** @returns the nodes by the version that their daemons report, in the order of the versions. */
export function daemonVersions(
  nodes: readonly { readonly name: string; readonly version: string | undefined }[],
): Versions['daemons'] {
  const groups = Map.groupBy(nodes.toSorted(by(({ name }) => name)), ({ version }) => version);
  return [...groups]
    .map(([version, members]) => ({ version, nodes: members.map(({ name }) => name) }))
    .toSorted(by(({ version = '' }) => version));
}

/**
 * @returns a line for each difference between the versions, with what to do about it. Operator, builder and daemons are
 *   installed at one version; daemons of the minor version before, and commands of a minor version next to the
 *   operator's, are supported (docs/support.md).
 */
export function skewWarnings({ client, operator, builder, daemons }: Versions): readonly string[] {
  if (operator.version === undefined) return [];
  const { version } = operator;
  const isTooFar = minorsApart(client, version) > 1;
  const others = daemons.filter((group) => group.version !== version);
  return [
    ...(isTooFar
      ? [
          `this command has version ${client} and the operator ${version}, which is not supported: use a command of the operator's version`,
        ]
      : []),
    ...(builder.version !== undefined && builder.version !== version
      ? [
          `the Machine OS Builder has version ${builder.version} and the operator ${version}: the operator replaces the builder`,
        ]
      : []),
    ...others.map((group) => daemonWarning(group, version)),
  ];
}

function daemonWarning({ version, nodes }: Versions['daemons'][number], operator: string): string {
  const which = namedNodes(nodes);
  const daemons = noun(nodes.length, 'the daemon', 'the daemons');
  const progress = 'kubectl -n shale-system rollout status daemonset/shale-daemon shows the progress';
  if (version === undefined)
    return `${daemons} of ${which} ${noun(nodes.length, 'reports', 'report')} no version: ${progress}`;
  const support = minorsApart(version, operator) > 1 ? ', which is not supported' : '';
  return `${daemons} of ${which} ${noun(nodes.length, 'has', 'have')} version ${version} and the operator ${operator}${support}: ${progress}`;
}

/**
 * @returns how many minor versions lie between two versions; 0 for what is no version, infinity for another major one.
 */
function minorsApart(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => /^v?(\d+)\.(\d+)\./.exec(text));
  if (a === null || a === undefined || b === null || b === undefined) return 0;
  return a[1] === b[1] ? Math.abs(Number(a[2]) - Number(b[2])) : Number.POSITIVE_INFINITY;
}

/** @returns a line for each part, with its version. */
export function formatVersions({ client, operator, builder, daemons }: Versions): string {
  const rows = [
    ['client', client],
    ['operator', inWords(operator)],
    ['builder', inWords(builder)],
    ...(daemons.length === 0 ? [['daemons', 'none']] : []),
    ...daemons.map(({ version, nodes }) => [
      'daemons',
      `${version ?? 'unknown'} (${plural(nodes.length, 'node')})`,
    ]),
  ];
  return rows.map(([part = '', version = '']) => `${part.padEnd('operator'.length)}  ${version}`).join('\n');
}

function inWords(process: ProcessVersion): string {
  return process.state === 'absent' ? 'not running' : (process.version ?? 'unknown');
}
