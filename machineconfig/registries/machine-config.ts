import { MCO_GROUP } from '../../api/described-labels.ts';
import type { ImageConfig } from '../../api/image-sources.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations, labels } from '../../api/names.ts';
import { by } from '../../api/order.ts';
import { readRegistriesConf } from '../../oci/registries-conf.ts';
import { IGNITION_VERSION } from '../ignition/parse.ts';
import type { Problem } from '../problem.ts';
import { type MirrorObjects, mergeMirrorObjects } from './mirror-rules.ts';
import { readPolicyJson } from './read-policy-json.ts';
import { formatRegistriesConf, formatSearchRegistries } from './registries-conf.ts';
import { registryEntries } from './registry-entries.ts';
import { type RegistrySources, readRegistrySources } from './registry-sources.ts';

export type RegistriesMachineConfig =
  /** Absent when the cluster has no settings for registries; there must be no such MachineConfig then. */
  | { readonly ok: true; readonly machineConfig?: MachineConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** The objects of a cluster about registries. */
export interface RegistryObjects extends MirrorObjects {
  /** The Image object `cluster`, if there is one. */
  readonly image?: ImageConfig | undefined;
}

/**
 * The MachineConfig with the cluster's image mirrors, insecure, blocked and allowed registries for a pool's nodes. It
 * has the same name as in MCO.
 *
 * @param pool name of the pool, which becomes the role that the config is for.
 * @param input every object of the cluster about registries, and the version that is written as the controller's.
 * @returns the MachineConfig, or every conflict between the objects.
 */
export function registriesMachineConfig(
  pool: string,
  input: RegistryObjects & { readonly controllerVersion: string },
): RegistriesMachineConfig {
  const files = registryFiles(input);
  if (!files.ok) return files;
  if (files.texts.length === 0) return { ok: true };
  return {
    ok: true,
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
  | { readonly ok: true; readonly texts: readonly (readonly [path: string, text: string])[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Only files for which the cluster has settings: otherwise the distribution's files remain. */
function registryFiles(input: RegistryObjects): RegistryFiles {
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
  const policy = formatPolicyJson(sources);
  const registries =
    joined.entries.length === 0 ? undefined : formatRegistriesConf(merged.rules, joined.entries);
  const search = sources.search === undefined ? undefined : formatSearchRegistries(sources.search);
  const texts = [
    ['/etc/containers/registries.conf', registries],
    ['/etc/containers/policy.json', policy],
    ['/etc/containers/registries.conf.d/01-image-searchRegistries.conf', search],
  ] as const;
  const written = texts.flatMap(([path, text]) => (text === undefined ? [] : [[path, text] as const]));
  const refused = written.flatMap(([path, text]) => refusals(path, text));
  return refused.length > 0 ? { ok: false, problems: refused } : { ok: true, texts: written };
}

/**
 * Reads a file back as the container runtime will. One entry that the runtime refuses would end every pull on every
 * node, so such a file is never rolled out, whatever the objects were validated for.
 */
function refusals(path: string, text: string): Problem[] {
  const read = path.endsWith('.json') ? readPolicyJson(text) : readRegistriesConf(text);
  if (read.ok) return [];
  return [
    {
      path: `${path} from the cluster's Image and mirror objects`,
      reason: `would be refused by the container runtime: ${read.why}`,
      expected: 'objects whose registries and mirrors can be written to it',
    },
  ];
}

function fileOf(path: string, text: string) {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
  return { path, mode: 0o644, overwrite: true, contents: { source } };
}

type Requirement = { readonly type: 'reject' | 'insecureAcceptAnything' };

const reject: readonly Requirement[] = [{ type: 'reject' }];
const accept: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];

/** The `atomic` transport takes no scope of three or more segments behind the registry (MCO, updatePolicyJSON). */
const ATOMIC_SEGMENTS = 3;

/**
 * Writes a policy.json (containers-policy.json(5)): blocked scopes are rejected, or everything but the allowed ones is.
 *
 * @returns the file's text; undefined where nothing is blocked or allowed, and the distribution's own file stays.
 */
function formatPolicyJson({ blocked, allowed }: RegistrySources): string | undefined {
  if (blocked.length === 0 && allowed.length === 0) return undefined;
  const scopes = [
    ...allowed.map((scope) => [scope, accept] as const),
    ...blocked.map((scope) => [scope, reject] as const),
  ].sort(by(([key]) => key));
  const atomic = scopes.filter(([scope]) => scope.split('/').length <= ATOMIC_SEGMENTS);
  const policy = {
    default: allowed.length > 0 ? reject : accept,
    transports: {
      atomic: Object.fromEntries(atomic),
      docker: Object.fromEntries(scopes),
      // Images of a local engine don't come from a registry.
      'docker-daemon': { '': accept },
    },
  };
  return `${JSON.stringify(policy, undefined, 2)}\n`;
}
