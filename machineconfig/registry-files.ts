import { uselessLocations } from '../oci/pull-places.ts';
import { misplacedSettings, type Registries, readRegistriesConf } from '../oci/registries-conf.ts';
import type { IgnitionConfig } from './ignition/config.ts';
import { ContentsReader, type Limits } from './ignition/contents.ts';
import { type Problem, quote } from './problem.ts';

const REGISTRIES_CONF = /^\/etc\/containers\/registries\.conf(?:\.d\/[^/]+\.conf)?$/;
const POLICY_JSON = '/etc/containers/policy.json';

/**
 * Reads the admin's own files about registries by the container runtime's rules. What the runtime refuses ends every
 * pull on every node, and an invalid location ends every pull of its registry. It is no error, because a later version
 * of the runtime may take what this one refuses, and nodes that have such a file must be able to leave it.
 *
 * @returns a warning for each file that would be refused, for each invalid location, and for each setting without
 *   effect.
 */
export function registryFileWarnings({ storage }: IgnitionConfig, limits: Limits): Problem[] {
  const contents = new ContentsReader(limits);
  return (storage?.files ?? []).flatMap((file, index) => {
    const warn = warningsOf(file.path);
    if (warn === undefined || file.contents?.source === undefined) return [];
    const path = `$.storage.files[${index}].contents`;
    const decoded = contents.decode(file.contents, path);
    if ('problem' in decoded) return [];
    return warn(Buffer.from(decoded.bytes).toString('utf8')).map((warning) => ({ path, ...warning }));
  });
}

type Warning = Omit<Problem, 'path'>;

/** @returns what reads a file and warns of its contents; undefined for other files. */
function warningsOf(path: string): ((text: string) => readonly Warning[]) | undefined {
  const refused = (why: string | undefined) => {
    const reason = `would end all pulls, because the container runtime refuses ${path}: ${why}`;
    return why === undefined ? [] : [{ reason, expected: 'a file that it reads' }];
  };
  if (path === POLICY_JSON) return (text) => refused(whyNotJson(text));
  if (!REGISTRIES_CONF.test(path)) return undefined;
  return (text) => {
    const read = readRegistriesConf(text);
    if (!read.ok) return refused(read.why);
    return [...uselessMirrors(path, read.conf.registries), ...withoutEffect(path, text)];
  };
}

function uselessMirrors(path: string, registries: Registries): Warning[] {
  return [...registries.values()].flatMap((registry) =>
    uselessLocations(registry).map((location) => ({
      reason: `ends all pulls from ${quote(registry.scope)}, because in ${path} its location ${quote(location)} can't stand before a repository`,
      expected: 'host[:port][/path] in lower case, where a host without a port has a dot or is localhost',
    })),
  );
}

function withoutEffect(path: string, text: string): Warning[] {
  return misplacedSettings(text).map((setting) => ({
    reason: `has no effect: ${path} has ${setting}`,
    expected: 'settings of the file before its first table',
  }));
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
