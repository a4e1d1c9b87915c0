import { readFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { stringify } from 'yaml';
import { formatActions } from '../api/disruption-action.ts';
import { imageLabels } from '../api/names.ts';
import { SHALE_VERSION } from '../api/version.ts';
import { appendBuild } from '../builder/append-build.ts';
import type { Source } from '../builder/attest/build-facts.ts';
import { cleanSource, sourceOf } from '../builder/attest/pool-source.ts';
import type { SealOptions } from '../builder/attest/seal-image.ts';
import { BuildFailure } from '../builder/build-failure.ts';
import { policyDigest } from '../disruption/effective-policies.ts';
import { parseTransitionLabel } from '../disruption/transitions.ts';
import { describeImage, type ImageDescription } from '../image/append.ts';
import { parseReference } from '../image/reference.ts';
import { parseAuthFile } from '../image/registry/credentials.ts';
import { createRegistryClient, type RegistryClient } from '../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../image/registry/registry-error.ts';
import { parseSigningKey, SigningKeyError } from '../image/signature/signing-key.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { readTrust } from './image-trust.ts';
import { readObjects } from './object-files.ts';
import { offlineCluster, policiesOf, renderOffline } from './offline-cluster.ts';

/** A command that hangs on a registry is of no use to anybody. */
const DEADLINE_MS = 300_000;

interface RegistryOptions {
  readonly plainHttp: string[];
  readonly authfile?: string;
  readonly caFile?: string;
  readonly architecture: string;
}

function withRegistryOptions(command: Command): Command {
  return command
    .option('--plain-http <host...>', 'registries (host:port) to speak plain HTTP to', [])
    .option('--authfile <file>', 'credentials, as docker and podman keep them')
    .option('--ca-file <file>', 'PEM certificates to trust for registries')
    .option('--architecture <name>', 'which image of an index', 'amd64');
}

async function registryClient({ plainHttp, authfile, caFile }: RegistryOptions): Promise<RegistryClient> {
  const ca = caFile === undefined ? undefined : await readText(caFile);
  return createRegistryClient({
    plainHttp: new Set(plainHttp),
    ...(authfile === undefined ? {} : { auths: parseAuthFile(await readText(authfile)) }),
    ...(ca === undefined ? {} : { caFor: () => ca }),
  });
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new CommandError(`${file}: can not be read`, exitCodes.usage, { cause });
  }
}

/** `shale build`: the image that the Machine OS Builder would make of these files. */
export function buildCommand(): Command {
  const command = new Command('build')
    .description("Make a pool's image from files: one layer on the base image, pushed to a registry.")
    .requiredOption('--pool <name>', 'the MachineConfigPool')
    .requiredOption('-f, --filename <file...>', 'files or directories with objects; - is standard input')
    .requiredOption('--base <image>', 'the base image, in the registry')
    .requiredOption('--push <image>', 'where the image goes: host[:port]/repository:tag')
    .option('--from <file...>', 'what the nodes run now; the label states the way from there', [])
    .option(
      '--sign-by <file>',
      'private key (ECDSA P-256, PEM) that signs the image; COSIGN_PASSWORD is its password',
    )
    .option('--no-attest', 'attach no provenance and no list of files')
    .option('--source-url <url>', 'where the files come from; overrides the annotation of the pool')
    .option('--source-revision <commit>', 'which state of it; overrides the annotation of the pool')
    .addHelpText(
      'after',
      '\nExample:\n  shale build --pool worker -f examples --base r.example.com/os/stock:1 --push r.example.com/os/worker:1',
    );
  return withRegistryOptions(command).action(
    async (
      options: RegistryOptions & {
        pool: string;
        filename: string[];
        base: string;
        push: string;
        from: string[];
      } & SupplyOptions,
    ) => {
      const seal = await sealOptions(options);
      const client = await registryClient(options);
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const before = await readObjects(options.from);
      const cluster = offlineCluster([...before, ...(await readObjects(options.filename))]);
      const policies = policiesOf(cluster);
      const rendered = renderFor(cluster, options.pool);
      const froms = options.from.length === 0 ? [] : [await stateBefore(client, before, options, signal)];
      const result = await appendBuild(
        client,
        {
          pool: options.pool,
          rendered,
          baseImage: options.base,
          pushSpec: options.push,
          policies,
          policyDigest: policyDigest(policies),
          froms,
          architecture: options.architecture,
          version: SHALE_VERSION,
          created: created(process.env),
          source: sourceFor(cluster, options),
          seal,
        },
        signal,
      ).catch(rethrow);
      process.stderr.write(`${result.summary}\n`);
      for (const warning of result.warnings ?? []) process.stderr.write(`warning: ${warning}\n`);
      for (const { from, actions } of result.transitions) process.stderr.write(`from ${from}: ${actions}\n`);
      process.stdout.write(`${result.image}\n`);
    },
  );
}

interface SupplyOptions {
  readonly signBy?: string;
  readonly attest: boolean;
  readonly sourceUrl?: string;
  readonly sourceRevision?: string;
}

async function sealOptions({ signBy, attest }: SupplyOptions): Promise<SealOptions> {
  if (signBy === undefined) return { attest };
  try {
    return { attest, key: parseSigningKey(await readText(signBy), signBy, process.env['COSIGN_PASSWORD']) };
  } catch (error) {
    if (!(error instanceof SigningKeyError)) throw error;
    throw new CommandError(error.message, exitCodes.usage, { cause: error });
  }
}

function sourceFor(
  cluster: ReturnType<typeof offlineCluster>,
  options: SupplyOptions & { readonly pool: string },
): Source {
  const pool = cluster.pools.find(({ metadata }) => metadata.name === options.pool);
  const said = cleanSource({ url: options.sourceUrl, revision: options.sourceRevision });
  return { ...sourceOf(pool), ...said };
}

function renderFor(cluster: ReturnType<typeof offlineCluster>, name: string) {
  const pool = cluster.pools.find(({ metadata }) => metadata.name === name);
  if (pool === undefined) throw new CommandError(`no pool ${name} in these files`);
  const rendering = renderOffline(cluster, pool);
  if (!rendering.ok)
    throw new CommandError(`pool ${name} can not be rendered:\n  ${rendering.problems.join('\n  ')}`);
  return rendering.rendered;
}

async function stateBefore(
  client: RegistryClient,
  objects: Awaited<ReturnType<typeof readObjects>>,
  options: RegistryOptions & { pool: string; base: string },
  signal: AbortSignal,
) {
  const base = parseReference(options.base);
  const { digest } = await describeImage(client, base, options.architecture, signal).catch(rethrow);
  return {
    config: renderFor(offlineCluster(objects), options.pool),
    base: `${base.registry}/${base.repository}@${digest}`,
  };
}

/** https://reproducible-builds.org/specs/source-date-epoch/ */
function created(env: NodeJS.ProcessEnv): string {
  const seconds = Number(env['SOURCE_DATE_EPOCH'] ?? '0');
  if (!Number.isSafeInteger(seconds))
    throw new CommandError('SOURCE_DATE_EPOCH is not a number of seconds', exitCodes.usage);
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** `shale image inspect`: what an image is made of and what it asks of nodes. */
export function imageCommand(): Command {
  const inspect = new Command('inspect')
    .description('Show base, pool, config, layers and transitions of an image.')
    .argument('<image>', 'host[:port]/repository[:tag][@digest]')
    .option('--key <file>', 'public key (PEM) that a signature of the image has to be by')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['yaml', 'json']).default('yaml'));
  withRegistryOptions(inspect).action(
    async (image: string, options: RegistryOptions & { output: string; key?: string }) => {
      const client = await registryClient(options);
      const reference = parseReference(image);
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const description = await describeImage(client, reference, options.architecture, signal).catch(rethrow);
      const { digest } = description;
      const trust = await readTrust(client, reference, { digest, keyFile: options.key }, signal).catch(
        rethrow,
      );
      const shown = { ...inWords(description), ...trust };
      process.stdout.write(
        options.output === 'json' ? `${JSON.stringify(shown, null, 2)}\n` : stringify(shown),
      );
      if (trust.signedByKey === false)
        throw new CommandError(`${image}: ${digest} is not signed by the key in ${options.key}`);
    },
  );
  return new Command('image').description('Look at images in a registry.').addCommand(inspect);
}

function inWords({ digest, manifest, config }: ImageDescription) {
  const labels = config.config?.Labels ?? {};
  const label = parseTransitionLabel(labels[imageLabels.disruption]);
  return {
    digest,
    platform: `${config.os}/${config.architecture}`,
    pool: labels[imageLabels.pool] ?? null,
    renderedConfig: labels[imageLabels.renderedConfig] ?? null,
    baseImage: labels[imageLabels.baseImage] ?? null,
    policyDigest: labels[imageLabels.policyDigest] ?? null,
    layers: manifest.layers.map((layer) => ({ digest: layer.digest, bytes: layer.size })),
    transitions: label.ok
      ? label.label.transitions.map(({ config: from, base, actions, causes }) => ({
          from,
          base,
          actions: formatActions(actions),
          because: causes.map(({ subject, rule }) => `${subject}: ${rule}`),
        }))
      : label.why,
  };
}

/** Trouble with a registry or an image is a message, not a stack. */
function rethrow(error: unknown): never {
  if (error instanceof RegistryError || error instanceof ContentError || error instanceof BuildFailure) {
    throw new CommandError(error.message, exitCodes.failed, { cause: error });
  }
  throw error;
}
