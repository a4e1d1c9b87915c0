import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { present } from '../../api/present.ts';
import { isByDigest } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { madeBySwitch } from '../../opt-in/machine-os-configs.ts';
import { type LayeredPool, layeredStateOf } from '../../predict/image/layered-pool.ts';
import { requestedBase } from '../../predict/image/requested-image.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { lookUpBases } from '../plan/look-up-bases.ts';
import type { SwitchData } from './switch-data.ts';

/** What the image of a pool will have. */
export interface PlannedImage {
  /** Of the pool. */
  readonly name: string;
  readonly image: LayeredPool;
  /** Why the digest of its base image is not known, a sentence. */
  readonly unknown?: string;
}

interface Access {
  readonly client: ApiClient;
  /** Where Shale runs. */
  readonly namespace: string;
  /** Whether registries may be asked. */
  readonly resolveTags: boolean;
  readonly signal: AbortSignal;
}

/** A pool with the image that the switch requests for it. */
interface Requested {
  readonly name: string;
  readonly rendered: MachineConfig;
  readonly spec: Partial<MachineOSConfigSpec>;
  readonly architectures: readonly string[];
  readonly base: string | undefined;
}

/**
 * @param names of pools. @param data of the layering switch.
 * @returns what the images of the pools will have; nothing for a pool of which nothing is rendered.
 * @throws ApiError; the reason of the signal.
 */
export async function plannedImages(
  { client, namespace, resolveTags, signal }: Access,
  names: readonly string[],
  data: SwitchData,
  cluster: ObservedCluster,
): Promise<readonly PlannedImage[]> {
  const images = await Promise.all(
    names.map((name) => requestedImage(client, name, { data, cluster, signal })),
  );
  const requested = images.filter((pool) => pool !== undefined);
  const requests = requested.flatMap(({ name, rendered, spec, base }) =>
    !resolveTags || base === undefined || isByDigest(base)
      ? []
      : [{ pool: name, name: base, secret: spec.baseImagePullSecret?.name, rendered }],
  );
  const lookups = await lookUpBases(
    requests,
    { flags: { plainHttp: [] }, cluster: { client, namespace } },
    signal,
  );
  return requested.map(({ name, rendered, spec, architectures, base = '' }) => {
    const own = lookups.get(name);
    const answer = own?.get(base);
    const unknown =
      answer?.kind === 'unknown'
        ? `pool ${name}: the digest of base image ${base} is not known: ${answer.why}`
        : undefined;
    return { name, image: layeredStateOf(rendered, spec, architectures, own), ...present({ unknown }) };
  });
}

async function requestedImage(
  client: ApiClient,
  name: string,
  {
    data,
    cluster: { pools, machineOSConfigs },
    signal,
  }: { readonly data: SwitchData; readonly cluster: ObservedCluster; readonly signal: AbortSignal },
): Promise<Requested | undefined> {
  const pool = pools.find(({ metadata }) => metadata.name === name);
  const config = pool?.spec.configuration?.name;
  const rendered = config === undefined ? undefined : await client.find(MachineConfigs, config, { signal });
  if (rendered === undefined) return undefined;
  const existing = machineOSConfigs.find(({ spec }) => spec.machineConfigPool.name === name);
  const isAdmin = existing !== undefined && !madeBySwitch(existing);
  const spec = isAdmin ? existing.spec : { ...existing?.spec, ...bySwitch(data) };
  const architectures = pool?.status?.architectures ?? [];
  return { name, rendered, spec, architectures, base: requestedBase({ spec }, rendered) };
}

/** What the layering switch sets of a MachineOSConfig, and a plan depends on. */
function bySwitch({ baseImage, pullSecret }: SwitchData): Partial<MachineOSConfigSpec> {
  const baseImagePullSecret = pullSecret === undefined ? undefined : { name: pullSecret };
  return present({ baseImage, baseImagePullSecret });
}
