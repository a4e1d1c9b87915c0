import { randomUUID } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type KubernetesObject, toSeconds } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { type TryTerms, withSettledTry } from '../../machineconfig/tried-config.ts';
import { readLiveCluster } from '../change/live-cluster.ts';
import { readObjects } from '../change/object-files.ts';
import {
  type AgreementFlags,
  agreementBy,
  onTerminal,
  withAgreementFlags,
} from '../command-line/agreement.ts';
import {
  type ClusterFlags,
  onCluster,
  whoAmI,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { formatDuration, parseDuration } from '../command-line/quantities.ts';
import { decideStart, type TryStart } from './decide-try.ts';
import { cancelCommand, confirmCommand } from './end-commands.ts';
import { planOfStart } from './try-plan.ts';

interface StartFlags extends ClusterFlags, AgreementFlags {
  readonly leaseNamespace: string;
  readonly filename: readonly string[];
  /** ms */
  readonly for: number;
}

/** ms. Less is no time to look; a change that nobody has confirmed after days is one that somebody relies on. */
const SHORTEST = 60_000;
const LONGEST = 7 * 86_400_000;

const EXAMPLES = `
Examples:
  shale try -f sysctl.yaml --for 10m   apply it, and undo it in 10 minutes
  shale try confirm                    keep it
  shale try cancel                     undo it now`;

/** `shale try`: applies MachineConfigs that the operator undoes unless somebody confirms them. */
export function tryCommand(): Command {
  const command = new Command('try')
    .option(
      '-f, --filename <file...>',
      'files or directories with MachineConfigs, or - for standard input',
      [],
    )
    .addOption(
      new Option('--for <duration>', 'time after which the change is undone')
        .argParser(tryTime)
        .default(600_000, '10m'),
    );
  return withAgreementFlags(withLeaseNamespace(withClusterFlags(command)))
    .addHelpText('after', EXAMPLES)
    .action((flags: StartFlags) => onCluster(flags, (client, signal) => start(client, flags, signal)))
    .addCommand(confirmCommand())
    .addCommand(cancelCommand());
}

/** @throws InvalidArgumentError that says what would be right. */
function tryTime(text: string): number {
  const time = parseDuration(text);
  if (time >= SHORTEST && time <= LONGEST) return time;
  throw new InvalidArgumentError('Expected a duration of one minute to seven days');
}

async function start(client: ApiClient, flags: StartFlags, signal: AbortSignal): Promise<void> {
  const wanted = await machineConfigsIn(flags.filename);
  const agree = agreementBy(flags, onTerminal(signal));
  const terms: TryTerms = {
    id: randomUUID(),
    by: await whoAmI(client, signal),
    at: toSeconds(new Date()),
    until: '',
  };
  const write = async (): Promise<readonly TryStart[]> => {
    // The time begins when the user has read the plan.
    const until = toSeconds(new Date(Date.now() + flags.for));
    const starts = await decideAll(client, wanted, { ...terms, until }, signal);
    const writes = starts.filter(({ kind }) => kind === 'write');
    if (writes.length === 0) return starts;
    const live = await readLiveCluster(client, flags.leaseNamespace, flags.namespace);
    const agreement = await agree(planOfStart(live, wanted));
    if (agreement === 'lookAgain') return write();
    if (agreement === 'apply') for (const each of starts) await writeOne(client, each, signal);
    return starts;
  };
  const end = flags.dryRun === true ? ' (dry run)' : '';
  for (const each of await retryOnConflict(write)) print(`${formatStart(each, flags.for)}${end}`);
}

/** @throws {CommandError} if one of them can't be tried: then none is. */
async function decideAll(
  client: ApiClient,
  wanted: readonly MachineConfig[],
  terms: TryTerms,
  signal: AbortSignal,
): Promise<readonly TryStart[]> {
  const starts = await Promise.all(
    wanted.map(async (config) =>
      decideStart(await client.find(MachineConfigs, config.metadata.name, { signal }), config, terms),
    ),
  );
  const refused = starts.flatMap((each) => (each.kind === 'refused' ? [each.why] : []));
  if (refused.length > 0) throw new CommandError(refused.join('\n  '));
  return starts;
}

async function writeOne(client: ApiClient, each: TryStart, signal: AbortSignal): Promise<void> {
  if (each.kind !== 'write') return;
  const written = each.replaces
    ? await client.replace(MachineConfigs, each.config, { signal })
    : await client.create(MachineConfigs, each.config, { signal });
  const settled = withSettledTry(written);
  if (settled !== undefined) await client.replace(MachineConfigs, settled, { signal });
}

function formatStart(each: TryStart, time: number): string {
  switch (each.kind) {
    case 'write': {
      const { name } = each.config.metadata;
      return `MachineConfig ${name}: applied; it is undone in ${formatDuration(time)} unless you run: shale try confirm ${name}`;
    }
    case 'unchanged':
      return each.until === undefined
        ? `MachineConfig ${each.name}: unchanged`
        : `MachineConfig ${each.name}: unchanged; it is being tried until ${each.until}`;
    case 'refused':
      return each.why;
  }
}

async function machineConfigsIn(files: readonly string[]): Promise<readonly MachineConfig[]> {
  if (files.length === 0) throw new CommandError('try: specify the change with -f', exitCodes.usage);
  const objects = await readObjects(files);
  const other = objects.find((object) => !isMachineConfig(object));
  if (other !== undefined)
    throw new CommandError(
      `${other.kind} ${other.metadata.name}: only MachineConfigs can be tried`,
      exitCodes.usage,
    );
  return objects.filter(isMachineConfig);
}

function isMachineConfig(object: KubernetesObject): object is MachineConfig {
  return (
    object.kind === MachineConfigs.kind && (object.apiVersion ?? '').startsWith(`${MachineConfigs.group}/`)
  );
}
