import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { decideActions } from '../../disruption/actions.ts';
import { policiesOfDigest } from '../../disruption/pool-policies.ts';
import { goArchitecture } from '../../image/manifest.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { osPackages, SUPPORTED_EXTENSIONS } from '../../machineconfig/os-packages.ts';
import { type CarriedConfig, carriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { forgedMessage, isForged } from '../../machineconfig/rendered-name.ts';
import { askedPackages, refusedInStandardMode } from '../../machineconfig/standard-mode.ts';
import { PackagesRefused } from '../os/backend.ts';
import { withRebootChoice } from '../reboot/choose-reboot.ts';
import {
  type Current,
  nodeConfigOf,
  PrepareRefused,
  type StandardCurrent,
  writtenConfigOf,
} from '../records/current.ts';
import {
  fetchTarget,
  type Preparation,
  type Requirements,
  refuseChangedDisk,
  refuseUnwritable,
  requireReboot,
} from './preparation.ts';
import {
  asDeployed,
  basisOf,
  deploymentChange,
  formatArguments,
  type PreparedUpdate,
  reboots,
  type Target,
} from './update.ts';

type StandardTarget = Extract<Target, { mode: 'Standard' }>;

/**
 * Works out what a rendered config asks of a node in standard mode, and stages the OS image where that or the kernel
 * arguments change. Nothing is written to the running root.
 *
 * A fresh node is taken to have nothing of its config yet: what no policy allows live means a reboot, as at any other
 * time; a config without content asks for nothing.
 *
 * @throws PrepareRefused for a config that this host can't be brought to without layering or that can't be read, and
 *   for a disk that is not as the present config has it; ApiError, and what staging throws.
 */
export async function prepareStandard(
  preparation: Preparation,
  target: StandardTarget,
): Promise<PreparedUpdate> {
  const { client, current, stuck, spec, signal } = preparation;
  const { backend } = preparation.ports;
  const rendered = await fetchRendered(client, target.config, signal);
  const config = nodeConfigOf(rendered);
  refuseUnknownExtensions(config);
  const { booted } = await backend.status(signal);
  const fromBase = current === undefined ? booted.image : current.baseImage;
  const baseImage = target.osImage || stockImageOf(current) || fromBase;
  await refuseUnsupported(preparation, { rendered, config, baseImage });
  await refuseChangedDisk(preparation);
  if (stuck === undefined) {
    const to = { delivery: 'Standard', config } as const;
    await refuseUnwritable(preparation.ports.host.root, { current, to }, signal);
  }
  const asked = await actionsOf(preparation, { config, fromBase, baseImage });
  const next: StandardCurrent = {
    version: 1,
    mode: 'Standard',
    config: target.config,
    rendered,
    kernelArguments: [...config.kernelArguments],
    packages: packagesFor(config),
    ...present({ baseImage }),
  };
  const from = reboots({ plan: asked }) ? asDeployed(current, booted) : current;
  const change = deploymentChange(from, booted.image, next);
  const required = change === undefined ? asked : withReboot(asked, from, next);
  // Nobody signs the stock image, and it may be in the repository of the pool.
  await preparation.admit('any');
  if (change === undefined) await backend.unstage(signal);
  const staged =
    change === undefined
      ? undefined
      : await fetchTarget(preparation, change, { evenIfBooted: true }).catch(explainRefusal(config));
  return {
    plan: { config: target.config, staged: true, ...(await withRebootChoice(preparation, required, staged)) },
    next,
    ...basisOf(spec),
  };
}

/**
 * Another deployment takes a reboot, also where the configs alone ask for none: Shale set other kernel arguments in it.
 */
function withReboot(asked: Requirements, from: Current | undefined, next: StandardCurrent): Requirements {
  if (reboots({ plan: asked }) || from?.mode !== 'Standard') return asked;
  return requireReboot(
    `the node booted with ${formatArguments(from.kernelArguments)} instead of those of ${next.config}`,
  );
}

/** The way out of layering leads past what a container engine made of the stock image. */
function stockImageOf(current: Current | undefined): string | undefined {
  return current?.mode === 'Layered' ? current.stockImage : undefined;
}

function packagesFor(config: NodeConfig): NonNullable<StandardCurrent['packages']> {
  const { installed, removed } = osPackages(config);
  return { installed: [...installed], removed: [...removed] };
}

/** MCO, ValidateMachineConfigExtensions: looked at again where the names become a command's arguments. */
function refuseUnknownExtensions({ name, extensions }: NodeConfig): void {
  const unknown = extensions.find((extension) => !SUPPORTED_EXTENSIONS.has(extension));
  if (unknown === undefined) return;
  const known = [...SUPPORTED_EXTENSIONS].join(', ');
  throw new PrepareRefused(`${name}: extension ${JSON.stringify(unknown)} is unknown; expected ${known}`);
}

async function refuseUnsupported(
  { ports: { backend }, current, signal }: Preparation,
  to: {
    readonly rendered: StandardCurrent['rendered'];
    readonly config: NodeConfig;
    readonly baseImage: string | undefined;
  },
): Promise<void> {
  const { rendered, config, baseImage } = to;
  const refused = refusedInStandardMode(
    {
      from: writtenConfigOf(current),
      to: config,
      extensionsImage: rendered.spec.baseOSExtensionsContainerImage ?? '',
    },
    {
      osBackend: await backend.tool(signal),
      architecture: goArchitecture(process.arch),
      ...present({ baseImage }),
    },
  );
  if (refused.length > 0) throw new PrepareRefused(`${config.name}: ${refused.join('; ')}`);
}

function explainRefusal(config: NodeConfig): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof PackagesRefused)) throw error;
    const what = askedPackages(config) || 'removes packages that Shale installed';
    throw new PrepareRefused(`${config.name}: ${what}: ${error.message}`, { cause: error });
  };
}

async function actionsOf(
  { current, stuck, spec, client, signal }: Preparation,
  to: {
    readonly config: NodeConfig;
    readonly fromBase: string | undefined;
    readonly baseImage: string | undefined;
  },
): Promise<Requirements> {
  if (stuck !== undefined) {
    return requireReboot(`the live update to ${stuck.plan.config} was started and could not be finished`);
  }
  if (current?.mode === 'Layered') return requireReboot('the node switches from layered to standard mode');
  const written = writtenConfigOf(current);
  // A fresh node's OS image is known by what it booted, not by a field of a config it never had.
  const from = current === undefined ? { ...written, osImageURL: to.config.osImageURL } : written;
  const configuration = await client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
  const policies = policiesOfDigest(configuration?.status, spec.policyDigest);
  const { actions, causes } = decideActions({
    from,
    to: to.config,
    policies: policies ?? {},
    layered: false,
    ...present({ fromBase: to.fromBase, toBase: to.baseImage }),
  });
  return {
    actions: [...actions],
    causes: [...causes],
    source: policies
      ? 'the difference between the rendered configs'
      : 'the difference between the rendered configs; the policies in force are not the ones that the operator named, so nothing is applied live',
  };
}

/**
 * Fetches a rendered config, without what the API server adds to it.
 *
 * @throws PrepareRefused when it isn't what it is named after, ApiError.
 */
async function fetchRendered(client: ApiClient, name: string, signal: AbortSignal): Promise<CarriedConfig> {
  const rendered = await client.get(MachineConfigs, name, { signal });
  if (isForged(rendered)) throw new PrepareRefused(forgedMessage(name));
  return carriedConfig(rendered);
}
