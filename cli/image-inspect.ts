import { Command, Option } from 'commander';
import { stringify } from 'yaml';
import { formatActions } from '../api/disruption-action.ts';
import { imageLabels } from '../api/names.ts';
import { parseTransitionLabel } from '../disruption/transitions.ts';
import { describeImage, type ImageDescription } from '../image/append.ts';
import { goArchitecture } from '../image/architecture.ts';
import { parseReference } from '../image/reference.ts';
import { CommandError } from './exit-codes.ts';
import { readTrust } from './image-trust.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  registryClient,
  rethrow,
  withRegistryFlags,
} from './registry-flags.ts';

/** `shale image inspect`: what an image is made of and what it asks of nodes. */
export function imageCommand(): Command {
  const inspect = new Command('inspect')
    .description('Show base, pool, config, layers and transitions of an image.')
    .argument('<image>', 'host[:port]/repository[:tag][@digest]')
    .option('--architecture <name>', 'which image of an index', goArchitecture(process.arch))
    .option('--key <file>', 'public key (PEM) that a signature of the image has to be by')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['yaml', 'json']).default('yaml'));
  withRegistryFlags(inspect).action(
    async (
      image: string,
      options: RegistryFlags & { output: string; key?: string; architecture: string },
    ) => {
      const client = await registryClient(options);
      const reference = parseReference(image);
      const signal = AbortSignal.timeout(REGISTRY_DEADLINE_MS);
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
