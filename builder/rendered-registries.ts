import { errorMessage } from '../api/error-message.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { type ConfFile, noRegistries, parseRegistriesConf, type Registries } from '../oci/registries-conf.ts';
import { BuildFailure } from './build-failure.ts';

const MAIN = '/etc/containers/registries.conf';
const DROPIN = /^\/etc\/containers\/registries\.conf\.d\/[^/]+\.conf$/;

/**
 * The registries.conf of a rendered config: of the cluster's mirror objects, or of an admin's own MachineConfig. Base
 * images for an image of these nodes are pulled by the same rules.
 *
 * @returns no rules where there is no config, or it has no such file, or can't be read: what else reads it says why.
 * @throws BuildFailure that names the file and what is wrong in it.
 */
export function renderedRegistries(rendered: MachineConfig | undefined): Registries {
  if (rendered === undefined) return noRegistries;
  const parsed = parseNodeConfig(rendered);
  const configured = parsed.ok ? parsed.config.files : new Map<string, never>();
  const paths = [...configured.keys()].filter((path) => DROPIN.test(path)).sort();
  const files = [MAIN, ...paths].flatMap((path): ConfFile[] => {
    const contents = configured.get(path)?.contents;
    return contents === undefined ? [] : [{ name: path, text: Buffer.from(contents).toString('utf8') }];
  });
  try {
    return parseRegistriesConf(files);
  } catch (cause) {
    const why = errorMessage(cause);
    throw new BuildFailure('InvalidConfig', `MachineConfig ${rendered.metadata.name}: ${why}`, { cause });
  }
}
