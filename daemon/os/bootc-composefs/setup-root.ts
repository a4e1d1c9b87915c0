import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { ignoreMissing } from '../../files/tree-entry.ts';

/** Where bootc's part of the initramfs reads how a root is set up (bootc, crates/initramfs, SETUP_ROOT_CONF_PATH). */
const CONFIGURATION = 'usr/lib/composefs/setup-root-conf.toml';

/** Each name there with what it comes to; keys that bootc doesn't know it ignores. */
const MOUNTS = new Map([
  ['none', 'none'],
  ['root', 'none'],
  ['bind', 'bind'],
  ['overlay', 'overlay'],
  ['transient', 'transient'],
  ['volatile', 'transient'],
]);
const DirectorySchema = z
  .object({ mount: z.enum([...MOUNTS.keys()]).optional(), transient: z.boolean().default(false) })
  .prefault({});
const ConfigurationSchema = z.object({
  etc: DirectorySchema,
  var: DirectorySchema,
  root: z.object({ transient: z.boolean().default(false) }).prefault({}),
});

/**
 * Finds out why a machine would not boot, or would lose what is written, with the root that an image or a host has.
 * What counts is in the initramfs, which is not looked at: it is made of the same files.
 *
 * @param root of a deployment.
 * @returns what says so and what is expected; nothing where there is no reason.
 */
export async function setupRootObstacle(root: string): Promise<string | undefined> {
  const text = await readFile(path.join(root, CONFIGURATION), 'utf8').catch(ignoreMissing);
  const why = text === undefined ? undefined : whyNot(text);
  return why && `/${CONFIGURATION} ${why}`;
}

function whyNot(text: string): string | undefined {
  const configuration = parseConfiguration(text);
  if (configuration === undefined) {
    return 'can’t be read by bootc’s initramfs, so it would not boot; expected TOML, with mount = "bind", "none", "overlay" or "transient" of etc and var';
  }
  const { etc, var: variable, root } = configuration;
  const mountOf = ({ mount, transient }: z.infer<typeof DirectorySchema>) =>
    MOUNTS.get(mount ?? (transient ? 'transient' : 'bind'));
  const ofEtc = mountOf(etc);
  if (ofEtc === 'transient') {
    return 'makes /etc transient (etc), so that no boot would keep what is written there; expected a persistent /etc';
  }
  if (ofEtc !== 'bind') {
    return `has etc.mount = "${ofEtc}", so that /etc would not be the one that bootc merges; expected none of etc`;
  }
  if (mountOf(variable) === 'transient') {
    return 'makes /var transient (var), so that no boot would keep what Shale writes there; expected a persistent /var';
  }
  if (root.transient) {
    return 'makes / transient (root.transient), which Shale has never tried without ostree; expected root.transient = false';
  }
  return undefined;
}

function parseConfiguration(text: string): z.infer<typeof ConfigurationSchema> | undefined {
  try {
    return ConfigurationSchema.parse(parse(text));
  } catch {
    return undefined;
  }
}
