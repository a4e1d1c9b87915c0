import { readRegistriesConf } from '../oci/registries-conf.ts';
import type { IgnitionConfig } from './ignition/config.ts';
import { ContentsReader, type Limits } from './ignition/contents.ts';
import type { Problem } from './problem.ts';

const REGISTRIES_CONF = /^\/etc\/containers\/registries\.conf(?:\.d\/[^/]+\.conf)?$/;
const POLICY_JSON = '/etc/containers/policy.json';

/**
 * Reads the admin's own files about registries by the container runtime's rules. What the runtime refuses ends every pull on
 * every node. It is no error, because a later version of the runtime may take what this one refuses, and nodes that have such a
 * file must be able to leave it.
 *
 * @returns a warning for each file that would be refused.
 */
export function unreadableRegistryFiles({ storage }: IgnitionConfig, limits: Limits): Problem[] {
  const contents = new ContentsReader(limits);
  return (storage?.files ?? []).flatMap((file, index) => {
    const why = whyOf(file.path);
    if (why === undefined || file.contents?.source === undefined) return [];
    const path = `$.storage.files[${index}].contents`;
    const decoded = contents.decode(file.contents, path);
    if ('problem' in decoded) return [];
    const refused = why(Buffer.from(decoded.bytes).toString('utf8'));
    const reason = `would end all pulls, because the container runtime refuses ${file.path}: ${refused}`;
    return refused === undefined ? [] : [{ path, reason, expected: 'a file that it reads' }];
  });
}

/** @returns what reads a file and says why it is refused; undefined for other files. */
function whyOf(path: string): ((text: string) => string | undefined) | undefined {
  if (path === POLICY_JSON) return whyNotJson;
  if (!REGISTRIES_CONF.test(path)) return undefined;
  return (text) => {
    const read = readRegistriesConf(text);
    return read.ok ? undefined : read.why;
  };
}

/** Of the requirements of a policy Shale knows only those that it writes. */
function whyNotJson(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'is not JSON';
  }
}
