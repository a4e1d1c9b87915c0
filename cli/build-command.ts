import { Command, Option } from 'commander';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { errorMessage } from '../api/error-message.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import type { MachineOSConfigSpec } from '../api/machine-os-config.ts';
import { MACHINE_CONFIGURATION, SHALE_VERSION } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import { plural } from '../api/plural.ts';
import { Seal } from '../builder/attest/seal-image.ts';
import {
  type EngineFlags,
  engineParts,
  enginesByAddress,
  withEngineFlags,
} from '../builder/engine/engine-flags.ts';
import {
  type EngineImageKey,
  engineImageByTag,
  engineImageTarget,
} from '../builder/engine/find-engine-image.ts';
import { type ConfigSource, cleanSource, imageTime, sourceOf } from '../builder/layer/build-facts.ts';
import { buildForArchitectures } from '../builder/steps/build-image.ts';
import type { KnownState } from '../builder/steps/known-states.ts';
import { defaultPolicySettings, policyDigest } from '../disruption/effective-policies.ts';
import { policiesOfPool } from '../disruption/pool-policies.ts';
import { describeImage } from '../image/append.ts';
import { BaseTrees } from '../image/base/base-trees.ts';
import type { BaseImage } from '../image/base/read-base.ts';
import { goArchitecture } from '../image/manifest.ts';
import { byDigest, formatReference, parseReference } from '../image/reference.ts';
import type { RegistryClient } from '../image/registry/registry-client.ts';
import { parseSigningKey, SigningKeyError } from '../image/signature/signing-key.ts';
import { engineSpecOf } from '../predict/image/engine-spec.ts';
import { type OfflineCluster, offlineCluster } from '../predict/objects/offline-cluster.ts';
import { policiesOf } from '../predict/objects/offline-policies.ts';
import { refuseMalformed } from './change/file-flags.ts';
import { secretsOf } from './change/file-secrets.ts';
import { readObjects } from './change/object-files.ts';
import { type ClusterFlags, connect, withClusterFlags } from './command-line/cluster-access.ts';
import { asGiven, CommandError } from './command-line/exit-codes.ts';
import { note, print } from './command-line/output.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  readText,
  registryClient,
  rethrow,
  withRegistryFlags,
} from './command-line/registry-flags.ts';
import { renderingOfPool } from './render-command.ts';

/** `shale build`: builds the image that the Machine OS Builder would build from these files. */
export function buildCommand(): Command {
  const command = new Command('build')
    .requiredOption('--pool <name>', 'name of the MachineConfigPool')
    .requiredOption('-f, --filename <file...>', 'files or directories with objects, or - for standard input')
    .requiredOption('--base <image>', 'base image, in a registry')
    .requiredOption('--push <image>', 'where to push the image: host[:port]/repository:tag')
    .addOption(
      new Option(
        '--architecture <name...>',
        'architectures of the nodes; several result in an image index',
      ).default([goArchitecture(process.arch)], "this machine's"),
    )
    .option(
      '--from <file...>',
      'files with what the nodes run now; the transition label covers updates from it',
      [],
    )
    .option(
      '--container-runtime-unit <name>',
      "container runtime's unit in the default policies; must match the operator's flag",
      defaultPolicySettings.containerRuntimeUnit,
    )
    .option(
      '--cluster-policies',
      'label the image by the disruption policies in force in the cluster, as its builder does, not by those of the files',
    )
    .option(
      '--sign-by <file>',
      'private key (ECDSA P-256, PEM) to sign the image with; its password is read from COSIGN_PASSWORD',
    )
    .option('--no-attest', 'do not attach provenance and the list of files (SBOM)')
    .option('--source-url <url>', 'URL of the source repository; overrides the annotation of the pool')
    .option('--source-revision <commit>', 'revision of the source; overrides the annotation of the pool')
    .addHelpText(
      'after',
      '\nExample:\n  shale build --pool worker -f examples --base r.example.com/os/stock:1 --push r.example.com/os/worker:1',
    );
  return withClusterFlags(withEngineFlags(withRegistryFlags(command))).action(build);
}

interface SupplyOptions {
  readonly signBy?: string;
  readonly attest: boolean;
  readonly sourceUrl?: string;
  readonly sourceRevision?: string;
}

interface BuildOptions extends SupplyOptions, RegistryFlags, EngineFlags, ClusterFlags {
  readonly pool: string;
  readonly filename: readonly string[];
  readonly base: string;
  readonly push: string;
  readonly from: readonly string[];
  readonly architecture: readonly string[];
  readonly containerRuntimeUnit: string;
  readonly clusterPolicies?: boolean;
}

/**
 * Pushes the image; standard output is its pullspec alone, and what there is to say about it goes to standard error.
 */
async function build(options: BuildOptions): Promise<void> {
  const seal = await sealBy(options);
  const client = await registryClient(options, parseReference(options.push));
  const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS + options.engineMinutes * 60_000);
  const before = await readObjects(options.from);
  const objects = [...before, ...(await readObjects(options.filename))];
  const cluster = offlineCluster(objects);
  refuseMalformed(cluster);
  const policies = await policiesFor(cluster, options, signal);
  const { rendered, configs } = renderingOfPool(cluster, options.pool);
  const froms = options.from.length === 0 ? [] : await stateBefore(client, before, options, signal);
  const result = await buildForArchitectures(
    client,
    {
      pool: options.pool,
      rendered,
      sources: configs,
      baseImage: options.base,
      pushSpec: options.push,
      policies,
      policyDigest: policyDigest(policies),
      froms,
      architectures: [...new Set(options.architecture)].sort(),
      version: SHALE_VERSION,
      created: asGiven(() => imageTime(process.env), errorMessage),
      source: sourceFor(cluster, options),
      baseTrees: new BaseTrees({ onReading: reportReading }),
      seal,
      spec: specFor(cluster, options.pool),
      rebuild: '',
      readSecrets: async (names) => secretsOf(objects, names),
    },
    {
      ...engineParts(options, enginesByAddress(options), 1),
      recorded: [],
      onLine: (line) => note(`${line}`),
    },
    signal,
  ).catch(rethrow);
  note(`${result.summary}`);
  for (const warning of result.warnings ?? []) note(`warning: ${warning}`);
  for (const { from, actions } of result.transitions) note(`from ${from}: ${actions}`);
  print(`${result.image}`);
}

/**
 * A node takes the actions of a label only under the policies that the label was computed with.
 *
 * @throws {CommandError} if the cluster can't be read, or has recorded no policies.
 */
async function policiesFor(
  cluster: OfflineCluster,
  options: BuildOptions,
  signal: AbortSignal,
): Promise<ClusterPolicies> {
  const { pool, containerRuntimeUnit } = options;
  if (options.clusterPolicies !== true) return policiesOf(cluster, pool, { containerRuntimeUnit });
  const client = await connect(options);
  const configuration = await client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
  const inForce = policiesOfPool(configuration?.status, pool);
  if (inForce !== undefined) return inForce.policies;
  throw new CommandError(`the operator has recorded no disruption policies for pool ${pool} in this cluster`);
}

function reportReading({ reference }: BaseImage, layers: number, bytes: number): void {
  const size = `${(bytes / 1e6).toFixed(1)} MB`;
  note(
    `Reading ${plural(layers, 'layer')} (${size}) of ${formatReference(reference)}: directories and links stay as the base image has them`,
  );
}

async function sealBy({ signBy, attest }: SupplyOptions): Promise<Seal> {
  if (signBy === undefined) return new Seal({ attest });
  const pem = await readText(signBy);
  const key = asGiven(
    () => parseSigningKey(pem, signBy, process.env['COSIGN_PASSWORD']),
    (error) => (error instanceof SigningKeyError ? error.message : undefined),
  );
  return new Seal({ attest, key });
}

function sourceFor(
  cluster: OfflineCluster,
  options: SupplyOptions & { readonly pool: string },
): ConfigSource {
  const pool = cluster.pools.find(({ metadata }) => metadata.name === options.pool);
  const fromFlags = cleanSource({ url: options.sourceUrl, revision: options.sourceRevision });
  return { ...sourceOf(pool), ...fromFlags };
}

/**
 * @returns what nodes run before: the rendered config of the files, on the base image or on what an engine built from
 * it.
 */
async function stateBefore(
  client: RegistryClient,
  objects: readonly KubernetesObject[],
  options: BuildOptions,
  signal: AbortSignal,
): Promise<readonly KnownState[]> {
  const { pool, base: baseImage, push: pushSpec } = options;
  const cluster = offlineCluster(objects);
  refuseMalformed(cluster);
  const { rendered: config } = renderingOfPool(cluster, pool);
  const spec = specFor(cluster, pool);
  const states: KnownState[] = [];
  for (const architecture of new Set(options.architecture)) {
    const request = { pool, baseImage, pushSpec, rendered: config, architecture, rebuild: '' };
    const base = await baseBefore(client, request, spec, signal).catch(rethrow);
    // No node runs an image that was never built.
    if (base !== undefined) states.push({ config, base, architecture });
  }
  return states;
}

async function baseBefore(
  client: RegistryClient,
  request: Omit<EngineImageKey, 'engineSpec'>,
  spec: MachineOSConfigSpec | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const engineSpec = engineSpecOf(spec, request.rendered, request.architecture);
  if (engineSpec !== undefined) {
    // The label of a transition says nothing about an image that is built, so the tag is enough.
    const { target, inputs } = await engineImageTarget(client, { ...request, engineSpec }, signal);
    const digest = await engineImageByTag(client, target, inputs, signal);
    return digest === undefined ? undefined : byDigest(target, digest);
  }
  const base = parseReference(request.baseImage);
  const { digest } = await describeImage(client, base, request.architecture, signal);
  return `${base.registry}/${base.repository}@${digest}`;
}

/** @returns the MachineOSConfig of a pool, if the files contain one: it adds to the image what MachineConfigs can't. */
function specFor({ machineOSConfigs }: OfflineCluster, pool: string): MachineOSConfigSpec | undefined {
  return machineOSConfigs.find(({ metadata }) => metadata.name === pool)?.spec;
}
