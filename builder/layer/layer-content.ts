import type { MachineConfig } from '../../api/machine-config.ts';
import { nodePaths } from '../../api/names.ts';
import type { AppendOptions } from '../../image/append.ts';
import type { LayerEntry, Xattrs } from '../../image/layer/entry.ts';
import { type Layer, writeLayer } from '../../image/layer/write-layer.ts';
import { ownerOnBase, placesOnBase } from '../../machineconfig/base-obstacles.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { Obstacle } from '../../machineconfig/claim-conflicts.ts';
import { linkedPlace } from '../../machineconfig/claim-conflicts.ts';
import { imageObstacles } from '../../machineconfig/image-obstacles.ts';
import { layeredFiles } from '../../machineconfig/layered-files.ts';
import type { NodeConfig, NodeDirectory, NodeFile, Owner } from '../../machineconfig/node-config.ts';
import { claimsByPlace, pathClaims } from '../../machineconfig/path-claims.ts';
import { type PathPlace, placeInImage } from '../../machineconfig/place-in-image.ts';
import { carriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { unitLinks } from '../../machineconfig/unit-links.ts';
import { unknownTree } from '../../machineconfig/units/unit-tree.ts';
import { type ImageIdentity, labelsOf } from './build-facts.ts';
import { formatTmpfiles, type TmpfilesLine } from './tmpfiles.ts';

export type LayerContent =
  | { readonly ok: true; readonly entries: readonly LayerEntry[] }
  | { readonly ok: false; readonly refusals: readonly Obstacle[] };

interface LayerOptions {
  /** Whether the base has the config's extensions and kernel already, by a container engine. */
  readonly hasPackages?: boolean;
  /** What the base has; without it the layer is for a base of plain directories, and names are those of the node. */
  readonly base?: BaseContent;
}

/**
 * The one layer of an image: everything that a rendered config puts on a node.
 *
 * @param config the rendered config, decoded.
 * @param rendered the rendered config as an object; the image carries it so that a node and `shale image inspect` can
 *   tell what is in it.
 * @returns the layer's entries, each at its real place on the base, or everything that can't be carried.
 */
export function layerContent(
  config: NodeConfig,
  rendered: MachineConfig,
  { hasPackages = false, base }: LayerOptions = {},
): LayerContent {
  const onBase = base && placesOnBase(config, base);
  const refusals = [...imageObstacles(config, { hasPackages }), ...(onBase?.obstacles ?? [])];
  if (refusals.length > 0) return { ok: false, refusals };
  const layer: Layering = {
    entries: [],
    lines: [],
    placeOf: onBase?.placeOf ?? placeInImage,
    base: base ?? NOTHING_KNOWN,
  };
  const { entries, lines } = layer;
  for (const file of config.files.values()) addFile(layer, file);
  for (const directory of config.directories.values()) {
    addPlaced(layer, directory, {
      image: (path) => {
        const { mode } = directory;
        entries.push({ type: 'directory', path, mode, ...ids(layer, directory), ...xattrsAt(layer, path) });
        if (isUnknown(layer, directory) || isOtherwise(layer, path, directory))
          lines.push({ kind: 'ownership', ...directory, path });
      },
      state: () => lines.push({ kind: 'directory', ...directory }),
    });
  }
  for (const link of config.links.values()) {
    addPlaced(layer, link, {
      image: (path) =>
        entries.push(
          link.hard
            ? { type: 'hardlink', path, target: linkedFile(layer, config, link.target) }
            : { type: 'symlink', path, target: link.target, ...ids(layer, link) },
        ),
      state: () => lines.push({ kind: 'link', path: link.path, target: link.target }),
    });
  }
  const carry = (path: string, text: string) => entries.push(textFile(inImage(layer, path), text));
  for (const [path, text] of layeredFiles(config)) carry(path, text);
  for (const { path, target } of unitLinks(config, unknownTree).links) {
    entries.push({ type: 'symlink', path: inImage(layer, path), target, uid: 0, gid: 0 });
  }
  carry(nodePaths.imageConfig, `${canonicalJson(carriedConfig(rendered))}\n`);
  const fragment = formatTmpfiles(lines);
  if (fragment !== '') carry(nodePaths.tmpfiles, fragment);
  return { ok: true, entries };
}

/**
 * The layer as bytes, a function of what it is made of: the builder makes images by it, and the operator computes them
 * again before nodes may run them (builder/proof/prove-image.ts).
 *
 * @param config the rendered config, decoded.
 * @param base what the base has. `hasPackages`: commands of a container engine installed what the config asks for.
 * @returns the one layer, or everything of the config that it can't have.
 */
export async function appendedLayer(
  config: NodeConfig,
  rendered: MachineConfig,
  base: { readonly tree: BaseContent; readonly hasPackages: boolean },
): Promise<
  (LayerContent & { readonly ok: false }) | (LayerContent & { readonly ok: true; readonly layer: Layer })
> {
  const { tree, hasPackages } = base;
  const content = layerContent(config, rendered, { hasPackages, base: tree });
  if (!content.ok) return content;
  const { entries } = content;
  return { ok: true, entries, layer: await writeLayer(entries, { below: (path) => tree.at(path) }) };
}

/** @returns what is set in the configuration of the base. */
export function appendedOptions(identity: ImageIdentity): AppendOptions {
  return {
    labels: labelsOf(identity),
    created: identity.created,
    comment: `shale: ${identity.renderedConfig}`,
  };
}

/** A layer that is made. */
interface Layering {
  readonly entries: LayerEntry[];
  readonly lines: TmpfilesLine[];
  readonly placeOf: (path: string) => PathPlace;
  readonly base: BaseContent;
}

const NOTHING_KNOWN: BaseContent = { at: () => undefined, users: new Map(), groups: new Map() };

function addFile(layer: Layering, file: NodeFile): void {
  const { mode, user, group } = file;
  addPlaced(layer, file, {
    image: (path) => {
      layer.entries.push({ type: 'file', path, mode, ...ids(layer, file), content: file.contents });
      if (isUnknown(layer, file)) layer.lines.push({ kind: 'ownership', path, mode, user, group });
    },
    state: () => layer.lines.push({ kind: 'file', ...file }),
  });
}

function addPlaced(
  { placeOf }: Layering,
  { path }: { readonly path: string },
  add: { readonly image: (path: string) => void; readonly state: () => void },
): void {
  const place = placeOf(path);
  switch (place.kind) {
    case 'image':
      add.image(place.path);
      return;
    case 'state':
      add.state();
      return;
    case 'refused':
      throw new Error(`${path} ${place.why}, and imageObstacles has to say so`);
  }
}

/** @returns where a path lies in the image. */
function inImage({ placeOf }: Layering, path: string): string {
  const place = placeOf(path);
  return place.kind === 'image' ? place.path : path;
}

/** A hard link to a hard link is one to its file. */
function linkedFile(layer: Layering, config: NodeConfig, target: string): string {
  const claims = claimsByPlace(pathClaims(config));
  const { place } = linkedPlace(claims, target);
  return inImage(layer, claims.get(place)?.path ?? place);
}

/**
 * bootc and rpm-ostree keep mode and owner of a directory that the base has, whatever a layer says (libostree's
 * checkout of one tree on another). In /etc a tmpfiles.d line sets them.
 */
function isOtherwise(layer: Layering, path: string, directory: NodeDirectory): boolean {
  const there = layer.base.at(path);
  if (there?.kind !== 'directory' || !path.startsWith('/etc/')) return false;
  const { uid, gid } = ids(layer, directory);
  return there.mode !== directory.mode || there.uid !== uid || there.gid !== gid;
}

/** A directory of the base keeps the attributes that a config can't set. */
function xattrsAt({ base }: Layering, path: string): { readonly xattrs?: Xattrs } {
  const there = base.at(path);
  return there?.kind === 'directory' && there.xattrs !== undefined ? { xattrs: there.xattrs } : {};
}

interface Owned {
  readonly user: Owner;
  readonly group: Owner;
}

/** By the accounts of the base. */
function ids({ base }: Layering, owned: Owned): { readonly uid: number; readonly gid: number } {
  const { uid, gid } = ownerOnBase(owned, base);
  return { uid, gid };
}

/** A name that only the node can resolve: a tmpfiles.d line sets the owner there. */
function isUnknown({ base }: Layering, owned: Owned): boolean {
  return ownerOnBase(owned, base).unknown !== undefined;
}

function textFile(path: string, text: string): LayerEntry {
  return { type: 'file', path, mode: 0o644, uid: 0, gid: 0, content: Buffer.from(text) };
}
