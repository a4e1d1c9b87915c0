import { execFile } from 'node:child_process';
import { cp, lstat, mkdir, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { nodePaths } from '../../api/names.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import { readTree } from '../../daemon/files/read-tree.ts';
import { etcOfImage } from '../../daemon/files/units-of-image.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { layeredFiles } from '../../machineconfig/layered-files.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { writeConfig } from '../fixtures/standard-content.ts';
import type { BaseEntry, UnitCase } from './unit-case.ts';

const run = promisify(execFile);
const ETC = 'etc/systemd/system';

/** Links under /etc/systemd/system, as `path -> target`, sorted. */
export type Links = readonly string[];

/** @returns the config of a case, decoded from the MachineConfig that an image carries. */
export function renderedOf({ units, files }: Pick<UnitCase, 'units' | 'files'>) {
  const rendered = {
    apiVersion: 'machineconfiguration.openshift.io/v1' as const,
    kind: 'MachineConfig' as const,
    metadata: { name: 'rendered-worker-1' },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        systemd: { units },
        storage: {
          files: Object.entries(files).map(([name, text]) => ({
            path: `/${ETC}/${name}`,
            contents: { source: `data:,${encodeURIComponent(text)}` },
          })),
        },
      },
    },
  };
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  return { rendered, config: parsed.config };
}

/**
 * A link to a unit of the same name in another directory of units is as good to systemctl (src/shared/install.c,
 * `chroot_unit_symlinks_equivalent`), so that it keeps the base's own; an image can't know of that one, and both modes
 * have their own.
 *
 * @returns the links, those of the base by the name of the unit alone.
 */
export function comparable(links: Links, { base }: UnitCase): Links {
  const ofBase = new Set(base.map(({ path: name }) => name.slice(ETC.length + 1)));
  return links.map((link) => {
    const [place = '', target = ''] = link.split(' -> ');
    const isUnit = /^(?:\/(?:etc|usr\/lib)\/systemd\/system\/)?[^/]+$/.test(target);
    return isUnit && ofBase.has(place) ? `${place} -> ${path.posix.basename(target)}` : link;
  });
}

/** What the real systemctl makes of a case. */
export async function linksBySystemctl(root: string, { base, units, files }: UnitCase): Promise<Links> {
  await writeBase(root, base, 'etc');
  const place = (name: string, text: string) => replace(path.join(root, ETC, name), text);
  for (const [name, text] of Object.entries(files)) await place(name, text);
  for (const { name, contents = '', mask = false, dropins = [] } of units) {
    if (contents !== '' && !mask) await place(name, contents);
    for (const dropin of dropins) await place(`${name}.d/${dropin.name}`, dropin.contents);
  }
  const masked = units.filter(({ mask }) => mask === true);
  const maskAll = async () => {
    for (const { name } of masked) {
      await rm(path.join(root, ETC, name), { force: true });
      await systemctl(root, 'mask', name);
    }
  };
  await maskAll();
  for (const { name, enabled, mask = false } of units) {
    if (!mask && enabled !== undefined) await systemctl(root, enabled ? 'enable' : 'disable', name);
  }
  // To disable a template takes the masks of its instances away, but the config masks them.
  await maskAll();
  return linksIn(path.join(root, ETC));
}

/** It refuses some of a unit's settings with an error, and makes the other links. */
async function systemctl(root: string, ...words: readonly string[]): Promise<void> {
  await run('systemctl', ['--quiet', '--root', root, ...words]).catch((error: unknown) => {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 1) throw error;
  });
}

/** What `systemctl preset-all` makes of an image's preset on a base whose other units are disabled. */
export async function linksByPreset(root: string, { base, ...given }: UnitCase): Promise<Links> {
  await writeBase(root, base, 'etc');
  for (const [name, text] of layeredFiles(renderedOf(given).config))
    await replace(path.join(root, name), text);
  await replace(path.join(root, 'usr/lib/systemd/system-preset/99-default.preset'), 'disable *\n');
  await systemctl(root, 'preset-all');
  return linksIn(path.join(root, ETC));
}

/** A node in standard mode, as far as it has units. */
export async function standardNode(root: string, base: readonly BaseEntry[]) {
  await writeBase(root, base, 'usr/etc');
  await cp(path.join(root, 'usr/etc'), path.join(root, 'etc'), { recursive: true, verbatimSymlinks: true });
  const target = {
    root,
    stateDir: path.join(root, nodePaths.state),
    relabel: async () => {},
    setPasswords: async () => {},
  };
  const { signal } = new AbortController();
  return {
    write: (from: NodeConfig, to: NodeConfig) => writeConfig(target, { from, to }, { signal }),
    links: () => linksIn(path.join(root, ETC)),
    addLink: (name: string, to: string) => replaceByLink(path.join(root, ETC, name), to),
  };
}

/** What standard mode makes of it, by way of another config. */
export async function linksInStandardMode(
  root: string,
  { base, ...config }: UnitCase,
  by: NodeConfig = emptyNodeConfig,
): Promise<Links> {
  const node = await standardNode(root, base);
  await node.write(emptyNodeConfig, by);
  await node.write(by, renderedOf(config).config);
  return node.links();
}

/** What an image makes of it: its layer on the base, and its daemon's changes. */
export async function linksOfImage(root: string, { base, ...given }: UnitCase): Promise<Links> {
  await writeBase(root, base, 'usr/etc');
  const { rendered, config } = renderedOf(given);
  const layer = layerContent(config, rendered);
  if (!layer.ok) throw new Error(JSON.stringify(layer.refusals));
  // It refuses two entries of one path.
  await writeLayer(layer.entries);
  for (const entry of layer.entries) {
    const place = path.join(root, entry.path.replace(/^\/etc\//, '/usr/etc/'));
    if (entry.type === 'file') await replace(place, Buffer.from(entry.content).toString());
    if (entry.type === 'symlink') await replaceByLink(place, entry.target);
  }
  await replace(path.join(root, nodePaths.imageConfig), canonicalJson(rendered));
  const { signal } = new AbortController();
  const { etc } = await etcOfImage(root, await readTree(path.join(root, 'usr/etc'), '/etc', signal));
  return [...etc]
    .flatMap(([name, entry]) =>
      entry.kind === 'symlink' && name.startsWith(`/${ETC}/`)
        ? [`${name.slice(ETC.length + 2)} -> ${entry.target}`]
        : [],
    )
    .sort();
}

async function writeBase(root: string, base: readonly BaseEntry[], etc: string): Promise<void> {
  await mkdir(path.join(root, 'usr/lib/systemd/system'), { recursive: true });
  await mkdir(path.join(root, etc, 'systemd/system'), { recursive: true });
  for (const { path: name, text, target } of base) {
    const place = path.join(root, name.replace(/^etc\//, `${etc}/`));
    if (target === undefined) await replace(place, text ?? '');
    else await replaceByLink(place, target);
  }
}

async function replace(place: string, text: string): Promise<void> {
  await mkdir(path.dirname(place), { recursive: true });
  await rm(place, { force: true });
  await writeFile(place, text);
}

async function replaceByLink(place: string, target: string): Promise<void> {
  await mkdir(path.dirname(place), { recursive: true });
  await rm(place, { force: true });
  await symlink(target, place);
}

async function linksIn(directory: string, prefix = ''): Promise<string[]> {
  const links: string[] = [];
  for (const name of await readdir(path.join(directory, prefix))) {
    const relative = path.posix.join(prefix, name);
    const place = path.join(directory, relative);
    const stats = await lstat(place);
    if (stats.isSymbolicLink()) links.push(`${relative} -> ${await readlink(place)}`);
    else if (stats.isDirectory()) links.push(...(await linksIn(directory, relative)));
  }
  return links.sort();
}
