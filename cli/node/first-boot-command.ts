import { Command, InvalidArgumentError, Option } from 'commander';
import { isKeyPublished } from '../../api/image-signing.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { byCodeUnits } from '../../api/order.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { IgnitionConfig } from '../../machineconfig/ignition/config.ts';
import { IGNITION_VERSION, parseIgnition } from '../../machineconfig/ignition/parse.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { reportWarnings } from '../change/report-warnings.ts';
import { type ClusterFlags, onCluster, readAll, withClusterFlags } from '../command-line/cluster-access.ts';
import { CommandError, poolNamed } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import { type FirstBootParts, firstBootParts } from './first-boot.ts';
import { formatCloudInit, formatIgnition, onlyForIgnition, secretsIn } from './first-boot-formats.ts';
import { nodeImageOf } from './node-image.ts';

interface FirstBootFlags extends ClusterFlags {
  readonly authFile?: string;
  readonly startupTaint: boolean;
  readonly includeSecrets?: boolean;
}

/** What a machine of a pool does at its first boot. */
interface Prepared {
  readonly parts: FirstBootParts;
  /** The pool's config as Ignition has it. */
  readonly config: IgnitionConfig;
  readonly warnings: readonly string[];
}

/** `shale node ignition`: the Ignition config of machines that boot the stock image. */
export function ignitionCommand(): Command {
  return firstBootCommand('ignition')
    .description('Print the Ignition config of a machine that boots the stock image and joins a pool.')
    .option('--include-secrets', 'include password hashes and LUKS keys of the MachineConfigs')
    .addHelpText('after', '\nExample:\n  shale node ignition worker > worker.ign')
    .action((pool: string, flags: FirstBootFlags) =>
      onCluster(flags, async (client, signal) => {
        const { parts, config, warnings } = await prepare(client, pool, flags, signal);
        const secrets = secretsIn(config);
        if (secrets.length > 0 && flags.includeSecrets !== true) {
          throw new CommandError(
            `the MachineConfigs of pool ${pool} contain secrets: ${secrets.join(', ')}; pass --include-secrets to print them`,
          );
        }
        reportWarnings(warnings);
        print(formatIgnition(parts, config));
      }),
    );
}

/** `shale node cloud-init`: the user data of machines that boot the stock image. */
export function cloudInitCommand(): Command {
  return firstBootCommand('cloud-init')
    .description('Print the cloud-init user data of a machine that boots the stock image and joins a pool.')
    .addHelpText('after', '\nExample:\n  shale node cloud-init worker > user-data')
    .action((pool: string, flags: FirstBootFlags) =>
      onCluster(flags, async (client, signal) => {
        const { parts, config, warnings } = await prepare(client, pool, flags, signal);
        const missing = onlyForIgnition(config).map(
          (path) => `${path} of the MachineConfigs is not in the output: only Ignition applies it`,
        );
        reportWarnings([...warnings, ...missing]);
        print(formatCloudInit(parts));
      }),
    );
}

function firstBootCommand(name: string): Command {
  return withClusterFlags(new Command(name))
    .argument('<pool>')
    .addOption(
      new Option(
        '--auth-file <path>',
        'file on the machine with the registry credentials; default: the places where bootc and rpm-ostree look, such as /etc/ostree/auth.json',
      ).argParser(pathOnMachine),
    )
    .option('--no-startup-taint', "don't have the kubelet register with the startup taint");
}

/** It becomes part of a unit and of a shell script, where other characters have a meaning. */
function pathOnMachine(text: string): string {
  if (/^(\/[A-Za-z0-9_.-]+)+$/.test(text)) return text;
  throw new InvalidArgumentError('Expected an absolute path of letters, digits, _, . and -');
}

/** @throws {CommandError} when the pool doesn't exist, or nothing is known yet that new nodes could boot. */
async function prepare(
  client: ApiClient,
  name: string,
  { namespace, authFile, startupTaint }: FirstBootFlags,
  signal: AbortSignal,
): Promise<Prepared> {
  const [pools, layering, keys] = await Promise.all([
    readAll(client, MachineConfigPools, { signal }),
    client.find(MachineOSConfigs, name, { signal }),
    client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal }),
  ]);
  const pool = poolNamed(pools, name);
  const rendered = pool.spec.configuration?.name ?? '';
  const config = await ignitionOf(client, name, rendered, signal);
  const node = nodeImageOf(pool, layering);
  const boot = { pool: name, publicKeys: [], hasStartupTaint: startupTaint, authFile };
  if (node.image === null) {
    if (layering !== undefined) throw new CommandError(`pool ${name}: ${node.why}; try again when one has`);
    const warning = `pool ${name}: the output switches to no image, because ${node.why}`;
    return { parts: firstBootParts(boot), config, warnings: [warning] };
  }
  if (keys === undefined) {
    const map = `ConfigMap ${namespace}/${SIGNING_KEYS_CONFIG_MAP}`;
    throw new CommandError(
      `${map} doesn't exist: the operator writes the keys that sign images to it; expected Shale in namespace ${namespace} (--namespace)`,
    );
  }
  const publicKeys = publishedKeys(keys.data);
  const warnings = publicKeys.length === 0 ? [`pool ${name}: no signature is required of ${node.image}`] : [];
  const image = parseDigestedPullspec(node.image);
  return { parts: firstBootParts({ ...boot, image, publicKeys }), config, warnings };
}

/** @throws {CommandError} when there are keys and none counts: that isn't signing disabled. */
function publishedKeys(data: Readonly<Record<string, string>> = {}): readonly string[] {
  const names = Object.keys(data);
  const published = names.filter((name) => isKeyPublished(data, name)).toSorted(byCodeUnits);
  if (names.length > 0 && published.length === 0) {
    throw new CommandError(
      `ConfigMap ${SIGNING_KEYS_CONFIG_MAP} has no key under its own name; expected what the operator writes`,
    );
  }
  return published.flatMap((name) => data[name] ?? []);
}

async function ignitionOf(
  client: ApiClient,
  pool: string,
  rendered: string,
  signal: AbortSignal,
): Promise<IgnitionConfig> {
  const empty: IgnitionConfig = { ignition: { version: IGNITION_VERSION } };
  const config = rendered === '' ? undefined : await client.find(MachineConfigs, rendered, { signal });
  if (config === undefined) {
    throw new CommandError(`pool ${pool} has no rendered config yet; see its condition RenderDegraded`);
  }
  if (config.spec.config === undefined) return empty;
  const parsed = parseIgnition(config.spec.config);
  if (parsed.ok) return parsed.config;
  throw new CommandError(
    `MachineConfig ${rendered}: spec.config: ${parsed.problems.map(formatProblem).join('; ')}`,
  );
}
