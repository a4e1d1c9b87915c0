import type { MachineConfig } from '../../api/machine-config.ts';
import {
  type ConfFile,
  parseRegistriesConf,
  type RegistriesConf,
} from '../../image/registry/registries-conf.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { BuildFailure } from '../build-failure.ts';

const MAIN = '/etc/containers/registries.conf';
const DROPIN = /^\/etc\/containers\/registries\.conf\.d\/[^/]+\.conf$/;

/**
 * Where a pool's nodes pull images from. The rendered config has it, made of the cluster's mirror objects or by an admin's
 * own MachineConfig; what builds an image for these nodes finds base images where they will.
 *
 * @returns no rules where the config has no such file, or can't be read: whatever else reads it says why.
 * @throws BuildFailure that names the file and what is wrong in it.
 */
export function renderedRegistries(rendered: MachineConfig): RegistriesConf {
  const parsed = parseNodeConfig(rendered);
  const found = parsed.ok ? parsed.config.files : new Map<string, never>();
  const paths = [...found.keys()].filter((path) => DROPIN.test(path)).sort();
  const files = [MAIN, ...paths].flatMap((path): ConfFile[] => {
    const contents = found.get(path)?.contents;
    return contents === undefined ? [] : [{ name: path, text: Buffer.from(contents).toString('utf8') }];
  });
  try {
    return parseRegistriesConf(files);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new BuildFailure('InvalidConfig', `MachineConfig ${rendered.metadata.name}: ${why}`, { cause });
  }
}
