import type { ImageConfig } from '../../api/image-sources.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { readRegistriesConf } from '../../oci/registries-conf.ts';
import { type GeneratedFile, generatedConfig } from '../generated-config.ts';
import type { Problem, Validated } from '../problem.ts';
import { type ImagePolicyObjects, readImagePolicies } from './image-policies.ts';
import { type MirrorObjects, mergeMirrorObjects } from './mirror-rules.ts';
import { type LayeredImages, layeredRepositories, unmeetable } from './own-images.ts';
import { formatPolicyJson, readPolicyJson } from './policy-json.ts';
import { formatRegistriesConf, formatSearchRegistries } from './registries-conf.ts';
import { registryEntries } from './registry-entries.ts';
import { readRegistrySources } from './registry-sources.ts';
import { formatSignaturePlaces } from './signature-places.ts';

/** The objects of a cluster about registries. */
export interface RegistryObjects extends MirrorObjects, Partial<ImagePolicyObjects> {
  /** The Image object `cluster`, if there is one. */
  readonly image?: ImageConfig | undefined;
  /** The cluster's own images, which no policy of others may end the pulls of. */
  readonly layered?: LayeredImages;
}

/**
 * The MachineConfig with the cluster's image mirrors, insecure, blocked and allowed registries, and signature
 * policies for a pool's nodes. It has the same name as in MCO.
 *
 * @param pool name of the pool, which becomes the role that the config is for.
 * @param input every object of the cluster about registries, and the version that is written as the controller's.
 * @returns the MachineConfig, or every conflict between the objects. It is absent where the cluster has no settings for
 *   registries: there must be no such MachineConfig then. `warnings`: what is valid in these objects and has no effect,
 *   or ends pulls of some pods alone.
 */
export function registriesMachineConfig(
  pool: string,
  input: RegistryObjects & { readonly controllerVersion: string },
): Validated<{ machineConfig?: MachineConfig; warnings: readonly Problem[] }> {
  const written = registryFiles(pool, input);
  if (!written.ok) return written;
  const { files, warnings } = written;
  if (files.length === 0) return { ok: true, warnings };
  const name = `99-${pool}-generated-registries`;
  const { controllerVersion } = input;
  return { ok: true, warnings, machineConfig: generatedConfig({ name, pool, files, controllerVersion }) };
}

const NO_IMAGES: LayeredImages = { byPool: new Map(), keys: undefined };

/** Only files for which the cluster has settings: otherwise the distribution's files remain. */
function registryFiles(
  pool: string,
  input: RegistryObjects,
): Validated<{ files: readonly GeneratedFile[]; warnings: readonly Problem[] }> {
  const merged = mergeMirrorObjects(input);
  const read = readRegistrySources(input.image);
  if (!merged.ok || !read.ok) {
    return {
      ok: false,
      problems: [...(merged.ok ? [] : merged.problems), ...(read.ok ? [] : read.problems)],
    };
  }
  const { sources } = read;
  const joined = registryEntries(merged.rules, sources);
  if (!joined.ok) return joined;
  const { clusterPolicies = [], namespacePolicies = [], layered = NO_IMAGES } = input;
  const signed = readImagePolicies({ clusterPolicies, namespacePolicies }, sources);
  if (!signed.ok) return signed;
  const { cluster, namespaces } = signed.policies;
  const refusedImages = unmeetable(pool, layered, cluster);
  if (refusedImages !== undefined) return { ok: false, problems: [refusedImages] };
  const scopes = [cluster, ...namespaces.values()].flatMap((policies) => [...policies.keys()]);
  const registries =
    joined.entries.length === 0 ? undefined : formatRegistriesConf(merged.rules, joined.entries);
  const search = sources.search === undefined ? undefined : formatSearchRegistries(sources.search);
  const texts = [
    ['/etc/containers/registries.conf', registries],
    ['/etc/containers/policy.json', formatPolicyJson(sources, cluster)],
    [
      '/etc/containers/registries.d/sigstore-registries.yaml',
      formatSignaturePlaces(scopes, joined.entries, layeredRepositories(layered)),
    ],
    // CRI-O takes the file of a pod's namespace in place of policy.json (crio.conf(5), signature_policy_dir).
    ...[...namespaces].map(
      ([namespace, policies]) =>
        [`/etc/crio/policies/${namespace}.json`, formatPolicyJson(sources, cluster, policies)] as const,
    ),
    ['/etc/containers/registries.conf.d/01-image-searchRegistries.conf', search],
  ] as const;
  const files = texts.flatMap(([path, text]) => (text === undefined ? [] : [{ path, text }]));
  const refused = files.flatMap(refusals);
  return refused.length > 0
    ? { ok: false, problems: refused }
    : { ok: true, files, warnings: signed.warnings };
}

/**
 * Reads a file back as the container runtime will. One entry that the runtime refuses would end every pull on every
 * node, so such a file is never rolled out, whatever the objects were validated for.
 */
function refusals({ path, text }: GeneratedFile): Problem[] {
  if (path.endsWith('.yaml')) return [];
  const read = path.endsWith('.json') ? readPolicyJson(text) : readRegistriesConf(text);
  if (read.ok) return [];
  return [
    {
      path: `${path} from the cluster's Image, mirror and policy objects`,
      reason: `would be refused by the container runtime: ${read.why}`,
      expected: 'objects whose registries and mirrors can be written to it',
    },
  ];
}
