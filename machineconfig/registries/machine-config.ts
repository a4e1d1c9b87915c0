import { MCO_GROUP } from '../../api/described-labels.ts';
import type { ImageConfig } from '../../api/image-sources.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations, labels } from '../../api/names.ts';
import { readRegistriesConf } from '../../oci/registries-conf.ts';
import { IGNITION_VERSION } from '../ignition/parse.ts';
import type { Problem } from '../problem.ts';
import { type ImagePolicyObjects, readImagePolicies } from './image-policies.ts';
import { type MirrorObjects, mergeMirrorObjects } from './mirror-rules.ts';
import { type LayeredImages, layeredRepositories, unmeetable } from './own-images.ts';
import { formatPolicyJson } from './policy-json.ts';
import { readPolicyJson } from './read-policy-json.ts';
import { formatRegistriesConf, formatSearchRegistries } from './registries-conf.ts';
import { registryEntries } from './registry-entries.ts';
import { readRegistrySources } from './registry-sources.ts';
import { formatSignaturePlaces } from './signature-places.ts';

export type RegistriesMachineConfig =
  /** Absent when the cluster has no settings for registries; there must be no such MachineConfig then. */
  | {
      readonly ok: true;
      readonly machineConfig?: MachineConfig;
      /** What is valid in these objects and has no effect, or ends pulls of some pods alone. */
      readonly warnings: readonly Problem[];
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

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
 * @returns the MachineConfig, or every conflict between the objects.
 */
export function registriesMachineConfig(
  pool: string,
  input: RegistryObjects & { readonly controllerVersion: string },
): RegistriesMachineConfig {
  const files = registryFiles(pool, input);
  if (!files.ok) return files;
  const { warnings } = files;
  if (files.texts.length === 0) return { ok: true, warnings };
  return {
    ok: true,
    warnings,
    machineConfig: {
      apiVersion: `${MCO_GROUP}/v1`,
      kind: 'MachineConfig',
      metadata: {
        name: `99-${pool}-generated-registries`,
        labels: { [labels.role]: pool },
        annotations: { [annotations.generatedByController]: input.controllerVersion },
      },
      spec: {
        config: {
          ignition: { version: IGNITION_VERSION },
          storage: { files: files.texts.map(([path, text]) => fileOf(path, text)) },
        },
      },
    },
  };
}

type RegistryFiles =
  | {
      readonly ok: true;
      readonly texts: readonly (readonly [path: string, text: string])[];
      readonly warnings: readonly Problem[];
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const NO_IMAGES: LayeredImages = { byPool: new Map(), keys: undefined };

/** Only files for which the cluster has settings: otherwise the distribution's files remain. */
function registryFiles(pool: string, input: RegistryObjects): RegistryFiles {
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
  const written = texts.flatMap(([path, text]) => (text === undefined ? [] : [[path, text] as const]));
  const refused = written.flatMap(([path, text]) => refusals(path, text));
  return refused.length > 0
    ? { ok: false, problems: refused }
    : { ok: true, texts: written, warnings: signed.warnings };
}

/**
 * Reads a file back as the container runtime will. One entry that the runtime refuses would end every pull on every
 * node, so such a file is never rolled out, whatever the objects were validated for.
 */
function refusals(path: string, text: string): Problem[] {
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

function fileOf(path: string, text: string) {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
  return { path, mode: 0o644, overwrite: true, contents: { source } };
}
