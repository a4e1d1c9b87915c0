import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { BuildFailure } from '../../builder/build-failure.ts';
import { engineParts, enginesByAddress } from '../../builder/engine/engine-flags.ts';
import type { BuildResult } from '../../builder/status.ts';
import { type BuildInput, buildImage } from '../../builder/steps/build-image.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import type { SandboxRegistry } from '../../workshop/sandbox/registry.ts';

/** What the tests' Secret `entitlement` has under `key`. */
export const SECRET = 'entitlement-0123456789';
const policies = effectivePolicies(undefined, defaultPolicySettings);

export interface EngineBuildSetup {
  readonly registry: SandboxRegistry;
  readonly base: DigestedPullspec;
  readonly workDir: string;
  readonly engine: string | undefined;
  readonly engineTlsDir?: string;
  readonly pool: string;
  readonly signal: AbortSignal;
  /** Engine images that earlier builds recorded; by default none. */
  readonly recorded?: readonly DigestedPullspec[];
}

export interface Built {
  readonly result: BuildResult;
  /** What the engine printed. */
  readonly lines: readonly string[];
}

/** Builds as the builder does. */
export async function buildWithEngine(
  { registry, base, workDir, engine, engineTlsDir, pool, signal, recorded = [] }: EngineBuildSetup,
  spec: Partial<MachineOSConfigSpec>,
  input: Partial<BuildInput> = {},
  onLine: (line: string) => void = () => undefined,
): Promise<Built> {
  const lines: string[] = [];
  const flags = {
    engineMinutes: 5,
    engineGibibytes: 8,
    engineWorkDir: workDir,
    ...present({ engine, engineTlsDir }),
  };
  const result = await buildImage(
    registry.client,
    {
      pool,
      rendered: renderedConfig('one'),
      baseImage: base,
      pushSpec: `${registry.host}/os/${pool}:image`,
      policies,
      policyDigest: policyDigest(policies),
      froms: [],
      architecture: goArchitecture(process.arch),
      version: '0',
      created: '1970-01-01T00:00:00Z',
      spec,
      rebuild: '',
      readSecrets: async () => [{ id: 'entitlement/key', value: Buffer.from(`${SECRET}\n`) }],
      ...input,
    },
    {
      ...engineParts(flags, enginesByAddress(flags), 1),
      recorded,
      onLine: (line) => {
        lines.push(line);
        onLine(line);
      },
    },
    signal,
  );
  return { result, lines };
}

/** @returns the part of a MachineOSConfig with that Containerfile. */
export function containerFile(...lines: string[]): Pick<MachineOSConfigSpec, 'containerFile'> {
  return { containerFile: [{ containerfileArch: 'NoArch', content: lines.join('\n') }] };
}

/** @returns a rendered config whose chrony.conf has its name. */
export function renderedConfig(name: string): MachineConfig {
  const source = `data:,${encodeURIComponent(`# ${name}\n`)}`;
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `rendered-worker-${name}` },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: '/etc/chrony.conf', mode: 0o644, contents: { source } }] },
      },
    },
  };
}

/** @returns why a build failed. @throws Error when it did not, or not as a build. */
export async function failureOf(run: Promise<unknown>): Promise<BuildFailure> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof BuildFailure) return error;
  throw new Error('the build did not fail as a build', { cause: error });
}

/** @returns what describes a pushed image, and its layers as tar archives. */
export async function pullImage(
  { registry, signal }: Pick<EngineBuildSetup, 'registry' | 'signal'>,
  image: string,
): Promise<{ readonly description: ImageDescription; readonly layers: readonly Buffer[] }> {
  const at = parseReference(image);
  const architecture = goArchitecture(process.arch);
  const description = await describeImage(registry.client, at, architecture, signal);
  const layers = description.manifest.layers.map(async (blob) =>
    gunzipSync(await buffer(registry.client.readBlob(at, blob, signal))),
  );
  return { description, layers: await Promise.all(layers) };
}
